"""Put the shards of one run together: every row of the draw exactly once, or a list of what is wrong and where."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.collect import NOT_RUN
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import DrawSpec, fingerprint, select
from agentcompass_bfcl.errors import BfclError, MergeError, ResultError, ShardError, counted, shortened
from agentcompass_bfcl.identity import QUESTION_KEYS, differences
from agentcompass_bfcl.result import ResultDocument, build_document
from agentcompass_bfcl.rows import Row, tally_rows
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.verification import counts_once, verify

# What all shards of a run have in common beside what was asked.
_SAME_RUN = (*QUESTION_KEYS, "draw", "spec", "scope", "model", "harness", "versions", "source")
# What each shard may have of its own.
_PER_SHARD = frozenset({"base_url", "concurrency"})
# A row the official checker gives no verdict on is no fault of the shard that has it.
CHECKER_REASONS = frozenset({"checker_raised", "checker_died", "time_limit", "output_too_large"})


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of the whole run, the shards it was made of in order, and what was passed over and why."""

    document: ResultDocument
    parts: tuple[RunRecord, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Inspection:
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(
    records: Sequence[RunRecord],
    dataset: Dataset,
    *,
    allow_errors: bool = False,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> Merged:
    """Merge shards of one draw into the result that one run over the whole draw would have.

    Tallies come from the rows and are summed, weights are applied once. Of two runs of one shard the one that began
    later counts, and a note says so. ``facts`` replace parts of the identity that the shards cannot know, such as how
    many requests there were at a time in all. Raises ``MergeError``, whose ``faults`` name every shard that is
    missing, there twice, of another run, torn, damaged, or, unless ``allow_errors``, holds failed requests.
    """
    if not records:
        raise MergeError("nothing to merge: give the run directories of all shards")
    found = _Inspection()
    agreeing = _of_one_run(records, found)
    spec, entries = _draw(agreeing, dataset, found)
    rows = {id(record): _rows(record, entries, allow_errors=allow_errors, found=found) for record in agreeing}
    parts = _one_of_each(agreeing, len(entries), found)
    _refuse(found)
    whole = tuple(sorted((row for part in parts for row in rows[id(part)]), key=_place(entries)))
    if [row.id for row in whole] != [entry.id for entry in entries]:  # every check above should have seen it
        raise MergeError("the shards' rows together are not the rows of the draw")
    return Merged(_document(parts, whole, entries, spec, facts), parts, tuple(found.notes))


def _of_one_run(records: Sequence[RunRecord], found: _Inspection) -> list[RunRecord]:
    """Keep the shards that agree with most of the others, and name in what the rest differ."""
    identities = [
        json.dumps({key: record.identity.get(key) for key in _SAME_RUN}, sort_keys=True) for record in records
    ]
    usual = Counter(identities).most_common(1)[0][0]
    reference = records[identities.index(usual)]
    agreeing = []
    for record, identity in zip(records, identities, strict=True):
        if identity == usual:
            agreeing.append(record)
            continue
        for key, (expected, got) in differences(reference.identity, record.identity, _SAME_RUN).items():
            found.faults.append(
                f"{_name(record)}: of another run: {key} is {shortened(got)},"
                f" and {shortened(expected)} in {reference.source}"
            )
    return agreeing


def _draw(records: Sequence[RunRecord], dataset: Dataset, found: _Inspection) -> tuple[DrawSpec, tuple[Entry, ...]]:
    identity = records[0].identity
    written = identity.get("spec")
    if not isinstance(written, Mapping):
        raise MergeError(f"{_name(records[0])}: not a shard of a draw (its rows were taken as they were)")
    if identity.get("dataset") != dataset.identity:
        raise MergeError(
            f"{_name(records[0])}: its data set is {shortened(identity.get('dataset'))}, and {dataset.identity} here"
        )
    try:
        spec = DrawSpec(
            tuple(written["categories"]),
            dict(written["category_pct"]),
            written["subset_floor"],
            tuple(written["subsets"]),
            written["limit"],
        )
        entries = select(spec, dataset)
    except (BfclError, LookupError, TypeError, ValueError) as error:
        raise MergeError(f"{_name(records[0])}: its draw cannot be read ({error})") from None
    expected = fingerprint(spec, (entry.id for entry in entries))
    if identity.get("draw_fingerprint") != expected:
        found.faults.append(
            f"{_name(records[0])}: its draw has the fingerprint {shortened(identity.get('draw_fingerprint'))},"
            f" and the same rule gives {expected} here"
        )
    return spec, entries


def _rows(record: RunRecord, entries: tuple[Entry, ...], *, allow_errors: bool, found: _Inspection) -> tuple[Row, ...]:
    """Read a shard's rows and check them against its draw, its counts and its scores."""
    try:
        rows, shard = record.document.rows(), record.shard
        verify(record.document)
    except (ResultError, ShardError) as error:
        found.faults.append(f"{_name(record)}: damaged: {error}")
        return ()
    if shard.count > len(entries):
        found.faults.append(f"{_name(record)}: a shard of {shard.count}, and the draw has {len(entries)} rows")
        return ()
    expected = {entry.id for entry in shard.take(entries)}
    got = {row.id for row in rows}
    faults = found.faults
    if missing := sorted(expected - got):
        faults.append(f"{_name(record)}: torn: {len(missing)} of {len(expected)} rows missing, such as {missing[0]}")
    if foreign := sorted(got - expected):
        faults.append(f"{_name(record)}: {len(foreign)} rows of no or another shard, such as {foreign[0]}")
    errors = record.document.details.error_types
    if never_run := errors.get(NOT_RUN, 0):
        faults.append(f"{_name(record)}: torn: {never_run} rows were never run; run it again with --reuse")
    failed = {name: count for name, count in errors.items() if name not in CHECKER_REASONS and name != NOT_RUN}
    if failed and not allow_errors:
        listed = ", ".join(f"{name} {count}" for name, count in sorted(failed.items()))
        faults.append(f"{_name(record)}: failed requests ({listed}); run it again with --reuse, or allow errors")
    return rows


def _one_of_each(records: Sequence[RunRecord], rows: int, found: _Inspection) -> tuple[RunRecord, ...]:
    shards: dict[Shard, list[RunRecord]] = {}
    for record in records:
        try:
            shard = record.shard
        except ShardError:
            continue  # already said
        if shard.count <= rows:  # as well
            shards.setdefault(shard, []).append(record)
    counts = Counter(shard.count for shard in shards)
    if not counts:
        return ()
    count = counts.most_common(1)[0][0]
    for shard, same in shards.items():
        if shard.count != count:
            found.faults.extend(
                f"{_name(record)}: overlaps: a shard of {shard.count}, the others of {count}" for record in same
            )
    chosen = []
    for index in range(count):
        same = shards.get(Shard(index, count), [])
        if not same:
            found.faults.append(f"shard {index}/{count}: missing")
        else:
            chosen.append(_newest(same, found))
    return tuple(chosen)


def _newest(same: Sequence[RunRecord], found: _Inspection) -> RunRecord:
    if len(same) == 1:
        return same[0]
    ordered = sorted(same, key=lambda record: record.started or "")
    *older, newest = ordered
    if any(record.started in (None, newest.started) for record in older):
        places = ", ".join(str(record.source) for record in same)
        found.faults.append(f"shard {newest.shard}: there {len(same)} times, and none is known to be newer: {places}")
    else:
        found.notes.extend(f"{_name(record)}: replaced by {newest.source}, which began later" for record in older)
    return newest


def _document(
    parts: Sequence[RunRecord],
    rows: tuple[Row, ...],
    entries: tuple[Entry, ...],
    spec: DrawSpec,
    facts: Mapping[str, Any],
) -> ResultDocument:
    documents = [part.document for part in parts]
    any_of = counts_once(documents[0])
    identity: dict[str, Any] = {
        **documents[0].extra,
        "fingerprint": fingerprint(spec, (entry.id for entry in entries)),
        "shard": str(Shard()),
    }
    for key in _PER_SHARD & identity.keys():
        identity[key] = _common(document.extra.get(key) for document in documents)
    identity |= {**facts, "shards": [_provenance(part) for part in parts]}
    return build_document(
        tally_rows(rows, any_of=any_of),
        on_error=OnError(str(identity["on_error"])),
        identity=identity,
        miss_types=_sum(document.details.miss_types for document in documents),
        error_types=_sum(document.details.error_types for document in documents),
        truncated=sum(document.details.truncated for document in documents),
        malformed_abstentions=sum(document.details.malformed_abstentions for document in documents),
        rows=rows,
        clusters=clusters(entries),
        any_of=any_of,
    )


def _provenance(part: RunRecord) -> dict[str, Any]:
    identity = part.identity
    own = {key: identity[key] for key in sorted({*_PER_SHARD, "fingerprint"} & identity.keys())}
    return {"shard": str(part.shard), "run": part.source.name, "started": part.started, **own}


def _common(values: Iterable[Any]) -> Any:
    """Give the value all agree on, else all of them in the order of the shards, each once."""
    distinct: list[Any] = []
    for value in values:  # lists among them, where a shard is itself a merged run
        if value not in distinct:
            distinct.append(value)
    return distinct[0] if len(distinct) == 1 else distinct


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    summed: Counter[str] = Counter()
    for count in counts:
        summed.update(count)
    return dict(summed)


def _place(entries: tuple[Entry, ...]) -> Callable[[Row], int]:
    places = {entry.id: number for number, entry in enumerate(entries)}
    return lambda row: places.get(row.id, len(places))


def _name(record: RunRecord) -> str:
    return f"shard {shortened(record.identity.get('shard', 'unknown'))} ({record.source})"


def _refuse(found: _Inspection) -> None:
    if found.faults:
        listed = "; ".join(found.faults)
        raise MergeError(f"{counted(len(found.faults), 'fault', 'faults')}: {listed}", tuple(found.faults))

"""Two runs of the same rows, row by row: what changed, how sure that is, and what could have been seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

from agentcompass_bfcl.aggregate import OVERALL, WEIGHTS, Combine, Node, OnError, inner_nodes
from agentcompass_bfcl.errors import BfclError, CompareError
from agentcompass_bfcl.identity import QUESTION_KEYS, differences
from agentcompass_bfcl.rows import Row, attempts_of
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.subsets import CATEGORIES
from agentcompass_bfcl.tally import Outcome
from agentcompass_bfcl.uncertainty import Z95, Strata, group, mcnemar, node_mean, node_variance
from agentcompass_bfcl.verification import counts_once, verify

# What may differ without making the comparison meaningless, and is worth a word.
_NOTED = ("harness", "concurrency", "versions", "scope", "source")
_POWER_80 = 0.8416212335729143  # of the standard normal distribution, 80 % lie below
_LONGEST_VALUE = 160


@dataclass(frozen=True, slots=True)
class Change:
    """A score's change from the first run to the second, as a fraction, with the paired variance of it.

    ``variance`` and ``clustered_variance`` are None where undefined: a single row, or a single cluster.
    """

    name: str
    difference: Fraction
    variance: Fraction | None
    clustered_variance: Fraction | None

    @property
    def standard_error(self) -> float | None:
        """Give the paired standard error, a fraction."""
        return None if self.variance is None else sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Give the 95 % interval of the difference: 1.96 paired standard errors either way, as fractions."""
        error = self.standard_error
        return None if error is None else (float(self.difference) - Z95 * error, float(self.difference) + Z95 * error)

    @property
    def detectable(self) -> float | None:
        """Give the least true difference these rows would have shown with 80 % power, a fraction."""
        return None if self.standard_error is None else (Z95 + _POWER_80) * self.standard_error


@dataclass(frozen=True, slots=True)
class Flip:
    """A row that came out otherwise."""

    id: str
    subset: str
    before: tuple[Outcome, ...]
    after: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class SubsetFlips:
    """How many rows of a subset became hits, stopped being hits, and stayed; its rows in all are their sum."""

    gained: int
    lost: int
    same: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The change from ``first`` to ``second``. ``p`` is None with several attempts a row."""

    first: RunRecord
    second: RunRecord
    changes: Mapping[str, Change]
    gained: tuple[Flip, ...]
    lost: tuple[Flip, ...]
    subsets: Mapping[str, SubsetFlips]
    rows: int
    left_out: int
    changed_rows: int
    p: Fraction | None
    unpaired_variance: Fraction | None
    notes: tuple[str, ...]

    @property
    def changed_share(self) -> Fraction:
        """Give the share of rows whose outcome changed in any way, errors included."""
        return Fraction(self.changed_rows, self.rows + self.left_out)


@dataclass(frozen=True, slots=True)
class RepeatSpread:
    """How much runs of one build differ with nothing changed: the most that was seen between any two of them."""

    runs: int
    changed_share: Fraction
    overall: Fraction
    normalized: Fraction | None
    pairs: tuple[Comparison, ...]


def compare(
    first: RunRecord, second: RunRecord, clusters: Mapping[str, str], *, allow: Collection[str] = ()
) -> Comparison:
    """Compare two runs of the same rows; ``clusters`` names each row's cluster by id.

    Differences are those of the rows themselves, so what both runs find hard cancels out. Under the policy
    ``exclude`` rows without a verdict in either run are left out. Raises ``CompareError`` when the runs were not
    asked the same, unless the facts that differ are all in ``allow``, or do not have the same rows, and
    ``ResultError`` for a result that does not agree with itself.
    """
    notes = _same_question(first, second, allow)
    pairs = _pairs(first, second)
    policy = OnError(str(first.identity["on_error"]))
    once = counts_once(first.document) or counts_once(second.document)
    counted = [pair for pair in pairs if policy is OnError.FAIL or not _has_error(pair)]
    if not counted:
        raise CompareError(f"{first.source}, {second.source}: no row has a verdict in both")
    plain = group((a.subset, a.id, value) for a, b in counted for value in _values(a, b, once=once))
    clustered = group((a.subset, clusters[a.id], value) for a, b in counted for value in _values(a, b, once=once))
    flips = [Flip(a.id, a.subset, a.outcomes, b.outcomes) for a, b in counted if _hits(a, once) != _hits(b, once)]
    gained = tuple(flip for flip in flips if _flip_hits(flip, once=once) > 0)
    lost = tuple(flip for flip in flips if _flip_hits(flip, once=once) < 0)
    single = once or attempts_of([row for pair in counted for row in pair]) == 1
    return Comparison(
        first=first,
        second=second,
        changes=_changes(plain, clustered),
        gained=gained,
        lost=lost,
        subsets=_subset_flips(counted, gained, lost),
        rows=len(counted),
        left_out=len(pairs) - len(counted),
        changed_rows=sum(a.outcomes != b.outcomes for a, b in pairs),
        p=mcnemar(len(gained), len(lost)) if single else None,
        unpaired_variance=_unpaired(counted, once=once),
        notes=tuple(notes),
    )


def repeat_spread(
    records: Sequence[RunRecord], clusters: Mapping[str, str], *, allow: Collection[str] = ()
) -> RepeatSpread:
    """Measure how much two or more runs of one build differ. Raises as ``compare``."""
    pairs = tuple(
        compare(first, second, clusters, allow=allow)
        for place, first in enumerate(records)
        for second in records[place + 1 :]
    )
    if not pairs:
        raise CompareError("what changes with nothing changed takes two runs at least")
    normalized = [abs(pair.changes["normalized"].difference) for pair in pairs if "normalized" in pair.changes]
    return RepeatSpread(
        runs=len(records),
        changed_share=max(pair.changed_share for pair in pairs),
        overall=max(abs(pair.changes["overall"].difference) for pair in pairs),
        normalized=max(normalized, default=None),
        pairs=pairs,
    )


def _same_question(first: RunRecord, second: RunRecord, allow: Collection[str]) -> list[str]:
    notes = []
    for key, (before, after) in differences(first.identity, second.identity, QUESTION_KEYS).items():
        said = f"{key} is {_short(before)} in {first.source} and {_short(after)} in {second.source}"
        if key not in allow:
            raise CompareError(f"not the same question: {said}; --allow {key} compares them all the same")
        notes.append(f"allowed to differ: {said}")
    if first.shard != second.shard:
        raise CompareError(
            f"shard {first.shard} ({first.source}) and shard {second.shard} ({second.source}): merge first"
        )
    for key, (before, after) in differences(first.identity, second.identity, _NOTED).items():
        notes.append(f"{key}: {_short(before)}, then {_short(after)}")
    return notes


def _pairs(first: RunRecord, second: RunRecord) -> list[tuple[Row, Row]]:
    sides = []
    for record in (first, second):
        try:
            verify(record.document)
            sides.append({row.id: row for row in record.document.rows()})
        except BfclError as error:
            raise CompareError(f"{record.source}: {error}; `rescore` gives a result that can be compared") from None
    before, after = sides
    if alone := sorted(before.keys() ^ after.keys()):
        raise CompareError(f"{len(alone)} rows are in one of the runs only, such as {alone[0]}")
    return [(row, after[sample_id]) for sample_id, row in before.items()]


def _values(before: Row, after: Row, *, once: bool) -> list[int]:
    """Give a row's differences, one an attempt: together they are as many hits as the second run has more."""
    if once:
        return [int(after.best is Outcome.HIT) - int(before.best is Outcome.HIT)]
    pairs = zip(after.outcomes, before.outcomes, strict=False)
    return [int(b is Outcome.HIT) - int(a is Outcome.HIT) for b, a in pairs]


def _hits(row: Row, once: bool) -> int:
    return int(row.best is Outcome.HIT) if once else sum(outcome is Outcome.HIT for outcome in row.outcomes)


def _flip_hits(flip: Flip, *, once: bool) -> int:
    before, after = (Row(flip.id, flip.subset, outcomes) for outcomes in (flip.before, flip.after))
    return _hits(after, once) - _hits(before, once)


def _has_error(pair: tuple[Row, Row]) -> bool:
    return any(Outcome.ERROR in row.outcomes for row in pair)


def _changes(plain: Strata, clustered: Strata) -> dict[str, Change]:
    nodes = {node.name: node for node in inner_nodes(WEIGHTS)}
    wanted = [OVERALL, WEIGHTS, *(nodes[name] for name in CATEGORIES)]
    wanted += [Node(name, Combine.POOLED, (name,)) for name in plain]
    changes = {}
    for node in wanted:
        difference = node_mean(node, plain)
        if difference is not None:
            variances = (node_variance(node, strata) for strata in (plain, clustered))
            changes[node.name] = Change(node.name, difference, *variances)
    return changes


def _unpaired(pairs: Iterable[tuple[Row, Row]], *, once: bool) -> Fraction | None:
    """Give the variance overall would have if the runs were of different rows: the sum of both runs' own."""
    variances = []
    for rows in zip(*pairs, strict=True):
        values = ((row.subset, row.id, hit) for row in rows for hit in _own_values(row, once=once))
        variances.append(node_variance(OVERALL, group(values)))
    known = [variance for variance in variances if variance is not None]
    return sum(known, Fraction(0)) if len(known) == len(variances) else None


def _own_values(row: Row, *, once: bool) -> list[int]:
    return [int(outcome is Outcome.HIT) for outcome in ((row.best,) if once else row.outcomes)]


def _subset_flips(
    pairs: Iterable[tuple[Row, Row]], gained: Iterable[Flip], lost: Iterable[Flip]
) -> dict[str, SubsetFlips]:
    rows, up, down = (Counter(items) for items in ((a.subset for a, _ in pairs), _subsets(gained), _subsets(lost)))
    return {name: SubsetFlips(up[name], down[name], rows[name] - up[name] - down[name]) for name in sorted(rows)}


def _subsets(flips: Iterable[Flip]) -> list[str]:
    return [flip.subset for flip in flips]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."

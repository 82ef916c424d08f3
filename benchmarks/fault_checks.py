"""What came of a run under a fault, held against the rule of the fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.tally import Outcome
from benchmarks.fault_kinds import Fault, unstruck, wants_no_call

_MOST_SHOWN = 5


def complaints(
    document: ResultDocument, entries: Sequence[Entry], struck: Mapping[str, Fault], requests: Mapping[str, int]
) -> list[str]:
    """Say where a finished run breaks the rules; nothing when it keeps them.

    ``struck`` are the faults by sample id, ``requests`` how often the endpoint was asked for each row.
    """
    return [
        *_row_complaints(document, entries, struck),
        *_count_complaints(document, entries, struck),
        *(f"{entry.id} was never asked for" for entry in entries if not requests.get(entry.id)),
    ]


def _row_complaints(document: ResultDocument, entries: Sequence[Entry], struck: Mapping[str, Fault]) -> Iterator[str]:
    came = {row.id: row.outcomes for row in document.rows()}
    if set(came) != {entry.id for entry in entries}:
        yield f"{len(came)} rows in the result, {len(entries)} in the draw, and not the same"
        return
    wrong = []
    for entry in entries:
        fault = struck.get(entry.id)
        wanted = unstruck(entry) if fault is None else fault.outcome(entry)
        if came[entry.id] != (wanted,):
            what = "unstruck" if fault is None else fault.name
            wrong.append(f"{entry.id} ({what}) is {'/'.join(came[entry.id])} instead of {wanted}")
    yield from wrong[:_MOST_SHOWN]
    if len(wrong) > _MOST_SHOWN:
        yield f"... {len(wrong)} rows in all"


def _count_complaints(document: ResultDocument, entries: Sequence[Entry], struck: Mapping[str, Fault]) -> Iterator[str]:
    counts, tallies = document.counts, document.tallies().values()
    hits = sum(tally.hits for tally in tallies)
    misses = sum(tally.n for tally in tallies) - hits
    if not hits + misses + counts.error == counts.total == len(entries):
        yield f"{hits} right, {misses} wrong, {counts.error} errors, {counts.total} in all; {len(entries)} were drawn"
    hit = [(entry, struck[entry.id]) for entry in entries if entry.id in struck]
    errors = Counter(fault.error for entry, fault in hit if fault.outcome(entry) is Outcome.ERROR)
    if document.details.error_types != errors:
        yield f"errors are {document.details.error_types} instead of {dict(errors)}"
    truncated = sum(fault.truncated for _, fault in hit)
    if document.details.truncated != truncated:
        yield f"{document.details.truncated} replies counted as truncated instead of {truncated}"
    malformed = sum(fault.malformed and wants_no_call(entry) for entry, fault in hit)
    if document.details.malformed_abstentions != malformed:
        yield f"{document.details.malformed_abstentions} abstentions counted as malformed instead of {malformed}"


def leaks(key: str, folder: Path, outputs: Sequence[str]) -> list[str]:
    """Name the files below a folder that hold the key, and say when an output does."""
    secret = key.encode()
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    found = [f"the API key is in {path.relative_to(folder)}" for path in files if secret in path.read_bytes()]
    return [*found, *("the API key was printed" for output in outputs if key in output)]

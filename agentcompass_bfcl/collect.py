"""From persisted attempts to a result: the same rows in, live or read back from disk, the same document out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.attempt import AttemptRecord, read_attempt_record
from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.errors import RunDirError, TallyError
from agentcompass_bfcl.rows import Row, tally_rows
from agentcompass_bfcl.tally import Outcome, Tally, attempt_outcome, attempt_payload

NOT_RUN = "not_run"
NO_VERDICT = "no_verdict"


@dataclass(frozen=True, slots=True)
class Collected:
    """What came of a run's rows, in issue order, and the kinds of their misses and errors."""

    rows: tuple[Row, ...]
    miss_types: Mapping[str, int]
    error_types: Mapping[str, int]
    truncated: int
    malformed_abstentions: int

    @property
    def by_attempt(self) -> dict[str, Tally]:
        """Count every attempt as a sample of its own."""
        return tally_rows(self.rows)

    @property
    def by_task(self) -> dict[str, Tally]:
        """Count a task once, as a hit if any attempt hit."""
        return tally_rows(self.rows, any_of=True)


def collect(
    details: Sequence[Mapping[str, Any]], expected: Sequence[Entry], k: int, *, any_of: bool = False
) -> Collected:
    """Count a run's persisted tasks against the rows it had to score.

    Rows that were drawn and never run count as errors of type ``not_run``: a killed run must not look like a complete
    smaller one. A finished attempt without a verdict is an error of type ``no_verdict``. Scores come from ``status``,
    ``category`` and ``metrics`` alone, which the host keeps as they were. Raises ``TallyError`` for a task counted
    twice or outside ``expected``, and ``RunDirError`` naming the task for an unreadable attempt record.

    ``any_of`` says that attempts end with the first hit (the host's strategy ``pass``): later ones are not missing.
    """
    _refuse_foreign(details, expected)
    by_id = {str(detail.get("task_id")): detail for detail in details}
    rows = tuple(_row(entry, by_id.get(entry.id), k, any_of=any_of) for entry in expected)
    miss_types: Counter[str] = Counter()
    error_types: Counter[str] = Counter()
    truncated = malformed = 0
    for task_id, payload in _payloads(details, k):
        record = _record(task_id, payload)
        if record is not None:
            miss_types.update([record.error_type] if record.error_type else [])
            truncated += record.truncated
            malformed += bool(record.malformed_call)
        if attempt_outcome(payload) is Outcome.ERROR:
            error_types[first_issue_code(payload)] += 1
    not_run = sum(entry.id not in by_id for entry in expected) if any_of else _errors(rows) - error_types.total()
    if not_run > 0:
        error_types[NOT_RUN] = not_run
    return Collected(rows, miss_types, error_types, truncated, malformed)


def _row(entry: Entry, detail: Mapping[str, Any] | None, k: int, *, any_of: bool) -> Row:
    payloads = [None if detail is None else attempt_payload(detail, attempt) for attempt in range(1, k + 1)]
    if any_of:
        payloads = [payload for payload in payloads if payload is not None] or [None]
    return Row(entry.id, entry.subset, tuple(attempt_outcome(payload) for payload in payloads))


def _errors(rows: Iterable[Row]) -> int:
    return sum(outcome is Outcome.ERROR for row in rows for outcome in row.outcomes)


def first_issue_code(payload: Mapping[str, Any]) -> str:
    """Name why an attempt failed: its first issue that is more than a warning, or its status."""
    codes = [issue["code"] for issue in payload.get("issues") or [] if issue.get("severity") != "warning"]
    if codes:
        return str(codes[0])
    return NO_VERDICT if payload.get("status") == "completed" else str(payload.get("status"))


def _payloads(details: Iterable[Mapping[str, Any]], k: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for detail in details:
        for attempt in range(1, k + 1):
            payload = attempt_payload(detail, attempt)
            if payload is not None:
                yield str(detail.get("task_id")), payload


def _record(task_id: str, payload: Mapping[str, Any]) -> AttemptRecord | None:
    try:
        return read_attempt_record(payload)
    except RunDirError as error:
        raise RunDirError(f"task {task_id}: {error}") from None


def _refuse_foreign(details: Iterable[Mapping[str, Any]], expected: Iterable[Entry]) -> None:
    subset_of = {entry.id: entry.subset for entry in expected}
    seen: set[str] = set()
    foreign = []
    for detail in details:
        task_id = str(detail.get("task_id"))
        if task_id in seen:
            raise TallyError(f"task {task_id} is counted twice")
        seen.add(task_id)
        if subset_of.get(task_id) != detail.get("category"):
            foreign.append(task_id)
    if foreign:
        shown = ", ".join(foreign[:5])
        raise TallyError(
            f"{len(foreign)} rows do not belong to this run's draw and shard, or not to their subset: {shown}"
        )

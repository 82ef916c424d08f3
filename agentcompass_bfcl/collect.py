"""From persisted attempts to a result: the same rows in, live or read back from disk, the same document out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.attempt import AttemptRecord, read_attempt_record
from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.errors import RunDirError, TallyError
from agentcompass_bfcl.tally import Outcome, Tally, attempt_outcome, attempt_payload, count, tally_attempts, union

NOT_RUN = "not_run"
NO_VERDICT = "no_verdict"


@dataclass(frozen=True, slots=True)
class Collected:
    """The counts of a run. ``by_attempt`` counts every attempt, ``by_task`` a task once, a hit if any attempt hit."""

    by_attempt: Mapping[str, Tally]
    by_task: Mapping[str, Tally]
    miss_types: Mapping[str, int]
    error_types: Mapping[str, int]
    truncated: int


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
    never_run = _never_run(details, expected)
    by_attempt = union(tally_attempts(details, k), *[never_run] * k)
    miss_types: Counter[str] = Counter()
    error_types: Counter[str] = Counter()
    truncated = 0
    for task_id, payload in _payloads(details, k):
        record = _record(task_id, payload)
        if record is not None:
            miss_types.update([record.error_type] if record.error_type else [])
            truncated += record.truncated
        if attempt_outcome(payload) is Outcome.ERROR:
            error_types[first_issue_code(payload)] += 1
    errors = never_run if any_of else by_attempt
    not_run = sum(tally.errors for tally in errors.values()) - (0 if any_of else error_types.total())
    if not_run > 0:
        error_types[NOT_RUN] = not_run
    return Collected(
        by_attempt=by_attempt,
        by_task=union(tally_attempts(details, k, any_of=True), never_run),
        miss_types=miss_types,
        error_types=error_types,
        truncated=truncated,
    )


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
    places = ((str(detail.get("task_id")), detail.get("category")) for detail in details)
    foreign = [task_id for task_id, category in places if subset_of.get(task_id) != category]
    if foreign:
        shown = ", ".join(foreign[:5])
        raise TallyError(
            f"{len(foreign)} rows do not belong to this run's draw and shard, or not to their subset: {shown}"
        )


def _never_run(details: Iterable[Mapping[str, Any]], expected: Iterable[Entry]) -> dict[str, Tally]:
    run = {str(detail.get("task_id")) for detail in details}
    return count((entry.subset, Outcome.ERROR) for entry in expected if entry.id not in run)

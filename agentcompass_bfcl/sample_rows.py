"""A finished run row by row, as exporters write it: from its directory, or from a result that is all there is."""

from __future__ import annotations

from dataclasses import dataclass

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.drawn_rows import drawn_attempts
from agentcompass_bfcl.run_dir import Attempt
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.tally import Outcome

_VERDICTS = {Outcome.HIT: "hit", Outcome.MISS: "miss", Outcome.ERROR: "unscored"}


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One attempt at one sample. ``kind`` is upstream's error type of a miss, or the code of an error.

    What the endpoint did not say, or a result in JSON does not hold, is None.
    """

    id: str
    subset: str
    attempt: int
    verdict: str
    kind: str | None
    detail: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_ms: float | None = None


def sample_rows(record: RunRecord, dataset: Dataset) -> list[SampleRow]:
    """List every attempt at every drawn row. Raises ``RunDirError`` or ``ResultError`` for what cannot be read."""
    if record.is_directory:
        return [_of_attempt(attempt) for attempt in drawn_attempts(record.source, dataset)]
    return [
        SampleRow(row.id, row.subset, number, _VERDICTS[outcome], None)
        for row in record.document.rows()
        for number, outcome in enumerate(row.outcomes, 1)
    ]


def _of_attempt(attempt: Attempt) -> SampleRow:
    record = attempt.record
    detail = attempt.problem or ("" if record is None else record.detail)
    return SampleRow(
        id=attempt.sample_id,
        subset=attempt.subset,
        attempt=attempt.number,
        verdict=attempt.verdict,
        kind=attempt.kind or None,
        detail=detail or None,
        finish_reason=None if record is None else record.finish_reason,
        prompt_tokens=None if record is None else record.prompt_tokens,
        completion_tokens=None if record is None else record.completion_tokens,
        latency_ms=None if record is None else record.latency_ms,
    )

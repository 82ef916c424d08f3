"""Judge stored outputs again: those of official result files, or of a run that is over. No model is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl import __version__
from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.collect import NO_VERDICT, NOT_RUN
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.errors import TallyError
from agentcompass_bfcl.official import checker_identity
from agentcompass_bfcl.official_results import StoredRow
from agentcompass_bfcl.result import ResultDocument, build_document
from agentcompass_bfcl.rows import Row, tally_rows
from agentcompass_bfcl.run_dir import Attempt
from agentcompass_bfcl.run_request import RunRequest
from agentcompass_bfcl.scope import Drawn, Scope, expected_rows, present_rows, scope_identity
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict
from agentcompass_bfcl.settings import RunSettings
from agentcompass_bfcl.tally import Outcome
from agentcompass_bfcl.verdicts import VerdictRow

type Json = Any  # a parsed JSON value
type Judge = Callable[[Entry, Json], Verdict]


@dataclass(frozen=True, slots=True)
class Rescored:
    """The result, the verdict on every row in scope, and how many rows were outside.

    Verdicts come in the order of the input; rows that are missing come last.
    """

    document: ResultDocument
    verdicts: tuple[VerdictRow, ...]
    outside: int


def rescore(
    rows: Iterable[StoredRow],
    dataset: Dataset,
    judge: Judge,
    *,
    scope: Scope,
    facts: Mapping[str, Any],
    on_error: OnError = OnError.FAIL,
    keep: Callable[[StoredRow, VerdictRow], None] | None = None,
) -> Rescored:
    """Judge stored rows and count them against those that have to be there.

    A row in scope that is missing is an error of type ``not_run``; one outside is passed over. ``facts`` are added to
    the result's identity: mode, model, source. Rows are judged as they come, given to ``keep`` and not held here.
    Raises ``DatasetError`` for an id that does not exist, ``TallyError`` for one that comes twice.
    """
    expected = expected_rows(scope, dataset)
    wanted = None if expected is None else {entry.id for entry in expected}
    verdicts: dict[str, VerdictRow] = {}
    outside = truncated = 0
    for row in rows:
        entry = dataset.entry(row.id)
        if wanted is not None and row.id not in wanted:
            outside += 1
            continue
        if row.id in verdicts:
            raise TallyError(f"{row.id} is counted twice")
        verdicts[row.id] = VerdictRow(row.id, entry.subset, row.failure or judge(entry, row.output))
        truncated += row.truncated
        if keep is not None:
            keep(row, verdicts[row.id])
    judged = tuple(verdicts.values())
    entries = present_rows(verdicts, dataset) if expected is None else expected
    counted = tuple(Row(entry.id, entry.subset, (_outcome(verdicts.get(entry.id)),)) for entry in entries)
    missing = [
        VerdictRow(entry.id, entry.subset, Unscored(NOT_RUN, "not among the stored outputs"))
        for entry in entries
        if entry.id not in verdicts
    ]
    errors = Counter(row.verdict.reason for row in judged if isinstance(row.verdict, Unscored))
    identity = {
        **scope_identity(scope, entries, dataset),
        "dataset": dataset.identity,
        "checker": checker_identity(),
        "on_error": on_error.value,
        "versions": {"agentcompass-bfcl": __version__},
        **facts,
    }
    document = build_document(
        tally_rows(counted),
        on_error=on_error,
        identity=identity,
        miss_types=Counter(row.verdict.error_type for row in judged if isinstance(row.verdict, Miss)),
        error_types=errors + Counter({NOT_RUN: len(missing)}),
        truncated=truncated,
        malformed_abstentions=sum(isinstance(row.verdict, Hit) and row.verdict.malformed_call for row in judged),
        rows=counted,
        clusters=clusters(entries),
    )
    return Rescored(document, (*judged, *missing), outside)


def result_facts(model: str, settings: RunSettings, *, official_errors: bool) -> dict[str, Any]:
    """Give what is known of results that bfcl-eval generated; how they were asked for is not."""
    return {
        "mode": settings.mode.value,
        "strip_think": settings.strip_think,
        "model": model,
        "source": "bfcl-eval results",
        "official_errors": official_errors,
    }


def run_rows(attempts: Iterable[Attempt]) -> Iterator[StoredRow]:
    """Give a run's stored outputs, and for each failed request why there is none."""
    for attempt in attempts:
        if attempt.record is None:
            yield StoredRow(attempt.sample_id, None, Unscored(attempt.error_code or NO_VERDICT, attempt.problem))
        else:
            yield StoredRow(
                attempt.sample_id,
                attempt.record.output,
                truncated=attempt.record.truncated,
                prompt_tokens=attempt.record.prompt_tokens,
                completion_tokens=attempt.record.completion_tokens,
                latency_ms=attempt.record.latency_ms,
            )


def run_scope(request: RunRequest) -> Drawn:
    """Give the rows a run had to score."""
    return Drawn(request.settings.spec, request.settings.shard, request.sample_ids)


def run_facts(request: RunRequest) -> dict[str, Any]:
    """Give what a run's request says about a result of its outputs, in the run's own words."""
    choice = request.settings.tool_choice
    return {
        "mode": request.settings.mode.value,
        "tool_choice": None if choice is None else choice.value,
        "strip_think": request.settings.strip_think,
        "request": dict(request.params),
        "model": request.model,
        "base_url": request.base_url,
        "harness": request.harness,
        "harness_params": dict(request.harness_params),
        "concurrency": request.concurrency,
        "attempts": dict(request.attempts),
        "source": "outputs of an AgentCompass run",
    }


def judged_attempt(row: StoredRow, judged: VerdictRow) -> Attempt:
    """Give a judged row as the attempt it was, for a report; the output of a hit is not kept, nobody looks at it."""
    code, problem = None, ""
    match judged.verdict:
        case Unscored(reason, detail) if row.failure is not None or reason == NOT_RUN:
            return Attempt(row.id, judged.subset, 1, None, reason, detail)
        case Unscored(reason, detail):
            verdict: dict[str, Any] = {"verdict": "unscored", "reason": reason, "detail": detail}
            code, problem = reason, detail
        case Miss(error_type, detail):
            verdict = {"verdict": "miss", "error_type": error_type, "detail": detail}
        case Hit():
            verdict = {"verdict": "hit"}
    record = AttemptRecord(
        **verdict,
        output=None if verdict["verdict"] == "hit" else row.output,
        finish_reason="length" if row.truncated else None,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        latency_ms=row.latency_ms,
    )
    return Attempt(row.id, judged.subset, 1, record, code, problem)


def _outcome(row: VerdictRow | None) -> Outcome:
    match row:
        case VerdictRow(verdict=Hit()):
            return Outcome.HIT
        case VerdictRow(verdict=Miss()):
            return Outcome.MISS
        case _:  # unscored, or not there
            return Outcome.ERROR

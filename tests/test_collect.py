from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.attempt import EXTRA_KEY, AttemptRecord, attempt_record, read_attempt_record
from agentcompass_bfcl.collect import collect, first_issue_code
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.errors import RunDirError, TallyError
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict
from agentcompass_bfcl.tally import Tally


def persisted(verdict: Verdict, finish_reason: str = "stop") -> dict[str, Any]:
    """Write an attempt as the host persists it: the record is text below ``meta.benchmark``."""
    record = attempt_record(verdict, [], {"stop_reason": finish_reason}, 12.5).model_dump_json(exclude_none=True)
    meta = {"benchmark": {EXTRA_KEY: record}, "harness": {}}
    match verdict:
        case Unscored(reason, detail):
            issue = {"severity": "error", "phase": "evaluate", "code": reason, "message": detail}
            return {"status": "eval_error", "metrics": {}, "issues": [issue], "meta": meta}
        case _:
            metrics = {"correct": isinstance(verdict, Hit)}
            return {"status": "completed", "metrics": metrics, "issues": [], "meta": meta}


def failed(*codes: str, status: str = "run_error", severity: str = "error") -> dict[str, Any]:
    issues = [{"severity": severity, "phase": "run", "code": code, "message": code} for code in codes]
    return {"status": status, "metrics": {}, "issues": issues, "meta": {"benchmark": {}}}


HIT = persisted(Hit())
MISS = persisted(Miss("value_error:string", "not that"))
BROKEN = persisted(Unscored("checker_raised", "OverflowError"))


def task(entry: Entry, *attempts: dict[str, Any]) -> dict[str, Any]:
    return {
        "task_id": entry.id,
        "category": entry.subset,
        "attempts": {str(number): attempt for number, attempt in enumerate(attempts, 1)},
    }


@pytest.fixture(scope="module")
def rows(dataset: Dataset) -> list[Entry]:
    """Six rows of two subsets."""
    return [*dataset.rows["irrelevance"][:2], *dataset.rows["multiple"][:4]]


def test_verdicts_errors_and_their_kinds_are_counted(rows: list[Entry]) -> None:
    attempts = [HIT, BROKEN, MISS, MISS, failed("transport_timeout", "later"), HIT]
    found = collect([task(row, attempt) for row, attempt in zip(rows, attempts, strict=True)], rows, 1)
    assert found.by_attempt == {"irrelevance": Tally(1, 1, 1), "multiple": Tally(1, 3, 1)}
    assert found.by_task == found.by_attempt
    assert found.miss_types == {"value_error:string": 2}
    assert found.error_types == {"checker_raised": 1, "transport_timeout": 1}
    assert found.truncated == 0


def test_rows_that_were_never_run_are_errors_of_their_own_kind(rows: list[Entry]) -> None:
    details = [task(rows[0], HIT), task(rows[2], failed("http_500")), task(rows[3])]
    found = collect(details, rows, 1)
    assert found.by_attempt == found.by_task == {"irrelevance": Tally(1, 1, 1), "multiple": Tally(0, 0, 4)}
    assert found.error_types == {"http_500": 1, "not_run": 4}


def test_a_run_of_which_nothing_was_persisted_is_all_errors(rows: list[Entry]) -> None:
    found = collect([], rows, 2)
    assert found.by_attempt == {"irrelevance": Tally(errors=4), "multiple": Tally(errors=8)}
    assert found.by_task == {"irrelevance": Tally(errors=2), "multiple": Tally(errors=4)}
    assert found.error_types == {"not_run": 12}


def test_a_row_from_elsewhere_is_refused_by_name(rows: list[Entry], dataset: Dataset) -> None:
    foreign = dataset.rows["multiple"][50]
    with pytest.raises(TallyError, match=r": multiple_50$"):
        collect([task(foreign, HIT)], rows[2:3], 1)
    with pytest.raises(TallyError, match=rows[0].id):
        collect([{**task(rows[0], HIT), "category": "multiple"}], rows, 1)


def test_several_attempts_are_all_counted_and_a_task_once(rows: list[Entry]) -> None:
    details = [task(rows[2], MISS, HIT), task(rows[3], failed("http_500"), MISS), task(rows[4], HIT)]
    found = collect(details, rows[2:], 2)
    assert found.by_attempt == {"multiple": Tally(2, 4, 4)}
    assert found.by_task == {"multiple": Tally(2, 3, 1)}
    assert found.error_types == {"http_500": 1, "not_run": 3}
    assert found.miss_types == {"value_error:string": 2}


def test_attempts_left_out_after_a_hit_are_not_missing(rows: list[Entry]) -> None:
    first, second = rows[:2]
    details = [task(first, persisted(Hit())), task(second, persisted(Miss("x:y", "")), persisted(Hit()))]
    assert collect(details, rows[:2], 2, any_of=True).error_types == {}
    assert collect(details, rows[:2], 2).error_types == {"not_run": 1}
    assert collect(details, rows[:3], 2, any_of=True).error_types == {"not_run": 1}


def test_replies_cut_off_at_the_token_limit_are_counted_and_scored_as_they_stand(rows: list[Entry]) -> None:
    cut_hit, cut_miss = persisted(Hit(), "length"), persisted(Miss("ast_decoder:decoder_failed", ""), "length")
    found = collect([task(rows[0], cut_hit), task(rows[2], cut_miss), task(rows[3], HIT)], rows[:1] + rows[2:4], 1)
    assert found.truncated == 2
    assert found.by_attempt == {"irrelevance": Tally(1, 1), "multiple": Tally(1, 2)}


def test_a_finished_attempt_without_a_verdict_is_an_error_and_not_a_row_never_run(rows: list[Entry]) -> None:
    found = collect([task(rows[2], {**HIT, "metrics": {"correct": 1}})], rows[2:3], 1)
    assert found.by_attempt == {"multiple": Tally(errors=1)}
    assert found.error_types == {"no_verdict": 1}


def test_only_the_verdict_the_host_kept_counts_and_not_the_record_beside_it(rows: list[Entry]) -> None:
    contradiction = {**HIT, "metrics": {"correct": False}}
    without_record = {**HIT, "meta": None}
    found = collect([task(rows[2], contradiction), task(rows[3], without_record)], rows[2:4], 1)
    assert found.by_attempt == {"multiple": Tally(1, 2)}


def test_collecting_changes_nothing_it_is_given(rows: list[Entry]) -> None:
    details = [task(row, attempt) for row, attempt in zip(rows, [HIT, BROKEN, MISS, HIT], strict=False)]
    before = copy.deepcopy(details)
    collect(details, rows, 2)
    assert details == before


def test_a_task_counted_twice_is_refused(rows: list[Entry]) -> None:
    with pytest.raises(TallyError, match=f"task {rows[0].id} is counted twice"):
        collect([task(rows[0], HIT), task(rows[0], HIT)], rows, 1)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "Invalid JSON"),
        ("[]", "the record: "),
        ("{}", "verdict: Field required"),
        ('{"verdict": "won"}', "verdict: "),
        ('{"verdict": "hit", "prompt_tokens": "many"}', "prompt_tokens: "),
        ({"verdict": "hit"}, "JSON"),
    ],
)
def test_an_unreadable_record_is_refused_with_its_task_and_fault(text: Any, fault: str, rows: list[Entry]) -> None:
    unreadable = {**HIT, "meta": {"benchmark": {EXTRA_KEY: text}}}
    with pytest.raises(RunDirError, match=f"task {rows[1].id}: unreadable attempt record: .*{fault}") as refusal:
        collect([task(rows[0], HIT), task(rows[1], unreadable)], rows, 1)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (failed("http_500", "http_429"), "http_500"),
        (failed(status="run_error"), "run_error"),
        ({"status": "error"}, "error"),
        ({"status": "error", "issues": None}, "error"),
        (failed("slow", severity="warning"), "run_error"),
        ({**failed("slow", severity="warning"), "status": "completed"}, "no_verdict"),
        ({"status": "error", "issues": [{"severity": "warning", "code": "slow"}, *BROKEN["issues"]]}, "checker_raised"),
    ],
)
def test_an_attempt_failed_for_its_first_issue_that_is_no_warning(payload: dict[str, Any], code: str) -> None:
    assert first_issue_code(payload) == code


VERDICTS = st.one_of(
    st.just(Hit()), st.builds(Miss, st.text(min_size=1), st.text()), st.builds(Unscored, st.text(), st.text())
)
OUTPUTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(verdict=VERDICTS, output=OUTPUTS, tokens=st.integers(0, 10**6), latency=st.none() | st.floats(0, 1e6))
def test_a_record_reads_back_from_where_the_host_keeps_it(
    verdict: Verdict, output: Any, tokens: int, latency: float | None
) -> None:
    raw_result = {"stop_reason": "length", "usage": {"prompt_tokens": tokens, "completion_tokens": 0}}
    record = attempt_record(verdict, output, raw_result, latency)
    payload = {"meta": {"benchmark": {EXTRA_KEY: record.model_dump_json(exclude_none=True)}}}
    assert read_attempt_record(payload) == record
    assert record.truncated
    assert record.verdict == type(verdict).__name__.lower()
    assert (record.prompt_tokens, record.completion_tokens, record.latency_ms) == (tokens, 0, latency)


@pytest.mark.parametrize(
    ("raw_result", "latency", "facts"),
    [
        ({}, None, (None, None, None, None)),
        ({"usage": None, "stop_reason": None}, "fast", (None, None, None, None)),
        ({"usage": {"prompt_tokens": 3}, "stop_reason": "stop"}, 5, ("stop", 3, None, 5.0)),
        ({"usage": {"prompt_tokens": -3, "completion_tokens": True}}, 0.5, (None, None, None, 0.5)),
        ({"usage": {"prompt_tokens": 3.5, "completion_tokens": "4"}, "stop_reason": 7}, None, (None, None, None, None)),
        ({"usage": [1]}, None, (None, None, None, None)),
    ],
)
def test_facts_an_endpoint_does_not_give_are_absent_and_not_zero(
    raw_result: dict[str, Any], latency: Any, facts: tuple[Any, ...]
) -> None:
    record = attempt_record(Hit(), [], raw_result, latency)
    assert (record.finish_reason, record.prompt_tokens, record.completion_tokens, record.latency_ms) == facts


@pytest.mark.parametrize(
    "payload",
    [{}, {"meta": None}, {"meta": {}}, {"meta": {"benchmark": None}}, {"meta": {"benchmark": {"other": "1"}}}],
)
def test_an_attempt_without_a_record_has_none(payload: dict[str, Any]) -> None:
    assert read_attempt_record(payload) is None


def test_a_record_written_by_a_later_version_can_still_be_read() -> None:
    payload = {"meta": {"benchmark": {EXTRA_KEY: '{"verdict": "hit", "new_fact": 1}'}}}
    assert read_attempt_record(payload) == AttemptRecord(verdict="hit")


def test_a_record_with_half_a_surrogate_pair_can_be_kept_in_a_file() -> None:
    record = AttemptRecord(verdict="hit", output="x\ud800y")
    text = record.to_text()
    text.encode("utf-8")
    assert read_attempt_record({"meta": {"benchmark": {EXTRA_KEY: text}}}) == record

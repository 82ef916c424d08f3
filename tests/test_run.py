"""Whole runs inside AgentCompass, against the endpoint on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentcompass_bfcl.attempt import read_attempt_record
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint import Kind, Mistakes, RunningEndpoint
from agentcompass_bfcl.errors import EndpointError
from agentcompass_bfcl.host import HostRun, run_in_host
from agentcompass_bfcl.identity import expected_entries
from agentcompass_bfcl.reference import UNPASSABLE
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.run_dir import iter_details
from agentcompass_bfcl.settings import parse_settings
from agentcompass_bfcl.subsets import Rule, subset_named
from agentcompass_bfcl.tally import Outcome, Tally, attempt_outcome, count, union
from host_runs import EVERY_MISTAKE, MARKER_KEY, NO_ANSWER, Finished, MakeEndpoint, finish, planned, quick_run

pytestmark = [pytest.mark.usefixtures("agentcompass"), pytest.mark.slow]


def drawn(dataset: Dataset, **params: Any) -> tuple[Entry, ...]:
    return expected_entries(parse_settings({"draw": "mini", **params}), dataset, None)


def planned_outcome(entry: Entry, mistakes: Mistakes = EVERY_MISTAKE) -> Outcome:
    kind = planned(entry, mistakes)
    if kind in NO_ANSWER:
        return Outcome.ERROR
    return Outcome.HIT if kind is None and entry.id not in UNPASSABLE else Outcome.MISS


def planned_tallies(rows: tuple[Entry, ...], mistakes: Mistakes = EVERY_MISTAKE) -> dict[str, Tally]:
    return count((entry.subset, planned_outcome(entry, mistakes)) for entry in rows)


# What upstream calls the mistake, by the rule that judges the row; a call too few or too many shows in several ways.
SHOWN_AS: Mapping[tuple[Rule, Kind], tuple[str, ...]] = {
    (Rule.AST, Kind.WRONG_VALUE): (
        "value_error:",
        "type_error:",
        "multiple_function_checker:",
        "parallel_function_checker",
    ),
    (Rule.AST, Kind.WRONG_FUNCTION): ("simple_function_checker:wrong_func_name", "parallel_function_checker"),
    (Rule.AST, Kind.MISSING_CALL): ("ast_decoder:decoder_failed", "parallel_function_checker_no_order:wrong_count"),
    (Rule.AST, Kind.EXTRA_CALL): (
        *("simple_function_checker:wrong_count", "multiple_function_checker:wrong_count"),
        "parallel_function_checker_no_order:wrong_count",
    ),
    (Rule.AST, Kind.MALFORMED_ARGUMENTS): ("ast_decoder:decoder_failed",),
    (Rule.IRRELEVANCE, Kind.EXTRA_CALL): ("irrelevance_error:decoder_success",),
    (Rule.RELEVANCE, Kind.MISSING_CALL): ("relevance_error:decoder_failed",),
}
ISSUE_CODES = {Kind.HTTP_500: "transport_http_500", Kind.STALL: "transport_timeout"}


def test_every_planned_mistake_is_the_right_miss_or_an_error_and_none_a_hit(lean: Finished, dataset: Dataset) -> None:
    assert lean.ended == ""
    attempts, rows = lean.attempts, drawn(dataset)
    assert sorted(attempts) == sorted(entry.id for entry in rows)
    met: Counter[Kind | None] = Counter()
    for entry in rows:
        attempt, kind = attempts[entry.id], planned(entry)
        met[kind] += 1
        assert attempt_outcome(attempt) is planned_outcome(entry), entry.id
        if kind in NO_ANSWER:
            assert (attempt["status"], attempt["metrics"]) == ("run_error", {})
            assert [found["code"] for found in attempt["issues"]] == [ISSUE_CODES[kind]]
            assert read_attempt_record(attempt) is None
        else:
            record = read_attempt_record(attempt)
            assert record is not None
            assert attempt["issues"] == []
            if kind is not None:
                shown_as = SHOWN_AS[subset_named(entry.subset).rule, kind]
                assert (record.error_type or "").startswith(shown_as), (entry.id, kind, record.error_type)
    assert set(met) == {None, *Kind}


@pytest.mark.parametrize("kind", NO_ANSWER)
def test_a_request_without_an_answer_is_an_error_on_an_irrelevance_row_too(
    kind: Kind, lean: Finished, dataset: Dataset
) -> None:
    rows = [
        entry
        for entry in drawn(dataset)
        if planned(entry) is kind and subset_named(entry.subset).rule is Rule.IRRELEVANCE
    ]
    assert rows
    for entry in rows:
        assert attempt_outcome(lean.attempts[entry.id]) is Outcome.ERROR
        assert lean.result.details.subsets[entry.subset].errors > 0


def test_the_endpoint_was_asked_once_for_each_row_with_the_parameters_of_the_run(lean: Finished) -> None:
    assert lean.stats["requests"] == 192
    assert set(lean.stats["rows"].values()) == {1}
    last = lean.stats["last_request"]
    assert (last["model"], last["temperature"], last["seed"], last["top_k"]) == ("some-model", 0.25, 7, 1)


def test_the_tallies_are_those_of_the_planned_mistakes(lean: Finished, dataset: Dataset) -> None:
    result = lean.result
    assert result.tallies() == planned_tallies(drawn(dataset))
    outcomes = Counter(planned_outcome(entry) for entry in drawn(dataset))
    assert result.counts.model_dump() == {
        "total": 192,
        "evaluated": outcomes[Outcome.HIT] + outcomes[Outcome.MISS],
        "error": outcomes[Outcome.ERROR],
    }
    assert sum(result.details.miss_types.values()) == outcomes[Outcome.MISS]
    assert sum(result.details.error_types.values()) == outcomes[Outcome.ERROR]
    assert result.metrics["overall_accuracy"] == pytest.approx(100 * outcomes[Outcome.HIT] / 192, abs=0.005)


def table_under(title: str, markdown: str) -> list[dict[str, str]]:
    """Read the table below a heading of summary.md."""
    lines = [line for line in markdown.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines() if "|" in line]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_text_table_metrics_json_and_summary_md_say_the_same(lean: Finished) -> None:
    from agentcompass_bfcl.metric_result import MetricResult

    result = lean.result
    report = MetricResult.model_validate(lean.metrics_json())
    assert report.document == result
    assert (report.metrics, report.counts, report.details) == (
        result.metrics,
        result.counts.model_dump(),
        result.details.model_dump(),
    )
    headline = report.series[0].categories
    summary = (lean.run_dir / "summary.md").read_text()
    markdown = {row["category"].replace("\\", ""): row for row in table_under("Details: category", summary)}
    lines = [line.split() for line in render_text(result).split("\n\n")[0].splitlines()[2:]]
    text = {name: (int(hits), int(n), int(errors), accuracy) for name, _, hits, n, errors, accuracy in lines}
    assert set(markdown) == set(text) == set(headline) == set(result.details.subsets)
    for name, subset in result.details.subsets.items():
        assert subset.accuracy is not None
        assert text[name] == (subset.hits, subset.n, subset.errors, f"{subset.accuracy:.2f}")
        counts = headline[name].counts
        assert (counts.evaluated, counts.error, counts.total) == (subset.n, subset.errors, subset.n + subset.errors)
        row = markdown[name]
        assert (int(row["evaluated"]), int(row["error"])) == (subset.n, subset.errors)
        assert 100 * float(row["correct"]) == pytest.approx(subset.accuracy, abs=0.006)
        assert 100 * float(headline[name].value) == pytest.approx(subset.accuracy, abs=0.006)
    values = {row["Metric"].replace("\\", ""): float(row["Value"]) for row in table_under("Metrics", summary)}
    assert 100 * values["correct"] == pytest.approx(result.metrics["overall_accuracy"], abs=0.006)
    score = result.metrics["normalized_single_turn_score"]
    assert 100 * values["normalized_single_turn_score"] == pytest.approx(score, abs=0.006)
    for name, value in result.details.categories.items():
        assert 100 * values[name] == pytest.approx(value, abs=0.006)


def test_progress_json_tells_the_end_and_events_are_written_only_on_request(
    lean: Finished, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    progress = json.loads((lean.run_dir / "progress.json").read_bytes())
    assert (progress["status"], progress["finished_tasks"], progress["total_tasks"]) == ("completed", 192, 192)
    assert (progress["model"], progress["harness"]) == ("some-model", "bfcl_chat")
    assert not (lean.run_dir / "progress.jsonl").exists()
    with endpoint_with() as endpoint:
        params = {"draw": "mini", "limit": 12}
        found = finish(quick_run(endpoint.base_url, tmp_path, benchmark_params=params, events=True), endpoint)
    events = [json.loads(line)["event"] for line in (found.run_dir / "progress.jsonl").read_text().splitlines()]
    assert events.count("task_finished") == 12


def test_the_api_key_is_in_no_file_of_the_run(lean: Finished) -> None:
    files = [path for path in lean.run_dir.parents[2].rglob("*") if path.is_file()]
    assert len(files) > 192
    assert [path for path in files if MARKER_KEY.encode() in path.read_bytes()] == []


def test_without_mistakes_every_row_of_draw_mini_is_a_hit(perfect: Finished, dataset: Dataset) -> None:
    assert not {entry.id for entry in drawn(dataset)} & set(UNPASSABLE)
    assert perfect.ended == ""
    assert {name: tally.hits for name, tally in perfect.result.tallies().items()} == dict(
        Counter(entry.subset for entry in drawn(dataset))
    )
    assert perfect.result.counts.model_dump() == {"total": 192, "evaluated": 192, "error": 0}
    assert perfect.result.metrics["overall_accuracy"] == 100.0
    assert perfect.result.metrics["normalized_single_turn_score"] == 100.0


def test_without_mistakes_only_the_unpassable_rows_are_misses(
    dataset: Dataset, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    ids = [*UNPASSABLE, "simple_java_35", "live_simple_0-0-0", "live_multiple_0-0-0", "irrelevance_0"]
    with endpoint_with() as endpoint:
        params = {"draw": "full", "sample_ids": ids}
        done = finish(quick_run(endpoint.base_url, tmp_path, benchmark_params=params), endpoint)
    assert {entry_id: attempt_outcome(attempt) for entry_id, attempt in done.attempts.items()} == {
        entry_id: Outcome.MISS if entry_id in UNPASSABLE else Outcome.HIT for entry_id in ids
    }
    assert done.result.counts.model_dump() == {"total": 10, "evaluated": 10, "error": 0}


def test_both_harnesses_give_the_same_verdict_on_every_row_that_both_could_send(
    lean: Finished, stock: Finished, dataset: Dataset
) -> None:
    ours, theirs = lean.attempts, stock.attempts
    rows = drawn(dataset, limit=64)
    assert sorted(theirs) == sorted(entry.id for entry in rows)
    answered = [entry for entry in rows if planned(entry) not in NO_ANSWER]
    for entry in answered:
        records = [read_attempt_record(run[entry.id]) for run in (ours, theirs)]
        # The endpoint counts the whole request as the prompt, and only one of the runs sets sampling parameters.
        facts = [record and record.model_dump(exclude={"latency_ms", "prompt_tokens"}) for record in records]
        assert facts[0] is not None
        assert facts[0] == facts[1], entry.id
        assert ours[entry.id]["final_answer"] == theirs[entry.id]["final_answer"]
    assert len(answered) < len(rows)


def test_a_fault_that_voids_the_run_for_the_stock_harness_is_an_error_of_one_row_for_ours(
    lean: Finished, stock: Finished, dataset: Dataset
) -> None:
    rows = {entry.id: planned(entry) for entry in drawn(dataset, limit=64) if planned(entry) in NO_ANSWER}
    severities = {entry_id: stock.attempts[entry_id]["issues"][0]["severity"] for entry_id in rows}
    assert severities == {entry_id: "fatal" if kind is Kind.HTTP_500 else "error" for entry_id, kind in rows.items()}
    assert all(lean.attempts[entry_id]["issues"][0]["severity"] == "error" for entry_id in rows)
    assert "Final FATAL issues" in stock.ended
    assert stock.metrics_json()["evaluation_failed"] is True
    assert stock.result.tallies() == planned_tallies(drawn(dataset, limit=64))  # all the same, the counts are right


def test_two_shards_are_disjoint_parts_of_the_draw_and_their_tallies_add_up(
    dataset: Dataset, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    with endpoint_with(mistakes=Mistakes(wrong_value=20, http_500=20)) as endpoint:
        whole, first, second = (
            finish(
                quick_run(
                    endpoint.base_url,
                    tmp_path,
                    run_name=f"part-{shard.replace('/', '-')}",
                    benchmark_params={"draw": "mini", "limit": 26, "shard": shard},
                ),
                endpoint,
            )
            for shard in ("0/1", "0/2", "1/2")
        )
    assert not set(first.attempts) & set(second.attempts)
    assert set(first.attempts) | set(second.attempts) == set(whole.attempts)
    assert union(first.result.tallies(), second.result.tallies()) == whole.result.tallies()
    assert sum(tally.errors for tally in whole.result.tallies().values()) > 0
    runs = (whole, first, second)
    assert len({run.result.extra["draw_fingerprint"] for run in runs}) == 1
    assert len({run.result.extra["fingerprint"] for run in runs}) == 3
    assert [run.result.extra["shard"] for run in runs] == ["0/1", "0/2", "1/2"]


def test_with_two_attempts_every_attempt_is_counted(
    dataset: Dataset, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    from agentcompass_bfcl.metric_result import MetricResult

    params, mistakes = {"draw": "mini", "limit": 13}, Mistakes(wrong_value=20, http_500=15)
    with endpoint_with(mistakes=mistakes) as endpoint:
        done = finish(quick_run(endpoint.base_url, tmp_path, benchmark_params=params, attempts=2), endpoint)
    once = planned_tallies(drawn(dataset, limit=13), mistakes)
    assert done.result.tallies() == union(once, once)
    assert done.result.counts.total == done.stats["requests"] == 26
    assert done.result.extra["attempts"] == {"k": 2, "strategy": "avg"}
    report = MetricResult.model_validate(done.metrics_json())
    assert (report.k, report.series[0].reducer, report.document) == (2, "avg", done.result)
    hits = sum(tally.hits for tally in once.values())
    assert report.series[0].value == pytest.approx(hits / 13)


def test_with_the_strategy_pass_a_row_is_counted_once_and_is_a_hit_when_any_attempt_was(
    dataset: Dataset, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    from agentcompass.launcher import run_evaluation

    from agentcompass_bfcl.metric_result import MetricResult

    mistakes = Mistakes(wrong_value=20, flaky_500=50)  # of a flaky row, the first attempt is an error
    with endpoint_with(mistakes=mistakes) as endpoint:
        result = run_evaluation(
            benchmark="bfcl",
            harness="bfcl_chat",
            model="some-model",
            model_base_url=endpoint.base_url,
            benchmark_params={"draw": "mini", "limit": 13},
            harness_params={"max_retries": 0},
            k=2,
            attempt_strategy="pass",
            enable_analysis=False,
            progress="none",
            log_level="WARNING",
            results_dir=str(tmp_path),
        )
        flaky = endpoint.stats()["served"]["flaky_500"]
    report = MetricResult.model_validate(result["metrics"])
    once = planned_tallies(drawn(dataset, limit=13), Mistakes(wrong_value=20))
    assert flaky > 2
    assert report.document.tallies() == once
    assert report.document.extra["attempts"] == {"k": 2, "strategy": "pass"}
    assert report.series[0].value == pytest.approx(sum(tally.hits for tally in once.values()) / 13)


def test_reuse_asks_again_exactly_for_the_rows_that_failed(
    dataset: Dataset, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    mistakes, params = Mistakes(http_500=20, wrong_value=20), {"draw": "mini", "limit": 26}
    with endpoint_with(mistakes=mistakes) as broken:
        run = quick_run(broken.base_url, tmp_path, benchmark_params=params)
        before = finish(run, broken)
    failed = {entry.id for entry in drawn(dataset, limit=26) if planned(entry, mistakes) is Kind.HTTP_500}
    assert failed
    with endpoint_with(port=httpx.URL(run.base_url).port) as mended:
        again = quick_run(mended.base_url, tmp_path, benchmark_params=params, run_id="second", reuse=True)
        after = finish(again, mended)
    assert after.stats["rows"] == dict.fromkeys(sorted(failed), 1)
    for entry_id, attempt in after.attempts.items():
        expected = Outcome.HIT if entry_id in failed else attempt_outcome(before.attempts[entry_id])
        assert attempt_outcome(attempt) is expected
    assert after.result.counts.model_dump() == {"total": 26, "evaluated": 26, "error": 0}


def test_reuse_asks_again_for_rows_that_timed_out_in_the_stock_harness(
    dataset: Dataset, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    mistakes = Mistakes(stall=20)
    stalled = {entry.id for entry in drawn(dataset, limit=13) if planned(entry, mistakes)}
    changes = {"benchmark_params": {"draw": "mini", "limit": 13}, "harness_params": {"max_retries": 1}}
    changes |= {"harness": "openai_chat", "concurrency": 13}
    with endpoint_with(mistakes=mistakes) as slow:
        run = quick_run(slow.base_url, tmp_path, model_params={"timeout": 2}, **changes)
        assert finish(run, slow).result.counts.error == len(stalled) > 0
    with endpoint_with(port=httpx.URL(run.base_url).port) as mended:
        again = quick_run(mended.base_url, tmp_path, run_id="second", reuse=True, **changes)
        after = finish(again, mended)
    assert after.stats["rows"] == dict.fromkeys(sorted(stalled), 1)
    assert after.result.counts.model_dump() == {"total": 13, "evaluated": 13, "error": 0}


def test_a_run_whose_endpoint_goes_away_stops_and_what_was_scored_is_used_again(
    dataset: Dataset, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    params = {"draw": "mini", "limit": 40}
    with endpoint_with() as probe:
        port = httpx.URL(probe.base_url).port
    run = quick_run(f"http://127.0.0.1:{port}/v1", tmp_path, benchmark_params=params, concurrency=2)
    with pytest.raises(EndpointError, match="cannot be used: ConnectError"):
        run_until_gone(run, endpoint_with(port=port, latency=0.05), 12)
    (first,) = (tmp_path / "tests").glob("*/first")
    before = {str(task["task_id"]): attempt_outcome(task["attempts"].get("1")) for task in iter_details(first)}
    scored = {entry_id for entry_id, outcome in before.items() if outcome is Outcome.HIT}
    with endpoint_with(port=port) as mended:
        again = quick_run(mended.base_url, tmp_path, benchmark_params=params, run_id="second", reuse=True)
        after = finish(again, mended)
    not_asked = {entry.id for entry in drawn(dataset, limit=40)} - set(after.stats["rows"])
    assert scored
    assert scored <= not_asked <= set(before)  # a reply that came and was not yet judged is not asked for again either
    assert len(not_asked) < 40
    assert after.result.counts.model_dump() == {"total": 40, "evaluated": 40, "error": 0}


def run_until_gone(run: HostRun, endpoint: AbstractContextManager[RunningEndpoint], requests: int) -> None:
    """Run against an endpoint that stops serving once so many requests came."""
    running = endpoint.__enter__()

    def leave() -> None:
        while running.stats()["requests"] < requests:
            time.sleep(0.01)
        endpoint.__exit__(None, None, None)

    leaving = threading.Thread(target=leave)
    leaving.start()
    try:
        run_in_host(run)
    finally:
        leaving.join(timeout=30)

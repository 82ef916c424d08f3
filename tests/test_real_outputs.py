"""Verdicts and scores on recorded outputs of real models, against what the official evaluator recorded for them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from agentcompass_bfcl.aggregate import aggregate
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.score import Hit, Miss, Unscored, score_output
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, reference_subset_totals
from agentcompass_bfcl.tally import Outcome, Tally, count
from recordings import RUNS, folder, leaderboard_row, needs_recordings, official_scores

pytestmark = needs_recordings


def official_words(verdict: Hit | Miss | Unscored) -> tuple[bool, str | None]:
    """Write a verdict as the official evaluator records it: valid or not, and the error type."""
    assert not isinstance(verdict, Unscored), verdict
    return isinstance(verdict, Hit), verdict.error_type if isinstance(verdict, Miss) else None


def test_single_outputs_get_the_recorded_verdict_and_error_type(dataset: Dataset, official: Official) -> None:
    judged: Counter[str] = Counter()
    with gzip.open(folder() / "real_rows" / "verdicts.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            recorded = json.loads(line)
            if recorded["mode"] != "fc":
                continue
            verdict = score_output(dataset.entry(recorded["id"]), recorded["result"], official)
            assert official_words(verdict) == (recorded["valid"], recorded["error_type"]), recorded
            judged[recorded["subset"]] += 1
    assert judged.total() == 2100
    assert set(judged) <= set(SINGLE_TURN_SUBSETS)


@cache
def stored_outputs(run: str) -> dict[str, dict[str, Any]]:
    """Read a run's result tree: the stored outputs by subset and sample id."""
    outputs = {}
    for subset in SINGLE_TURN_SUBSETS:
        (path,) = (folder() / "real_runs" / run / "result").glob(f"*/*/BFCL_v4_{subset}_result.json")
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        outputs[subset] = {record["id"]: record["result"] for record in records}
    return outputs


def outcome(sample_id: str, output: Any, dataset: Dataset, official: Official) -> Outcome:
    verdict = score_output(dataset.entry(sample_id), output, official)
    return Outcome.HIT if isinstance(verdict, Hit) else Outcome.MISS


def tallies_of(run: str, dataset: Dataset, official: Official) -> dict[str, Tally]:
    return count(
        (subset, outcome(sample_id, output, dataset, official))
        for subset, outputs in stored_outputs(run).items()
        for sample_id, output in outputs.items()
    )


@pytest.mark.parametrize("run", RUNS)
def test_every_row_of_a_run_gets_the_official_verdict_and_error_type(
    run: str, dataset: Dataset, official: Official
) -> None:
    for subset, outputs in stored_outputs(run).items():
        failed = official_scores(run)["subsets"][subset]["failed"]
        assert len(outputs) == reference_subset_totals()[subset]
        for sample_id, output in outputs.items():
            words = official_words(score_output(dataset.entry(sample_id), output, official))
            # Three reference answers changed after these runs were scored; no verdict on them did.
            assert words == (sample_id not in failed, failed.get(sample_id)), sample_id


@pytest.mark.parametrize("run", RUNS)
def test_subset_accuracies_of_a_run_are_the_official_ones(run: str, dataset: Dataset, official: Official) -> None:
    tallies = tallies_of(run, dataset, official)
    for subset, recorded in official_scores(run)["subsets"].items():
        assert tallies[subset] == Tally(recorded["correct_count"], recorded["total_count"]), subset
        assert tallies[subset].hits / tallies[subset].n == recorded["accuracy"]


@pytest.mark.parametrize("run", RUNS)
def test_category_and_subset_scores_of_a_run_are_the_leaderboards_to_two_decimals(
    run: str, dataset: Dataset, official: Official
) -> None:
    scores = aggregate(tallies_of(run, dataset, official))
    non_live, live = leaderboard_row(run, "data_non_live.json"), leaderboard_row(run, "data_live.json")
    subsets, categories = scores.subset_scores, scores.category_scores
    assert categories["non_live"] == non_live["AST Summary"] == non_live["Non-Live Overall Acc"]
    assert categories["live"] == live["AST Summary"] == live["Live Overall Acc"]
    assert round(float(scores.exact.nodes["simple"] * 100), 2) == non_live["Simple AST"]
    assert categories["hallucination"] == leaderboard_row(run, "data_overall.json")["Irrelevance Detection"]
    assert {
        "simple_python": non_live["Python Simple AST"],
        "simple_java": non_live["Java Simple AST"],
        "simple_javascript": non_live["JavaScript Simple AST"],
        "multiple": non_live["Multiple AST"],
        "parallel": non_live["Parallel AST"],
        "parallel_multiple": non_live["Parallel Multiple AST"],
        "irrelevance": non_live["Irrelevance Detection"],
        "live_simple": live["Python Simple AST"],
        "live_multiple": live["Python Multiple AST"],
        "live_parallel": live["Python Parallel AST"],
        "live_parallel_multiple": live["Python Parallel Multiple AST"],
        "live_irrelevance": live["Irrelevance Detection"],
        "live_relevance": live["Relevance Detection"],
    } == subsets

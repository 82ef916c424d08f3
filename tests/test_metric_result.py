from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.endpoint import Mistakes
from agentcompass_bfcl.errors import ResultError
from agentcompass_bfcl.subsets import HALLUCINATION, LIVE, NON_LIVE
from host_runs import Finished, MakeEndpoint, finish, quick_run

pytestmark = pytest.mark.usefixtures("agentcompass")


def report_of(run: Finished) -> Any:
    from agentcompass_bfcl.metric_result import MetricResult

    return MetricResult.model_validate(run.metrics_json())


def series(report: Any) -> dict[str, Any]:
    return {item.metric_id: item for item in report.series}


def test_the_views_survive_every_way_of_writing_and_reading(lean: Finished) -> None:
    from agentcompass.runtime.metrics.report import MetricReport

    from agentcompass_bfcl.metric_result import MetricResult

    report = report_of(lean)
    by_the_host = MetricReport.model_validate(lean.metrics_json())
    for again in (
        MetricResult.model_validate(report.model_dump()),
        MetricResult.model_validate(report.model_dump(mode="json")),
        MetricResult.model_validate_json(report.model_dump_json()),
        MetricResult.model_validate(by_the_host.model_dump()),
        copy.deepcopy(report),
    ):
        assert (again.metrics, again.counts, again.details) == (report.metrics, report.counts, report.details)
        assert again.document == lean.result
        assert again == report


def test_the_views_are_plain_and_may_be_changed_without_changing_the_report(lean: Finished) -> None:
    report = report_of(lean)
    before = json.dumps([report.metrics, report.counts, report.details], sort_keys=True)
    report.metrics.clear()
    report.details["subsets"].clear()
    assert json.dumps([report.metrics, report.counts, report.details], sort_keys=True) == before


def test_the_headline_counts_errors_as_the_error_policy_says(lean: Finished) -> None:
    from agentcompass.runtime.metrics.report import MetricReport

    from agentcompass_bfcl.metric_result import build_metric_result

    result, tallies = lean.result, lean.result.tallies()
    hits = sum(tally.hits for tally in tallies.values())
    host_report = MetricReport.model_validate(lean.metrics_json()).model_copy(
        update={"series": report_of(lean).series[:1]}
    )
    for policy, rows in ((OnError.FAIL, result.counts.total), (OnError.EXCLUDE, result.counts.evaluated)):
        scores = aggregate(tallies, policy)
        report = build_metric_result(host_report, result, {"native": scores})
        assert report.series[0].value == pytest.approx(hits / rows)
        found = series(report)
        assert found["normalized_single_turn_score"].value == pytest.approx(float(scores.exact.normalized or 0))
        for name, part in report.series[0].categories.items():
            assert part.value == pytest.approx(float(scores.exact.subsets[name]))
    assert result.counts.error > 0


def test_each_score_is_a_series_over_its_own_subsets(lean: Finished) -> None:
    report, exact = report_of(lean), aggregate(lean.result.tallies()).exact
    found = series(report)
    assert set(found) == {"correct", "normalized_single_turn_score", "non_live", "live", "hallucination"}
    for name, subsets in (("non_live", NON_LIVE), ("live", LIVE), ("hallucination", HALLUCINATION)):
        item = found[name]
        assert item.value == pytest.approx(float(exact.nodes[name]))
        assert {key for key, part in item.categories.items() if part.counts.evaluated} == set(subsets)
        assert item.counts.evaluated == sum(lean.result.details.subsets[subset].n for subset in subsets)
        assert item.counts.total == 192
        assert item.extra["percent"] == lean.result.details.categories[name]


def test_a_run_with_a_fatal_issue_has_no_official_value_and_shows_what_was_counted(stock: Finished) -> None:
    report = report_of(stock)
    assert report.evaluation_failed
    headline = report.series[0]
    assert headline.value is None
    assert headline.reference_value == pytest.approx(stock.result.metrics["overall_accuracy"] / 100, abs=0.00005)
    assert all(item.value is None for item in report.series)


def test_a_run_in_which_nothing_was_scored_has_no_value_at_all(endpoint_with: MakeEndpoint, tmp_path: Path) -> None:
    with endpoint_with(mistakes=Mistakes(http_500=100)) as endpoint:
        params = {"draw": "mini", "limit": 3}
        report = report_of(finish(quick_run(endpoint.base_url, tmp_path, benchmark_params=params), endpoint))
    assert [item.metric_id for item in report.series] == ["correct"]
    assert report.series[0].value is None
    assert report.counts == {"total": 3, "evaluated": 0, "error": 3}
    assert not {"overall_accuracy", "normalized_single_turn_score"} & set(report.metrics)


def test_relevance_rows_count_for_the_overall_accuracy_and_for_no_category(
    endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    params = {"draw": "all", "subsets": ["irrelevance", "live_relevance"], "limit": 4}
    with endpoint_with(mistakes=Mistakes(http_500=50)) as endpoint:
        report = report_of(finish(quick_run(endpoint.base_url, tmp_path, benchmark_params=params), endpoint))
    tallies = report.document.tallies()
    abstained, called = tallies["irrelevance"], tallies["live_relevance"]
    found = series(report)
    assert (abstained.drawn, called.drawn) == (2, 2)
    assert found["correct"].value == pytest.approx((abstained.hits + called.hits) / 4)
    assert found["normalized_single_turn_score"].value == pytest.approx(float(Fraction(abstained.hits, 2)))
    assert report.details["subsets"]["live_relevance"]["category"] is None


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda extra: extra.clear(), "schema_version"),
        (lambda extra: extra.pop("counts"), "counts"),
        (lambda extra: extra["counts"].pop("total"), "counts.total"),
        (lambda extra: extra["metrics"].update(overall_accuracy="high"), "metrics.overall_accuracy"),
        (lambda extra: extra.update(schema_version=2), "schema_version"),
        (lambda extra: extra["details"].update(unheard_of=1), "details.unheard_of"),
    ],
    ids=["empty", "no counts", "no total", "a score that is text", "another version", "an unknown detail"],
)
def test_a_report_that_is_not_ours_is_refused_when_it_is_looked_at(
    change: Callable[[dict[str, Any]], object], place: str, lean: Finished
) -> None:
    from agentcompass_bfcl.metric_result import MetricResult

    content = lean.metrics_json()
    change(content["extra"])
    report = MetricResult.model_validate(content)
    with pytest.raises(ResultError, match="metric report: not a result of this package") as caught:
        _ = report.metrics
    assert place in str(caught.value)

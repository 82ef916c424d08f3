"""The host's report of a merged run: the shards' counts added up, the scores those of the merged result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentcompass.runtime.metrics import MetricReport
from agentcompass.runtime.metrics.report import MetricBreakdown, MetricSeries, SeriesCounts
from pydantic import ValidationError

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.errors import MergeError
from agentcompass_bfcl.json_files import LARGEST_RESULT
from agentcompass_bfcl.metric_result import MetricResult, build_metric_result
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.rows import tally_rows
from agentcompass_bfcl.run_dir import read_json_object
from agentcompass_bfcl.run_record import RunRecord


def merged_report(parts: Sequence[RunRecord], document: ResultDocument) -> MetricResult:
    """Make the report that AgentCompass would make of the whole run.

    The shards' own reports are needed: only they know which tasks the host gave up. Raises ``MergeError`` when one is
    no directory, or its metrics.json is no report of this version of the host.
    """
    reports = [_report(part) for part in parts]
    first = reports[0]
    series = tuple(_added([report.series[number] for report in reports]) for number in range(_own(first)))
    failed = any(report.evaluation_failed for report in reports)
    report = first.model_copy(update={"series": series, "evaluation_failed": failed, "extra": {}})
    rows, policy = document.rows(), OnError(str(document.extra["on_error"]))
    pooled, once = (aggregate(tally_rows(rows, any_of=any_of), policy) for any_of in (False, True))
    return build_metric_result(report, document, {"native": pooled, "avg": pooled, "pass": once})


def _report(part: RunRecord) -> MetricReport:
    if not part.is_directory:
        raise MergeError(f"{part.source}: a file; a run directory can only be made of run directories, use --json")
    try:
        return MetricReport.model_validate(read_json_object(part.source / "metrics.json", LARGEST_RESULT))
    except ValidationError as error:
        raise MergeError(f"{part.source}: not a report of this AgentCompass ({error.errors()[0]['msg']})") from None


def _own(report: MetricReport) -> int:
    """Count the series that are the host's own; ours come after them and are made anew."""
    return sum(series.aggregation != "benchmark" for series in report.series)


def _added(series: Sequence[MetricSeries]) -> MetricSeries:
    names = sorted({name for item in series for name in item.categories})
    categories = {
        name: _breakdown([item.categories[name] for item in series if name in item.categories]) for name in names
    }
    # Values are set by ``build_metric_result``, from the merged tallies.
    changes: dict[str, Any] = {"counts": _counts(item.counts for item in series), "categories": categories}
    return series[0].model_copy(update=changes)


def _breakdown(parts: Sequence[MetricBreakdown]) -> MetricBreakdown:
    weights = [part.aggregation_weight for part in parts if part.aggregation_weight is not None]
    return MetricBreakdown(
        value=None,
        counts=_counts(part.counts for part in parts),
        aggregation_weight=sum(weights) if weights else None,
    )


def _counts(counts: Iterable[SeriesCounts]) -> SeriesCounts:
    summed: Mapping[str, int] = {}
    for item in counts:
        summed = {name: summed.get(name, 0) + getattr(item, name) for name in SeriesCounts.model_fields}
    return SeriesCounts(**summed)

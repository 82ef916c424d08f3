"""A result as AgentCompass wants it: a ``MetricReport`` with our views on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentcompass.runtime.metrics import MetricReport
from agentcompass.runtime.metrics.contract import MetricDisplay
from agentcompass.runtime.metrics.report import (
    MetricBreakdown,
    MetricSeries,
    SeriesCounts,
    SeriesRole,
    metric_series_id,
)
from agentcompass.runtime.metrics.types import MetricKind

from agentcompass_bfcl.aggregate import WEIGHTS, Aggregate, inner_nodes, percent, subset_names
from agentcompass_bfcl.result import ResultDocument, read_report_extra

_NORMALIZED = "normalized_single_turn_score"
_LABELS = {
    _NORMALIZED: "BFCL normalized single-turn score, mean of the categories (fraction)",
    "non_live": "BFCL non-live category (fraction)",
    "live": "BFCL live category (fraction)",
    "hallucination": "BFCL hallucination category (fraction)",
}


class MetricResult(MetricReport):
    """The report of a BFCL run, with the result's own views: ``metrics``, ``counts`` and ``details``.

    AgentCompass keeps only ``MetricReport``'s fields, so the views live in ``extra`` and survive metrics.json:
    ``MetricResult.model_validate`` of its content gives them back.
    """

    @property
    def document(self) -> ResultDocument:
        """Read the result; its ``extra`` is the run's identity. Raises ``ResultError`` when this is no BFCL report."""
        return read_report_extra(self.extra, "metric report")

    @property
    def metrics(self) -> dict[str, int | float]:
        """Give the flat metrics: both scores in percent where there are any, ``samples``, and each subset's tally."""
        return dict(self.document.metrics)

    @property
    def counts(self) -> dict[str, int]:
        """Give ``{"total", "evaluated", "error"}`` in samples."""
        return self.document.counts.model_dump()

    @property
    def details(self) -> dict[str, Any]:
        """Give subsets, categories, both error policies' scores, weights and error types."""
        return self.document.details.model_dump()


def build_metric_result(
    report: MetricReport, document: ResultDocument, scores: Mapping[str, Aggregate]
) -> MetricResult:
    """Turn the host's own report into ours.

    The host leaves samples without a verdict out of its mean; here the headline's values come from ``scores``, one
    aggregate by reducer (``native``, ``avg``, ``pass``), under the run's error policy. Its counts stay.
    """
    series = [_with_scores(item, scores[item.reducer], failed=report.evaluation_failed) for item in report.series]
    if report.strategy != "pass":  # that strategy allows no further series
        headline = series[0]
        series += _further_series(headline, scores[headline.reducer], failed=report.evaluation_failed)
    payload = document.model_dump(mode="json")
    identity = payload.pop("extra")
    return MetricResult(
        k=report.k,
        strategy=report.strategy,
        aggregation=report.aggregation,
        series=tuple(series),
        evaluation_failed=report.evaluation_failed,
        extra={**identity, **payload},
    )


def _with_scores(item: MetricSeries, scores: Aggregate, *, failed: bool) -> MetricSeries:
    # A host's scope with evaluated samples must have a value and one without must have none.
    overall = scores.exact.overall if item.counts.evaluated else None
    changes: dict[str, Any] = _value(None if overall is None else float(overall), failed=failed)
    changes["display"] = MetricDisplay(label="BFCL accuracy, every drawn sample alike (fraction)", precision=4)
    changes["categories"] = {
        name: part.model_copy(update=_value(_subset_value(part, name, scores), failed=failed))
        for name, part in item.categories.items()
    }
    return item.model_copy(update=changes)


def _subset_value(part: MetricBreakdown, name: str, scores: Aggregate) -> float | None:
    exact = scores.exact.subsets.get(name)
    return float(exact) if exact is not None and part.counts.evaluated else None


def _value(value: float | None, *, failed: bool) -> dict[str, float | None]:
    # A run with a FATAL issue has no official value; the host shows what was computed as a reference.
    return {"value": None if failed else value, "reference_value": value if failed else None}


def _further_series(headline: MetricSeries, scores: Aggregate, *, failed: bool) -> list[MetricSeries]:
    if not headline.counts.evaluated:
        return []
    values = {_NORMALIZED: scores.exact.normalized, **scores.exact.nodes}
    scopes = {node.name: set(subset_names(node)) for node in inner_nodes(WEIGHTS)}
    scopes[_NORMALIZED] = scopes.pop(WEIGHTS.name)
    return [
        MetricSeries(
            series_id=metric_series_id(name, headline.reducer, headline.k),
            metric_id=name,
            kind=MetricKind.SCALAR,
            reducer=headline.reducer,
            role=SeriesRole.AUXILIARY,
            aggregation="benchmark",
            display=MetricDisplay(label=_LABELS[name], precision=4),
            k=headline.k,
            **_value(float(exact), failed=failed),
            **_scope(headline, scopes[name]),
            extra={"percent": percent(exact)},
        )
        for name, exact in values.items()
        if exact is not None and name in _LABELS
    ]


def _scope(headline: MetricSeries, subsets: set[str]) -> dict[str, Any]:
    """Keep only the breakdown of a score's own subsets; the others are unavailable to it, as the host has it."""
    categories = {
        name: part if name in subsets else MetricBreakdown(value=None, counts=_unavailable(part.counts))
        for name, part in headline.categories.items()
    }
    totals = {
        field: sum(getattr(part.counts, field) for part in categories.values()) for field in SeriesCounts.model_fields
    }
    return {"counts": SeriesCounts(**totals), "categories": categories}


def _unavailable(counts: SeriesCounts) -> SeriesCounts:
    return SeriesCounts(
        total=counts.total,
        evaluated=0,
        error=0,
        unavailable=counts.total - counts.invalidated,
        invalidated=counts.invalidated,
    )

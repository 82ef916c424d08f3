"""A result as OpenMetrics text, for Prometheus and what reads its format."""

from __future__ import annotations

from decimal import Decimal

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.exposition import generate_latest

from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.statistics import Estimate

_LABELS = ("model", "draw", "mode", "shard")


def openmetrics_text(document: ResultDocument) -> str:
    """Write scores as ratios of 1 with their standard errors, and sample counts by subset and outcome.

    Every line is labelled with model, draw, mode and shard. What is undefined is left out: a gauge has no null.
    """
    registry = CollectorRegistry()
    labels = {name: str(document.extra.get(name, "")) for name in _LABELS}
    score = Gauge("bfcl_score_ratio", "Score, by its name", (*_LABELS, "score"), registry=registry)
    error = Gauge(
        "bfcl_score_standard_error_ratio", "Standard error of a score", (*_LABELS, "score"), registry=registry
    )
    subset = Gauge("bfcl_subset_accuracy_ratio", "Accuracy of a subset", (*_LABELS, "subset"), registry=registry)
    samples = Gauge("bfcl_samples", "Samples by subset and outcome", (*_LABELS, "subset", "outcome"), registry=registry)
    for name, value, bars in _scores(document):
        score.labels(**labels, score=name).set(_ratio(value))
        if bars is not None and bars.standard_error is not None:
            error.labels(**labels, score=name).set(_ratio(bars.standard_error))
    for name, found in document.details.subsets.items():
        if found.accuracy is not None:
            subset.labels(**labels, subset=name).set(_ratio(found.accuracy))
        counts = {"hit": found.hits, "miss": found.n - found.hits, "error": found.errors}
        for outcome, count in counts.items():
            samples.labels(**labels, subset=name, outcome=outcome).set(count)
    written: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # it carries no annotations
    return written.decode("utf-8")


def _ratio(percent: float) -> float:
    return float(Decimal(repr(percent)) / 100)  # 0.8958 of 89.58, which divided as binary fractions is a little less


def _scores(document: ResultDocument) -> list[tuple[str, float, Estimate | None]]:
    statistics = document.details.statistics
    overall, normalized = (None, None) if statistics is None else (statistics.overall, statistics.normalized)
    scores: list[tuple[str, float | None, Estimate | None]] = [
        ("overall", document.metrics.get("overall_accuracy"), overall),
        ("normalized", document.metrics.get("normalized_single_turn_score"), normalized),
    ]
    bars = {} if statistics is None else statistics.categories
    scores += [(name, value, bars.get(name)) for name, value in document.details.categories.items()]
    return [(name, value, found) for name, value, found in scores if value is not None]

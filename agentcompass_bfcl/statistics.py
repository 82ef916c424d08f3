"""The error bars of a result: standard errors, 95 % intervals and clusters for every score it shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import sqrt
from statistics import stdev

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from agentcompass_bfcl.aggregate import (
    OVERALL,
    WEIGHTS,
    Combine,
    Node,
    OnError,
    inner_nodes,
    percent,
    subset_coefficients,
)
from agentcompass_bfcl.rows import Row, attempts_of
from agentcompass_bfcl.subsets import CATEGORIES
from agentcompass_bfcl.tally import Outcome
from agentcompass_bfcl.uncertainty import (
    FEW_CLUSTERS,
    Cluster,
    Strata,
    effective_size,
    group,
    node_mean,
    node_variance,
    wilson,
)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Estimate(_Part):
    """A score with its error bars, in percent and percentage points.

    ``standard_error`` takes rows as independent (several attempts at one row are one cluster); the clustered one takes
    rows that offer the same functions as one. Each is None where it is undefined: a single row, or a single cluster.
    ``interval`` is a 95 % score interval. Where every cluster is one row both bars are the same.
    """

    score: FiniteFloat
    standard_error: FiniteFloat | None
    interval: tuple[FiniteFloat, FiniteFloat] | None
    clusters: int = Field(ge=1)
    clustered_standard_error: FiniteFloat | None
    clustered_interval: tuple[FiniteFloat, FiniteFloat] | None


class AttemptSpread(_Part):
    """Several attempts a row. Accuracies in percent over all rows; ``standard_deviation`` is that of ``by_attempt``.

    ``rows_that_vary`` were hit by one attempt and missed by another, under the policy for errors.
    """

    k: int = Field(ge=2)
    avg_at_k: FiniteFloat | None
    pass_at_k: FiniteFloat | None
    by_attempt: list[FiniteFloat | None]
    standard_deviation: FiniteFloat | None
    rows_that_vary: int = Field(ge=0)


class Statistics(_Part):
    """Error bars of both headline scores, the categories and the subsets; None or missing where there is no score.

    ``few_clusters`` counts the clusters of subsets that have fewer than ten: there, and in the scores they go into,
    a clustered standard error is unreliable.
    """

    overall: Estimate | None
    normalized: Estimate | None
    categories: dict[str, Estimate]
    subsets: dict[str, Estimate]
    few_clusters: dict[str, int]
    attempts: AttemptSpread | None


def build_statistics(
    rows: Sequence[Row], clusters: Mapping[str, str], *, on_error: OnError, any_of: bool = False
) -> Statistics:
    """Compute the error bars of a result from its rows; ``clusters`` names each row's cluster by id.

    Under the policy ``fail`` a row without a verdict is a miss, as in the scores. With ``any_of`` a row counts once.
    """
    plain = group((subset, sample_id, value) for sample_id, subset, value in _values(rows, on_error, any_of=any_of))
    clustered = group(
        (subset, clusters[sample_id], value) for sample_id, subset, value in _values(rows, on_error, any_of=any_of)
    )
    nodes = {node.name: node for node in inner_nodes(WEIGHTS)}
    subsets = {name: _estimate(Node(name, Combine.POOLED, (name,)), plain, clustered) for name in plain}
    categories = {name: _estimate(nodes[name], plain, clustered) for name in CATEGORIES}
    return Statistics(
        overall=_estimate(OVERALL, plain, clustered),
        normalized=_estimate(WEIGHTS, plain, clustered),
        categories={name: found for name, found in categories.items() if found is not None},
        subsets={name: found for name, found in subsets.items() if found is not None},
        few_clusters={name: len(found) for name, found in clustered.items() if len(found) < FEW_CLUSTERS},
        attempts=_spread(rows, on_error) if attempts_of(rows) > 1 else None,
    )


def _values(rows: Sequence[Row], on_error: OnError, *, any_of: bool) -> Iterator[tuple[str, str, int]]:
    for row in rows:
        for outcome in (row.best,) if any_of else row.outcomes:
            if outcome is not Outcome.ERROR or on_error is OnError.FAIL:
                yield row.id, row.subset, int(outcome is Outcome.HIT)


def _estimate(node: Node, plain: Strata, clustered: Strata) -> Estimate | None:
    value = node_mean(node, plain)
    if value is None:
        return None
    members = {name: found for name, found in plain.items() if subset_coefficients(node, {name: 1})}
    sizes = {name: sum(cluster.size for cluster in found) for name, found in members.items()}
    weights = subset_coefficients(node, sizes)

    def bars(strata: Strata) -> tuple[float | None, tuple[float, float] | None]:
        variance, counts = node_variance(node, strata), _counts(strata, members)
        size: float
        if len(members) == 1 and counts == sizes:  # a plain proportion: Wilson's own case, also for a single row
            size = sum(sizes.values())
        elif variance is None:
            return None, None
        else:
            size = effective_size(value, variance, weights, counts)
        low, high = wilson(float(value), size)
        return _points(variance), (round(low * 100, 4), round(high * 100, 4))

    error, interval = bars(plain)
    clustered_error, clustered_interval = bars(clustered)
    return Estimate(
        score=percent(value),
        standard_error=error,
        interval=interval,
        clusters=sum(_counts(clustered, members).values()),
        clustered_standard_error=clustered_error,
        clustered_interval=clustered_interval,
    )


def _counts(strata: Strata, names: Mapping[str, Sequence[Cluster]]) -> dict[str, int]:
    return {name: len(strata[name]) for name in names}


def _points(variance: Fraction | None) -> float | None:
    """Show the square root of a variance in percentage points."""
    return None if variance is None else round(sqrt(variance) * 100, 4)


def _spread(rows: Sequence[Row], on_error: OnError) -> AttemptSpread:
    k = attempts_of(rows)
    complete = all(len(row.outcomes) == k for row in rows)  # not where attempts end with the first hit
    every = [_accuracy((row.outcomes[number] for row in rows), on_error) for number in range(k)] if complete else []
    known = [float(value) for value in every if value is not None]
    return AttemptSpread(
        k=k,
        avg_at_k=_percent(_accuracy((outcome for row in rows for outcome in row.outcomes), on_error))
        if every
        else None,
        pass_at_k=_percent(_accuracy((row.best for row in rows), on_error)),
        by_attempt=[_percent(value) for value in every],
        standard_deviation=round(stdev(known) * 100, 4) if len(known) > 1 else None,
        rows_that_vary=sum(len({value for _, _, value in _values([row], on_error, any_of=False)}) > 1 for row in rows),
    )


def _accuracy(outcomes: Iterable[Outcome], on_error: OnError) -> Fraction | None:
    counted = [
        outcome is Outcome.HIT for outcome in outcomes if outcome is not Outcome.ERROR or on_error is OnError.FAIL
    ]
    return Fraction(sum(counted), len(counted)) if counted else None


def _percent(value: Fraction | None) -> float | None:
    return None if value is None else percent(value)

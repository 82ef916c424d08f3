"""How sure a score is: standard errors and intervals from the weights the score itself comes from.

A score is a weighted sum of subset means, the weights are fixed by the draw, and rows of different subsets are
independent: var = sum of weight^2 * var(subset mean). A subset's rows fall into G clusters (of one row each for the
plain standard error), with totals t_g of m_g rows; n = sum m_g, p = sum t_g / n, and

    var(p) = G / (G - 1) * sum((t_g - m_g * p)^2) / n^2

which for clusters of one row is the sample variance p (1 - p) n / (n - 1) over n. Cochran, Sampling Techniques, 3rd
edition (1977): chapters 5 (stratified means), 9A (clusters of unequal sizes), 5A (collapsed strata).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt
from statistics import NormalDist

from agentcompass_bfcl.aggregate import Combine, Node

Z95 = NormalDist().inv_cdf(0.975)
"""Two-sided 95 %: 1.95996."""

FEW_CLUSTERS = 10
"""Below so many clusters a clustered standard error is itself too uncertain to rely on."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Rows that are not independent of each other: the sum of their values, and how many values there are."""

    total: int
    size: int


type Strata = Mapping[str, Sequence[Cluster]]
"""Each subset's clusters. Values are integers: 1 for a hit and 0 for a miss, or the difference of two runs."""


def group(values: Iterable[tuple[str, str, int]]) -> dict[str, tuple[Cluster, ...]]:
    """Add up ``(subset, cluster, value)`` by cluster, subsets sorted."""
    sums: dict[str, dict[str, tuple[int, int]]] = {}
    for subset, cluster, value in values:
        of_subset = sums.setdefault(subset, {})
        total, size = of_subset.get(cluster, (0, 0))
        of_subset[cluster] = (total + value, size + 1)
    return {subset: tuple(Cluster(*pair) for pair in found.values()) for subset, found in sorted(sums.items())}


def mean_variance(clusters: Sequence[Cluster]) -> Fraction | None:
    """Estimate the variance of the mean of all values; None below two clusters, where it is undefined."""
    count, size = len(clusters), sum(cluster.size for cluster in clusters)
    if count < 2:
        return None
    total = sum(cluster.total for cluster in clusters)
    squares = sum((cluster.total * size - cluster.size * total) ** 2 for cluster in clusters)
    return Fraction(count * squares, (count - 1) * size**4)


def node_mean(node: Node, strata: Strata) -> Fraction | None:
    """Compute a node's value from the values themselves; None where no subset is present."""
    parts = _present(node, strata)
    if not parts:
        return None
    if node.combine is Combine.POOLED:
        values = [cluster for part in parts for cluster in strata[str(part)]]
        return Fraction(sum(cluster.total for cluster in values), sum(cluster.size for cluster in values))
    means = [node_mean(part, strata) if isinstance(part, Node) else _mean(strata[part]) for part in parts]
    return sum((mean for mean in means if mean is not None), Fraction(0)) / len(means)


def node_variance(node: Node, strata: Strata) -> Fraction | None:
    """Estimate the variance of a node's value; None where a part's is undefined, or nothing is present.

    In a pooled node a subset with a single cluster is joined with the next smallest ("collapsed strata"), which errs
    on the side of too large a variance; elsewhere such a subset leaves the node without one.
    """
    parts = _present(node, strata)
    if not parts:
        return None
    if node.combine is Combine.POOLED:
        return _pooled_variance([strata[str(part)] for part in parts])
    variances = [
        node_variance(part, strata) if isinstance(part, Node) else mean_variance(strata[part]) for part in parts
    ]
    known = [variance for variance in variances if variance is not None]
    return sum(known, Fraction(0)) / len(parts) ** 2 if len(known) == len(parts) else None


def wilson(value: float, size: float) -> tuple[float, float]:
    """Give the 95 % score interval of a proportion of ``size`` independent rows (Wilson, 1927).

    Unlike value +- 1.96 standard errors it stays within 0 and 1, and is no single point where every row is a hit.
    """
    square = Z95**2
    centre = (value + square / (2 * size)) / (1 + square / size)
    half = Z95 * sqrt(value * (1 - value) / size + square / (4 * size**2)) / (1 + square / size)
    return max(0.0, centre - half), min(1.0, centre + half)


def effective_size(
    value: Fraction, variance: Fraction, weights: Mapping[str, Fraction], clusters: Mapping[str, int]
) -> float:
    """Count the independent rows that would make a score as sure as it is: value (1 - value) / variance.

    Where every row came out alike the variance says nothing, and the size follows from the weights alone:
    1 / sum(weight^2 / clusters). Clusters, not values: the second hit of a row that was hit shows nothing new.
    """
    if variance:
        return float(value * (1 - value) / variance)
    return float(1 / sum((weight**2 / clusters[name] for name, weight in weights.items()), Fraction(0)))


def mcnemar(gained: int, lost: int) -> Fraction:
    """Give the exact two-sided p of McNemar's test: had rows flipped by chance alone, either way would be as likely.

    The sum of the binomial(gained + lost, 1/2) probabilities at most as large as the observed; 1 without any flip.
    """
    flips = gained + lost
    if gained == lost:
        return Fraction(1)
    tail = sum(comb(flips, count) for count in range(min(gained, lost) + 1))
    return Fraction(2 * tail, 2**flips)


def _present(node: Node, strata: Strata) -> list[Node | str]:
    return [
        child
        for child in node.children
        if (bool(_present(child, strata)) if isinstance(child, Node) else bool(strata.get(child)))
    ]


def _mean(clusters: Sequence[Cluster]) -> Fraction:
    return Fraction(sum(cluster.total for cluster in clusters), sum(cluster.size for cluster in clusters))


def _pooled_variance(strata: list[Sequence[Cluster]]) -> Fraction | None:
    collapsed = _collapsed(strata)
    sizes = [sum(cluster.size for cluster in stratum) for stratum in collapsed]
    variances = [mean_variance(stratum) for stratum in collapsed]
    known = [variance for variance in variances if variance is not None]
    if len(known) < len(collapsed):
        return None
    weighted = (size**2 * variance for size, variance in zip(sizes, known, strict=True))
    return sum(weighted, Fraction(0)) / sum(sizes) ** 2


def _collapsed(strata: list[Sequence[Cluster]]) -> list[Sequence[Cluster]]:
    """Join single clusters with the next smallest stratum, until there are two everywhere or one stratum is left."""
    left = sorted(strata, key=len)
    while len(left) > 1 and len(left[0]) < 2:
        left = sorted([[*left[0], *left[1]], *left[2:]], key=len)
    return left

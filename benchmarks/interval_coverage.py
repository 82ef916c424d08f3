"""How often does a 95 % interval hold the truth? A simulation: rows come out with known chances, many times over.

From the project's folder: ``python -m benchmarks.interval_coverage [--draws 10000] [--seed 1]``. Prints two tables.

The first has independent rows. For each draw, chance of a hit and score: how often the interval that results show
(Wilson on the effective size) held the true score, how often score +- 1.96 standard errors did, and how wide they were
on average, in points. "mixed" gives subsets chances of their own.

The second has rows of one cluster come out alike in part, with the clusters of the real data set: how often the plain
and the clustered interval held the true score.

A few simulated runs of each kind are also put through the package itself and have to give the same intervals.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from agentcompass_bfcl.aggregate import OVERALL, WEIGHTS, Node, OnError, subset_coefficients
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.draw import PRESETS, plan, select
from agentcompass_bfcl.rows import Row
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.statistics import Estimate, build_statistics
from agentcompass_bfcl.subsets import reference_subset_totals
from agentcompass_bfcl.tally import Outcome
from agentcompass_bfcl.uncertainty import Z95

type Numbers = NDArray[np.float64]
type Counts = NDArray[np.int64]

DRAWS = ("golden", "echolp", "full")
CHANCES = (0.5, 0.87, 0.97)
MIXED = {
    **{"simple_python": 0.95, "simple_java": 0.65, "simple_javascript": 0.7, "multiple": 0.94, "parallel": 0.9},
    **{"parallel_multiple": 0.88, "live_simple": 0.85, "live_multiple": 0.8, "live_parallel": 0.75},
    **{"live_parallel_multiple": 0.7, "irrelevance": 0.86, "live_irrelevance": 0.8},
}
ALIKE = 0.42
"""The share of rows that come out as their cluster does, which makes two rows of one correlate by 0.42^2 = 0.18.

So the clustered error of overall on full is half as large again as the plain one, as on three recorded full runs.
"""
_CHECKED = 5


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10_000, help="simulated runs of each kind, 5 at least")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.draws < _CHECKED:
        parser.error(f"--draws is {arguments.draws}; {_CHECKED} or more is allowed")
    generator = np.random.default_rng(arguments.seed)
    headers = ["draw", "p", "score", "interval shown: covers", "width", "score +- 1.96 se: covers", "width"]
    _print(headers, independent(generator, arguments.draws))
    print()
    headers = ["draw", "p", "score", "true se", "plain: covers", "mean se", "clustered: covers", "mean se"]
    _print(headers, alike_in_clusters(generator, arguments.draws, read_dataset(open_pinned())))


def independent(generator: np.random.Generator, runs: int) -> Iterator[list[str | float]]:
    """Let every row come out for itself; a table row for each draw, chance and score."""
    for draw in DRAWS:
        sizes = dict(plan(PRESETS[draw], reference_subset_totals()))
        for chance in (*CHANCES, None):
            chances = {name: MIXED[name] if chance is None else chance for name in sizes}
            hits = {name: generator.binomial(size, chances[name], runs) for name, size in sizes.items()}
            for node in (OVERALL, WEIGHTS):
                weights = _weights(node, sizes)
                score = _sum({name: weight * hits[name] / sizes[name] for name, weight in weights.items()})
                variance = _plain_variance(weights, sizes, hits)
                low, high = _wilson(score, variance, weights, sizes)
                _check_independent(node, sizes, hits, low, high)
                truth = sum(weight * chances[name] for name, weight in weights.items())
                plain = Z95 * np.sqrt(variance)
                shown = (_coverage(truth, low, high), float(np.mean(high - low) * 100))
                contrast = (_coverage(truth, score - plain, score + plain), float(np.mean(2 * plain) * 100))
                yield [draw, "mixed" if chance is None else f"{chance:g}", node.name, *shown, *contrast]


def alike_in_clusters(generator: np.random.Generator, runs: int, dataset: Dataset) -> Iterator[list[str | float]]:
    """Let a row come out as its cluster does with the chance ``ALIKE``, and else for itself."""
    for draw in DRAWS:
        entries = select(PRESETS[draw], dataset)
        named = clusters(entries)
        lengths: dict[str, list[int]] = {}
        for (name, _), length in Counter((entry.subset, named[entry.id]) for entry in entries).items():
            lengths.setdefault(name, []).append(length)
        sizes = {name: sum(found) for name, found in lengths.items()}
        for chance in CHANCES:
            totals = {name: _totals(generator, runs, np.array(found), chance) for name, found in lengths.items()}
            hits = {name: found.sum(axis=1) for name, found in totals.items()}
            for node in (OVERALL, WEIGHTS):
                weights = _weights(node, sizes)
                score = _sum({name: weight * hits[name] / sizes[name] for name, weight in weights.items()})
                plain = _plain_variance(weights, sizes, hits)
                clustered = _sum(
                    {
                        name: weight**2 * _cluster_variance(totals[name], lengths[name])
                        for name, weight in weights.items()
                    }
                )
                counts = {name: len(found) for name, found in lengths.items()}
                bars = _wilson(score, plain, weights, sizes), _wilson(score, clustered, weights, counts)
                _check_clustered(node, lengths, totals, bars)
                cells = [
                    (_coverage(chance, *bar), _mean_error(found))
                    for bar, found in zip(bars, (plain, clustered), strict=True)
                ]
                yield [draw, f"{chance:g}", node.name, float(score.std() * 100), *cells[0], *cells[1]]


def _totals(generator: np.random.Generator, runs: int, lengths: Counts, chance: float) -> Counts:
    """Simulate the hits of each cluster, (runs, clusters)."""
    shape = (runs, len(lengths))
    following = generator.binomial(lengths, ALIKE, shape)
    hits: Counts = following * (generator.random(shape) < chance) + generator.binomial(lengths - following, chance)
    return hits


def _weights(node: Node, sizes: Mapping[str, int]) -> dict[str, float]:
    return {name: float(weight) for name, weight in subset_coefficients(node, sizes).items()}


def _sum(parts: Mapping[str, Numbers]) -> Numbers:
    return np.sum(list(parts.values()), axis=0, dtype=np.float64)


def _plain_variance(weights: Mapping[str, float], sizes: Mapping[str, int], hits: Mapping[str, Counts]) -> Numbers:
    shares = {name: hits[name] / sizes[name] for name in weights}
    return _sum(
        {name: weight**2 * shares[name] * (1 - shares[name]) / (sizes[name] - 1) for name, weight in weights.items()}
    )


def _cluster_variance(totals: Counts, lengths: Sequence[int]) -> Numbers:
    count, size = len(lengths), sum(lengths)
    share = totals.sum(axis=1, keepdims=True) / size
    squares: Numbers = np.sum((totals - share * np.array(lengths)) ** 2, axis=1)
    return count / (count - 1) * squares / size**2


def _wilson(
    score: Numbers, variance: Numbers, weights: Mapping[str, float], clusters_of: Mapping[str, int]
) -> tuple[Numbers, Numbers]:
    alike = 1 / sum(weight**2 / clusters_of[name] for name, weight in weights.items())
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(variance > 0, score * (1 - score) / variance, alike)
    centre = (score + Z95**2 / (2 * size)) / (1 + Z95**2 / size)
    half = Z95 * np.sqrt(score * (1 - score) / size + Z95**2 / (4 * size**2)) / (1 + Z95**2 / size)
    return centre - half, centre + half


def _coverage(truth: float, low: Numbers, high: Numbers) -> float:
    return float(np.mean((low <= truth) & (truth <= high)) * 100)


def _mean_error(variance: Numbers) -> float:
    """Average the standard errors, in points."""
    return float(np.mean(np.sqrt(variance)) * 100)


def _print(headers: Sequence[str], table: Iterator[list[str | float]]) -> None:
    formats = ("", "", "", *[".2f"] * (len(headers) - 3))
    print(tabulate(list(table), headers=headers, tablefmt="github", floatfmt=formats, disable_numparse=[1]))


def _check_independent(
    node: Node, sizes: Mapping[str, int], hits: Mapping[str, Counts], low: Numbers, high: Numbers
) -> None:
    """Put some runs through the package; the arithmetic above is only its own, for many runs at once."""
    lengths = {name: [1] * size for name, size in sizes.items()}
    for run in range(_CHECKED):
        totals = {name: [int(place < hits[name][run]) for place in range(size)] for name, size in sizes.items()}
        _same(_estimate(node, lengths, totals).interval, low[run], high[run])


def _check_clustered(
    node: Node,
    lengths: Mapping[str, Sequence[int]],
    totals: Mapping[str, Counts],
    bars: tuple[tuple[Numbers, Numbers], tuple[Numbers, Numbers]],
) -> None:
    for run in range(_CHECKED):
        found = _estimate(node, lengths, {name: of_runs[run].tolist() for name, of_runs in totals.items()})
        for theirs, (low, high) in zip((found.interval, found.clustered_interval), bars, strict=True):
            _same(theirs, low[run], high[run])


def _estimate(node: Node, lengths: Mapping[str, Sequence[int]], totals: Mapping[str, Sequence[int]]) -> Estimate:
    """Let the package estimate a run in which each cluster has so many hits among so many rows."""
    rows, named = [], {}
    for name, found in lengths.items():
        for cluster, (length, total) in enumerate(zip(found, totals[name], strict=True)):
            for place in range(length):
                row = Row(f"{name}_{cluster}-{place}", name, (Outcome.HIT if place < total else Outcome.MISS,))
                rows.append(row)
                named[row.id] = f"{name}:{cluster}"
    statistics = build_statistics(rows, named, on_error=OnError.FAIL)
    estimate = statistics.overall if node is OVERALL else statistics.normalized
    if estimate is None:
        raise SystemExit("the package gives no estimate")
    return estimate


def _same(theirs: tuple[float, float] | None, low: float, high: float) -> None:
    if theirs is None or max(abs(theirs[0] - low * 100), abs(theirs[1] - high * 100)) > 1e-3:
        raise SystemExit(f"the package gives {theirs} where {low * 100} to {high * 100} was expected")


if __name__ == "__main__":
    main()

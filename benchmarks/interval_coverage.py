"""How often does a 95 % interval hold the truth? A simulation: rows come out with known chances, many times over.

From the project's folder: ``python -m benchmarks.interval_coverage [--draws 10000] [--seed 1]``. Prints a table:
for each draw, chance of a hit and score, how often the interval that results show (Wilson on the effective size) held
the true score, how often score +- 1.96 standard errors did, and how wide they were on average. "mixed" gives subsets
chances of their own. A few simulated runs are also put through the package itself and have to give the same interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from agentcompass_bfcl.aggregate import OVERALL, WEIGHTS, Node, OnError, subset_coefficients
from agentcompass_bfcl.draw import PRESETS, plan
from agentcompass_bfcl.rows import Row
from agentcompass_bfcl.statistics import build_statistics
from agentcompass_bfcl.subsets import reference_subset_totals
from agentcompass_bfcl.tally import Outcome
from agentcompass_bfcl.uncertainty import Z95

type Numbers = NDArray[np.float64]

MIXED = {
    **{"simple_python": 0.95, "simple_java": 0.65, "simple_javascript": 0.7, "multiple": 0.94, "parallel": 0.9},
    **{"parallel_multiple": 0.88, "live_simple": 0.85, "live_multiple": 0.8, "live_parallel": 0.75},
    **{"live_parallel_multiple": 0.7, "irrelevance": 0.86, "live_irrelevance": 0.8},
}
_CHECKED = 5


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10_000, help="simulated runs of each kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = np.random.default_rng(arguments.seed)
    table = []
    for draw in ("golden", "echolp", "full"):
        sizes = dict(plan(PRESETS[draw], reference_subset_totals()))
        for chance in (0.5, 0.87, 0.97, None):
            chances = {name: MIXED[name] if chance is None else chance for name in sizes}
            hits = {name: generator.binomial(size, chances[name], arguments.draws) for name, size in sizes.items()}
            for node in (OVERALL, WEIGHTS):
                shown = "mixed" if chance is None else f"{chance:g}"
                table.append([draw, shown, node.name, *covered(node, sizes, chances, hits)])
    headers = ["draw", "p", "score", "interval shown: covers", "width", "score +- 1.96 se: covers", "width"]
    print(tabulate(table, headers=headers, tablefmt="github", floatfmt=("", "", "", ".2f", ".2f", ".2f", ".2f")))


def covered(
    node: Node, sizes: Mapping[str, int], chances: Mapping[str, float], hits: Mapping[str, NDArray[np.int64]]
) -> tuple[float, float, float, float]:
    """Give coverage in percent and mean width in points, of the interval that is shown and of the plain one."""
    weights = {name: float(weight) for name, weight in subset_coefficients(node, sizes).items()}
    truth = sum(weight * chances[name] for name, weight in weights.items())
    shares = {name: hits[name] / sizes[name] for name in weights}
    score: Numbers = np.sum([weight * shares[name] for name, weight in weights.items()], axis=0)
    variance: Numbers = np.sum(
        [weight**2 * shares[name] * (1 - shares[name]) / (sizes[name] - 1) for name, weight in weights.items()], axis=0
    )
    alike = 1 / sum(weight**2 / sizes[name] for name, weight in weights.items())
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(variance > 0, score * (1 - score) / variance, alike)
    centre = (score + Z95**2 / (2 * size)) / (1 + Z95**2 / size)
    half = Z95 * np.sqrt(score * (1 - score) / size + Z95**2 / (4 * size**2)) / (1 + Z95**2 / size)
    plain = Z95 * np.sqrt(variance)
    _check(node, sizes, hits, centre - half, centre + half)
    return (
        *_coverage(truth, centre - half, centre + half),
        *_coverage(truth, score - plain, score + plain),
    )


def _coverage(truth: float, low: Numbers, high: Numbers) -> tuple[float, float]:
    return float(np.mean((low <= truth) & (truth <= high)) * 100), float(np.mean(high - low) * 100)


def _check(
    node: Node, sizes: Mapping[str, int], hits: Mapping[str, NDArray[np.int64]], low: Numbers, high: Numbers
) -> None:
    """Put some runs through the package; the arithmetic above is only its own, for many runs at once."""
    for run in range(_CHECKED):
        rows = [
            Row(f"{name}_{place}", name, (Outcome.HIT if place < hits[name][run] else Outcome.MISS,))
            for name, size in sizes.items()
            for place in range(size)
        ]
        found = build_statistics(rows, {row.id: row.id for row in rows}, on_error=OnError.FAIL)
        estimate = found.overall if node is OVERALL else found.normalized
        if estimate is None or estimate.interval is None:
            raise SystemExit("the package gives no interval")
        for mine, theirs in zip((low[run], high[run]), estimate.interval, strict=True):
            if abs(mine * 100 - theirs) > 1e-3:
                raise SystemExit(f"the package gives {theirs} where {mine * 100} was expected")


if __name__ == "__main__":
    main()

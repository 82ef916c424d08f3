"""From tallies to scores: one tree of weights, evaluated in exact fractions.

    normalized = mean of the categories
      non_live      = mean(simple = mean(its three subsets), multiple, parallel, parallel_multiple)
      live          = all live rows pooled
      hallucination = mean(irrelevance, live_irrelevance)
    overall = all scored rows pooled, live_relevance included where it was drawn

The formulas are score.py's (MLPerf edge-agentic). Subsets that are absent leave their divisor, as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType

from agentcompass_bfcl.subsets import CATEGORIES, HALLUCINATION, LIVE, NON_LIVE, SIMPLE_AST, SINGLE_TURN_SUBSETS
from agentcompass_bfcl.tally import Tally


class Combine(StrEnum):
    """How a node's value comes from its children: each child alike, or each row alike."""

    MEAN = "mean"
    POOLED = "pooled"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the weight tree. A child is another node or the name of a subset."""

    name: str
    combine: Combine
    children: tuple[Node | str, ...]


WEIGHTS = Node(
    "normalized",
    Combine.MEAN,
    (
        Node(
            "non_live",
            Combine.MEAN,
            (Node("simple", Combine.MEAN, SIMPLE_AST), *(name for name in NON_LIVE if name not in SIMPLE_AST)),
        ),
        Node("live", Combine.POOLED, LIVE),
        Node("hallucination", Combine.MEAN, HALLUCINATION),
    ),
)

OVERALL = Node("overall", Combine.POOLED, SINGLE_TURN_SUBSETS)


class OnError(StrEnum):
    """What an unscored sample does to a score.

    ``fail`` keeps it in the denominator with no hit (MLPerf's rule); ``exclude`` leaves it out.
    """

    FAIL = "fail"
    EXCLUDE = "exclude"


@dataclass(frozen=True, slots=True)
class ExactScores:
    """Scores as fractions of 1. A name is missing where nothing was scored for it."""

    overall: Fraction | None
    normalized: Fraction | None
    nodes: Mapping[str, Fraction]
    subsets: Mapping[str, Fraction]
    coefficients: Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The scores of a set of tallies, in percent rounded to two decimals as score.py prints them.

    ``overall_accuracy`` and ``normalized_single_turn_score`` are None where nothing was scored: no score is not a
    score of 0. ``exact`` holds the fractions behind them.
    """

    overall_accuracy: float | None
    normalized_single_turn_score: float | None
    category_scores: Mapping[str, float]
    subset_scores: Mapping[str, float]
    total_samples: int
    absent: tuple[str, ...]
    exact: ExactScores
    counted: Mapping[str, tuple[int, int]] = field(repr=False)

    def score_json(self, unmatched_responses: int = 0) -> dict[str, object]:
        """Give the object score.py prints; ``subset_totals`` is ``{subset: [hits, n]}``."""
        return {
            "overall_accuracy": self.overall_accuracy,
            "normalized_single_turn_score": self.normalized_single_turn_score,
            "category_scores": dict(self.category_scores),
            "subset_scores": dict(self.subset_scores),
            "total_samples": self.total_samples,
            "unmatched_responses": unmatched_responses,
            "subset_totals": {name: list(pair) for name, pair in self.counted.items()},
        }


def percent(value: Fraction) -> float:
    """Show a fraction of 1 as a percentage with two decimals."""
    return round(float(value * 100), 2)


def aggregate(tallies: Mapping[str, Tally], on_error: OnError = OnError.FAIL) -> Aggregate:
    """Compute every score from tallies, counting first and dividing once."""
    counted = {}
    for name, tally in sorted(tallies.items()):
        counted_rows = tally.drawn if on_error is OnError.FAIL else tally.n
        if counted_rows > 0:
            counted[name] = (tally.hits, counted_rows)
    exact = _exact_scores(counted)
    return Aggregate(
        overall_accuracy=None if exact.overall is None else percent(exact.overall),
        normalized_single_turn_score=None if exact.normalized is None else percent(exact.normalized),
        category_scores={name: percent(exact.nodes[name]) for name in CATEGORIES if name in exact.nodes},
        subset_scores={name: percent(value) for name, value in exact.subsets.items()},
        total_samples=sum(rows for _, rows in counted.values()),
        absent=tuple(sorted(name for name in subset_names(WEIGHTS) if name not in counted)),
        exact=exact,
        counted=MappingProxyType(counted),
    )


def _exact_scores(counted: Mapping[str, tuple[int, int]]) -> ExactScores:
    rows = sum(n for _, n in counted.values())
    subsets = {name: Fraction(hits, n) for name, (hits, n) in counted.items()}
    coefficients = subset_coefficients(WEIGHTS, {name: n for name, (_, n) in counted.items()})
    nodes: dict[str, Fraction] = {}
    for node in inner_nodes(WEIGHTS):
        weights = subset_coefficients(node, {name: n for name, (_, n) in counted.items()})
        if weights:
            nodes[node.name] = sum((weight * subsets[name] for name, weight in weights.items()), Fraction(0))
    return ExactScores(
        overall=Fraction(sum(hits for hits, _ in counted.values()), rows) if rows else None,
        normalized=nodes.pop(WEIGHTS.name, None),
        nodes=MappingProxyType(nodes),
        subsets=MappingProxyType(subsets),
        coefficients=MappingProxyType(coefficients),
    )


def subset_coefficients(node: Node, rows: Mapping[str, int]) -> dict[str, Fraction]:
    """Give each present subset's weight in a node's value; they add up to 1, or are none where nothing is present.

    ``rows`` counts the rows of the present subsets. Scores and their standard errors both come from these weights.
    """
    parts = [
        ({child: Fraction(1)} if rows.get(child) else {})
        if isinstance(child, str)
        else subset_coefficients(child, rows)
        for child in node.children
    ]
    present = [part for part in parts if part]
    sizes = [Fraction(sum(rows[name] for name in part)) for part in present]
    shares = sizes if node.combine is Combine.POOLED else [Fraction(1)] * len(present)
    return {
        name: weight * share / sum(shares)
        for part, share in zip(present, shares, strict=True)
        for name, weight in part.items()
    }


def inner_nodes(node: Node) -> list[Node]:
    """List a node and the nodes below it, children first."""
    return [*(found for child in node.children if isinstance(child, Node) for found in inner_nodes(child)), node]


def subset_names(node: Node) -> list[str]:
    """List the subsets a node's value depends on."""
    return [name for child in node.children for name in (subset_names(child) if isinstance(child, Node) else [child])]

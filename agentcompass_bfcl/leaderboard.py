"""The official leaderboard's columns, as far as single-turn subsets decide them.

The formulas are those of bfcl-eval's ``data_overall.csv``, ``data_non_live.csv`` and ``data_live.csv``, with one
difference: there a category that was not evaluated counts as 0 in some columns, here a column that lacks a part has no
value. The leaderboard's overall accuracy needs multi-turn and agentic results, so there is none here at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from agentcompass_bfcl.aggregate import OnError, percent
from agentcompass_bfcl.subsets import HALLUCINATION, LIVE, SIMPLE_AST, SUBSET_BY_NAME
from agentcompass_bfcl.tally import Tally

OVERALL = "Overall Acc"
NOT_COMPUTABLE = "not computable from single-turn results alone"

type Columns = Mapping[str, float | str | None]
type _Parts = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Columns by official name, in percent with two decimals; None where a part is absent.

    ``overall``, ``non_live`` and ``live`` are the official tables. ``incomplete`` are the subsets with fewer rows than
    they have officially, absent ones included: columns with them are not comparable with published ones.
    """

    overall: Columns
    non_live: Columns
    live: Columns
    incomplete: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Write as JSON."""
        tables = {"overall": dict(self.overall), "non_live": dict(self.non_live), "live": dict(self.live)}
        return {**tables, "incomplete": list(self.incomplete)}


def leaderboard(tallies: Mapping[str, Tally], on_error: OnError = OnError.FAIL) -> Leaderboard:
    """Compute every column from tallies, in fractions, rounding once."""
    counted = {name: tally.drawn if on_error is OnError.FAIL else tally.n for name, tally in tallies.items()}
    scored = any(tally.n for tally in tallies.values())  # a run with nothing scored has no score; it is not 0
    parts = {name: (tallies[name].hits, rows) for name, rows in counted.items() if rows > 0 and scored}
    one = {name: Fraction(hits, rows) for name, (hits, rows) in parts.items()}
    simple = _mean([one.get(name) for name in SIMPLE_AST])
    non_live = _mean([simple, *(one.get(name) for name in ("multiple", "parallel", "parallel_multiple"))])
    live = _pooled(parts, LIVE)
    irrelevance = _mean([one.get(name) for name in HALLUCINATION])
    overall = {
        "Non-Live AST Acc": non_live,
        "Non-Live Simple AST": simple,
        "Non-Live Multiple AST": one.get("multiple"),
        "Non-Live Parallel AST": one.get("parallel"),
        "Non-Live Parallel Multiple AST": one.get("parallel_multiple"),
        "Live Acc": live,
        "Live Simple AST": one.get("live_simple"),
        "Live Multiple AST": one.get("live_multiple"),
        "Live Parallel AST": one.get("live_parallel"),
        "Live Parallel Multiple AST": one.get("live_parallel_multiple"),
        "Relevance Detection": one.get("live_relevance"),
        "Irrelevance Detection": irrelevance,
    }
    return Leaderboard(
        overall=MappingProxyType({OVERALL: NOT_COMPUTABLE, **_percent(overall)}),
        non_live=MappingProxyType(_percent(_non_live_table(one, simple, non_live))),
        live=MappingProxyType(_percent(_live_table(one, live))),
        incomplete=tuple(name for name, subset in SUBSET_BY_NAME.items() if counted.get(name, 0) < subset.rows),
    )


def _non_live_table(
    one: Mapping[str, Fraction], simple: Fraction | None, non_live: Fraction | None
) -> dict[str, Fraction | None]:
    return {
        "Non-Live Overall Acc": non_live,
        "AST Summary": non_live,
        "Simple AST": simple,
        "Python Simple AST": one.get("simple_python"),
        "Java Simple AST": one.get("simple_java"),
        "JavaScript Simple AST": one.get("simple_javascript"),
        "Multiple AST": one.get("multiple"),
        "Parallel AST": one.get("parallel"),
        "Parallel Multiple AST": one.get("parallel_multiple"),
        "Irrelevance Detection": one.get("irrelevance"),
    }


def _live_table(one: Mapping[str, Fraction], live: Fraction | None) -> dict[str, Fraction | None]:
    return {
        "Live Overall Acc": live,
        "AST Summary": live,
        "Python Simple AST": one.get("live_simple"),
        "Python Multiple AST": one.get("live_multiple"),
        "Python Parallel AST": one.get("live_parallel"),
        "Python Parallel Multiple AST": one.get("live_parallel_multiple"),
        "Irrelevance Detection": one.get("live_irrelevance"),
        "Relevance Detection": one.get("live_relevance"),
    }


def _mean(values: list[Fraction | None]) -> Fraction | None:
    present = [value for value in values if value is not None]
    return sum(present, Fraction(0)) / len(values) if len(present) == len(values) else None


def _pooled(parts: _Parts, names: tuple[str, ...]) -> Fraction | None:
    if any(name not in parts for name in names):
        return None
    return Fraction(sum(parts[name][0] for name in names), sum(parts[name][1] for name in names))


def _percent(columns: Mapping[str, Fraction | None]) -> dict[str, float | None]:
    return {name: None if value is None else percent(value) for name, value in columns.items()}

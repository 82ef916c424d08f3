"""The scores, worked out by hand and by the formulas themselves.

normalized = mean(non_live, live, hallucination)
  non_live      = mean(mean(simple_python, simple_java, simple_javascript), multiple, parallel, parallel_multiple)
  live          = hits / rows over its four subsets
  hallucination = mean(irrelevance, live_irrelevance)
overall = hits / rows over everything
"""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.aggregate import (
    WEIGHTS,
    Aggregate,
    OnError,
    aggregate,
    inner_nodes,
    percent,
    subset_coefficients,
    subset_names,
)
from agentcompass_bfcl.draw import PRESETS, plan
from agentcompass_bfcl.subsets import (
    CATEGORIES,
    HALLUCINATION,
    LIVE,
    NON_LIVE,
    SIMPLE_AST,
    SINGLE_TURN_SUBSETS,
    category_of,
    reference_subset_totals,
)
from agentcompass_bfcl.tally import Outcome, Tally, count, union

# hits and rows; 8 of 12 hit, and the categories are
#   non_live      mean(simple = mean(2/2, 0/1) = 50 %, multiple = 0/1)      = 25 %
#   live          (3 + 0) / (3 + 1)                                         = 75 %
#   hallucination mean(irrelevance = 3/3, live_irrelevance = 0/1)           = 50 %
TWELVE = {
    "simple_python": Tally(2, 2),
    "simple_java": Tally(0, 1),
    "multiple": Tally(0, 1),
    "live_simple": Tally(3, 3),
    "live_multiple": Tally(0, 1),
    "irrelevance": Tally(3, 3),
    "live_irrelevance": Tally(0, 1),
}


def test_twelve_samples_worked_out_by_hand() -> None:
    scores = aggregate(TWELVE)
    assert scores.category_scores == {"non_live": 25.0, "live": 75.0, "hallucination": 50.0}
    assert scores.normalized_single_turn_score == 50.0
    assert scores.overall_accuracy == 66.67
    assert scores.total_samples == 12
    assert scores.exact.overall == Fraction(8, 12)
    assert scores.exact.nodes["simple"] == Fraction(1, 2)
    assert scores.absent == (
        "live_parallel",
        "live_parallel_multiple",
        "parallel",
        "parallel_multiple",
        "simple_javascript",
    )


def test_the_object_score_py_prints() -> None:
    assert aggregate(TWELVE).score_json(unmatched_responses=1) == {
        "overall_accuracy": 66.67,
        "normalized_single_turn_score": 50.0,
        "category_scores": {"non_live": 25.0, "live": 75.0, "hallucination": 50.0},
        "subset_scores": {
            "irrelevance": 100.0,
            "live_irrelevance": 0.0,
            "live_multiple": 0.0,
            "live_simple": 100.0,
            "multiple": 0.0,
            "simple_java": 0.0,
            "simple_python": 100.0,
        },
        "total_samples": 12,
        "unmatched_responses": 1,
        "subset_totals": {
            "irrelevance": [3, 3],
            "live_irrelevance": [0, 1],
            "live_multiple": [0, 1],
            "live_simple": [3, 3],
            "multiple": [0, 1],
            "simple_java": [0, 1],
            "simple_python": [2, 2],
        },
    }
    assert json.loads(json.dumps(aggregate(TWELVE).score_json()))["unmatched_responses"] == 0


@pytest.mark.parametrize(
    ("tallies", "categories", "normalized", "overall"),
    [
        # Two simple subsets alone: their mean, whatever their sizes; the other parts leave every divisor.
        ({"simple_python": Tally(3, 4), "simple_java": Tally(0, 1)}, {"non_live": 37.5}, 37.5, 60.0),
        # Without live_parallel the pool of live is just smaller.
        (
            {"live_simple": Tally(1, 4), "live_multiple": Tally(5, 5), "live_parallel_multiple": Tally(0, 1)},
            {"live": 60.0},
            60.0,
            60.0,
        ),
        # Pooled, not a mean: 1/1 and 0/3 are 25 %, where their mean would be 50 %.
        ({"live_parallel": Tally(1, 1), "live_simple": Tally(0, 3)}, {"live": 25.0}, 25.0, 25.0),
        # One subset of hallucination stands for the category.
        ({"irrelevance": Tally(1, 4)}, {"hallucination": 25.0}, 25.0, 25.0),
        # A category that is absent leaves the divisor of the normalized score.
        (
            {"multiple": Tally(1, 1), "irrelevance": Tally(0, 3)},
            {"non_live": 100.0, "hallucination": 0.0},
            50.0,
            25.0,
        ),
        # simple is one part of four in non_live, not three of six.
        (
            {"simple_python": Tally(1, 1), "simple_java": Tally(1, 1), "simple_javascript": Tally(1, 1)}
            | {"multiple": Tally(0, 1), "parallel": Tally(0, 1), "parallel_multiple": Tally(0, 1)},
            {"non_live": 25.0},
            25.0,
            50.0,
        ),
        # live_relevance counts in overall and in no category.
        ({"multiple": Tally(0, 1), "live_relevance": Tally(3, 3)}, {"non_live": 0.0}, 0.0, 75.0),
    ],
)
def test_small_cases_worked_out_by_hand(
    tallies: dict[str, Tally], categories: dict[str, float], normalized: float, overall: float
) -> None:
    scores = aggregate(tallies)
    assert scores.category_scores == categories
    assert scores.normalized_single_turn_score == normalized
    assert scores.overall_accuracy == overall
    assert set(scores.absent) == set(SINGLE_TURN_SUBSETS) - set(tallies) - {"live_relevance"}


def test_live_relevance_alone_has_an_overall_score_and_no_normalized_one() -> None:
    scores = aggregate({"live_relevance": Tally(12, 16)})
    assert scores.overall_accuracy == 75.0
    assert scores.normalized_single_turn_score is None
    assert scores.category_scores == {}
    assert scores.subset_scores == {"live_relevance": 75.0}


@pytest.mark.parametrize("policy", OnError)
@pytest.mark.parametrize("tallies", [{}, {"multiple": Tally(), "live_simple": Tally()}])
def test_nothing_counted_is_no_score_and_not_a_score_of_zero(tallies: dict[str, Tally], policy: OnError) -> None:
    scores = aggregate(tallies, policy)
    assert scores.overall_accuracy is None
    assert scores.normalized_single_turn_score is None
    assert scores.category_scores == scores.subset_scores == scores.exact.coefficients == {}
    assert scores.total_samples == 0
    assert scores.exact.overall is None
    assert len(scores.absent) == 12


def test_a_sample_without_a_verdict_counts_as_wrong_or_is_left_out() -> None:
    tallies = {"multiple": Tally(3, 3, 1), "irrelevance": Tally(1, 2, 2), "live_simple": Tally(0, 0, 5)}
    failing = aggregate(tallies, OnError.FAIL)
    assert failing.category_scores == {"non_live": 75.0, "live": 0.0, "hallucination": 25.0}
    assert (failing.overall_accuracy, failing.total_samples) == (30.77, 13)  # 4 of 13, wrong on irrelevance too
    excluding = aggregate(tallies, OnError.EXCLUDE)
    assert excluding.category_scores == {"non_live": 100.0, "hallucination": 50.0}
    assert (excluding.overall_accuracy, excluding.total_samples) == (80.0, 5)
    assert "live_simple" in excluding.absent
    assert "live_simple" not in failing.absent
    assert aggregate(tallies) == failing


@st.composite
def tallies_by_subset(draw: st.DrawFn) -> dict[str, Tally]:
    sizes = draw(st.dictionaries(st.sampled_from(SINGLE_TURN_SUBSETS), st.integers(0, 40)))
    return {name: Tally(draw(st.integers(0, n)), n, draw(st.integers(0, 3))) for name, n in sizes.items()}


POLICIES = st.sampled_from(OnError)


def mean(values: list[Fraction | None]) -> Fraction | None:
    present = [value for value in values if value is not None]
    return sum(present, Fraction(0)) / len(present) if present else None


def by_the_formulas(tallies: dict[str, Tally], policy: OnError) -> tuple[dict[str, Fraction | None], Fraction | None]:
    """Compute the categories and the normalized score straight from the formulas above."""

    def rows(name: str) -> int:
        tally = tallies.get(name, Tally())
        return tally.n + (tally.errors if policy is OnError.FAIL else 0)

    def accuracy(*names: str) -> Fraction | None:
        total = sum(map(rows, names))
        return Fraction(sum(tallies.get(name, Tally()).hits for name in names), total) if total else None

    simple = mean([accuracy(name) for name in SIMPLE_AST])
    categories = {
        "non_live": mean([simple, *(accuracy(name) for name in NON_LIVE if name not in SIMPLE_AST)]),
        "live": accuracy(*LIVE),
        "hallucination": mean([accuracy(name) for name in HALLUCINATION]),
    }
    return categories, mean(list(categories.values()))


@given(tallies=tallies_by_subset(), policy=POLICIES)
def test_scores_are_what_the_formulas_say(tallies: dict[str, Tally], policy: OnError) -> None:
    scores = aggregate(tallies, policy)
    categories, normalized = by_the_formulas(tallies, policy)
    assert {name: scores.exact.nodes.get(name) for name in CATEGORIES} == categories
    assert scores.exact.normalized == normalized
    assert scores.normalized_single_turn_score == (None if normalized is None else percent(normalized))


@given(tallies=tallies_by_subset(), policy=POLICIES)
def test_coefficients_add_up_to_one_and_reproduce_every_score_exactly(
    tallies: dict[str, Tally], policy: OnError
) -> None:
    exact = aggregate(tallies, policy).exact
    if exact.normalized is None:
        assert exact.coefficients == {}
        return
    assert sum(exact.coefficients.values()) == 1
    assert sum(weight * exact.subsets[name] for name, weight in exact.coefficients.items()) == exact.normalized
    assert all(weight > 0 and category_of(name) is not None for name, weight in exact.coefficients.items())


def test_the_weights_of_a_full_run_are_the_known_ones() -> None:
    rows = dict(plan(PRESETS["full"], reference_subset_totals()))
    live = sum(rows[name] for name in LIVE)
    assert subset_coefficients(WEIGHTS, rows) == (
        dict.fromkeys(SIMPLE_AST, Fraction(1, 36))
        | dict.fromkeys(("multiple", "parallel", "parallel_multiple"), Fraction(1, 12))
        | {name: Fraction(rows[name], 3 * live) for name in LIVE}
        | dict.fromkeys(HALLUCINATION, Fraction(1, 6))
    )


def test_the_tree_names_every_subset_of_a_category_once_and_children_come_first() -> None:
    assert sorted(subset_names(WEIGHTS)) == sorted([*NON_LIVE, *LIVE, *HALLUCINATION])
    assert [node.name for node in inner_nodes(WEIGHTS)] == ["simple", "non_live", "live", "hallucination", "normalized"]


OUTCOMES = st.lists(st.tuples(st.sampled_from(SINGLE_TURN_SUBSETS), st.sampled_from(Outcome)), max_size=60)


@given(outcomes=OUTCOMES, policy=POLICIES, shards=st.integers(1, 5), data=st.data())
def test_however_the_rows_are_cut_into_shards_the_scores_are_the_same_exactly(
    outcomes: list[tuple[str, Outcome]], policy: OnError, shards: int, data: st.DataObject
) -> None:
    places = data.draw(st.lists(st.integers(0, shards - 1), min_size=len(outcomes), max_size=len(outcomes)))
    parts = [
        count(outcome for outcome, place in zip(outcomes, places, strict=True) if place == shard)
        for shard in range(shards)
    ]
    whole, merged = aggregate(count(outcomes), policy), aggregate(union(*parts), policy)
    assert merged.exact == whole.exact
    assert merged.score_json() == whole.score_json()
    assert merged == whole


@given(tallies=tallies_by_subset(), policy=POLICIES)
def test_scores_are_percentages_and_rise_with_every_hit(tallies: dict[str, Tally], policy: OnError) -> None:
    scores = aggregate(tallies, policy)
    numbers = [*scores.category_scores.values(), *scores.subset_scores.values()]
    numbers += [value for value in (scores.overall_accuracy, scores.normalized_single_turn_score) if value is not None]
    assert all(0 <= value <= 100 and round(value, 2) == value for value in numbers)
    for name, tally in tallies.items():
        if tally.hits < tally.n:
            better = aggregate({**tallies, name: Tally(tally.hits + 1, tally.n, tally.errors)}, policy)
            assert_risen(scores, better, name)


def assert_risen(before: Aggregate, after: Aggregate, subset: str) -> None:
    assert before.exact.overall is not None
    assert after.exact.overall is not None
    assert after.exact.overall > before.exact.overall
    if category_of(subset) is None:
        assert after.exact.normalized == before.exact.normalized
    else:
        assert before.exact.normalized is not None
        assert after.exact.normalized is not None
        assert after.exact.normalized > before.exact.normalized


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(2, 3), 66.67),
        (Fraction(1, 3), 33.33),
        (Fraction(1), 100.0),
        (Fraction(0), 0.0),
        (Fraction(1, 8), 12.5),
    ],
)
def test_a_percentage_has_two_decimals(value: Fraction, shown: float) -> None:
    assert percent(value) == shown

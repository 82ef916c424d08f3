from __future__ import annotations

from fractions import Fraction
from math import factorial, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]  # scipy ships no types

from agentcompass_bfcl.aggregate import OVERALL, WEIGHTS, OnError, aggregate, inner_nodes, subset_coefficients
from agentcompass_bfcl.draw import PRESETS, plan
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, reference_subset_totals
from agentcompass_bfcl.tally import Tally
from agentcompass_bfcl.uncertainty import (
    Cluster,
    effective_size,
    group,
    mcnemar,
    mean_variance,
    node_mean,
    node_variance,
    wilson,
)

NODES = {node.name: node for node in inner_nodes(WEIGHTS)} | {"overall": OVERALL}


def rows(hits: int, n: int) -> list[Cluster]:
    return [Cluster(int(place < hits), 1) for place in range(n)]


@pytest.mark.parametrize(
    ("clusters", "variance"),
    [
        # Rows alone: p (1 - p) / (n - 1).
        (rows(1, 2), Fraction(1, 4)),  # 1/2 * 1/2 / 1
        (rows(3, 4), Fraction(1, 16)),  # 3/4 * 1/4 / 3
        (rows(5, 5), Fraction(0)),
        # Two clusters of two, all right and all wrong: 2/1 * ((2 - 1)^2 + (0 - 1)^2) / 4^2.
        ([Cluster(2, 2), Cluster(0, 2)], Fraction(1, 4)),
        # Unequal sizes, p = 3/4: 2/1 * ((3 - 9/4)^2 + (0 - 3/4)^2) / 4^2.
        ([Cluster(3, 3), Cluster(0, 1)], Fraction(9, 64)),
        # Differences of two runs: mean 0, 3/2 * (1 + 1) / 9.
        ([Cluster(1, 1), Cluster(-1, 1), Cluster(0, 1)], Fraction(1, 3)),
        (rows(1, 1), None),
        ([Cluster(4, 7)], None),
        ([], None),
    ],
)
def test_the_variance_of_a_mean_worked_by_hand(clusters: list[Cluster], variance: Fraction | None) -> None:
    assert mean_variance(clusters) == variance


def test_weights_count_squared() -> None:
    strata = {"irrelevance": rows(3, 4), "live_irrelevance": rows(1, 2)}
    # (1/2)^2 * 1/16 + (1/2)^2 * 1/4
    assert node_variance(NODES["hallucination"], strata) == Fraction(5, 64)
    # Pooled: (4/6)^2 * 1/16 + (2/6)^2 * 1/4
    assert node_variance(OVERALL, strata) == Fraction(1, 18)


def test_a_single_row_leaves_a_mean_without_a_standard_error_and_is_joined_to_its_neighbour_in_a_pool() -> None:
    alone = {"irrelevance": rows(1, 1), "live_irrelevance": rows(1, 2)}
    assert node_variance(NODES["hallucination"], alone) is None
    live = {"live_parallel": rows(1, 1), "live_simple": rows(1, 2), "live_multiple": rows(3, 4)}
    # live_parallel joins live_simple, 2 of 3: (3/7)^2 * (2/3 * 1/3 / 2) + (4/7)^2 * 1/16
    assert node_variance(NODES["live"], live) == Fraction(9, 49) * Fraction(1, 9) + Fraction(16, 49) * Fraction(1, 16)
    assert node_variance(NODES["live"], {"live_parallel": rows(1, 1)}) is None
    assert node_variance(NODES["live"], {}) is None


@pytest.mark.parametrize(
    ("draw", "overall", "normalized"), [("golden", 1.07, 1.65), ("mini", 2.43, 4.31), ("full", 0.56, 0.64)]
)
def test_standard_errors_of_the_presets_where_every_subset_has_87_percent(
    draw: str, overall: float, normalized: float
) -> None:
    takes = dict(plan(PRESETS[draw], reference_subset_totals()))
    for node, expected in ((OVERALL, overall), (WEIGHTS, normalized)):
        weights = subset_coefficients(node, takes)
        # A subset of one row has no n - 1; in mini there are two of them, live_parallel and live_parallel_multiple.
        variance = sum(float(weights[name]) ** 2 * 0.87 * 0.13 / max(1, takes[name] - 1) for name in weights)
        assert sqrt(variance) * 100 == pytest.approx(expected, rel=0.03)


@st.composite
def strata_of_rows(draw: st.DrawFn, least: int = 2) -> dict[str, list[Cluster]]:
    sizes = draw(st.dictionaries(st.sampled_from(SINGLE_TURN_SUBSETS), st.integers(least, 60), min_size=1))
    return {name: rows(draw(st.integers(0, n)), n) for name, n in sorted(sizes.items())}


@given(strata=strata_of_rows())
def test_a_variance_is_the_sum_of_squared_weights_times_the_subsets_variances(
    strata: dict[str, list[Cluster]],
) -> None:
    sizes = {name: len(found) for name, found in strata.items()}
    for node in NODES.values():
        weights = subset_coefficients(node, sizes)
        variances = {name: mean_variance(strata[name]) for name in weights}
        total = sum((weights[name] ** 2 * (variances[name] or 0) for name in weights), Fraction(0))
        assert (node_variance(node, strata) or 0) == total
        assert (node_variance(node, strata) is None) == (not weights)


@given(strata=strata_of_rows(least=1))
def test_the_mean_of_the_rows_is_the_exact_score(strata: dict[str, list[Cluster]]) -> None:
    tallies = {name: Tally(sum(row.total for row in found), len(found)) for name, found in strata.items()}
    exact = aggregate(tallies, OnError.FAIL).exact
    assert node_mean(OVERALL, strata) == exact.overall
    assert node_mean(WEIGHTS, strata) == exact.normalized
    for name, value in exact.nodes.items():
        assert node_mean(NODES[name], strata) == value


@given(strata=strata_of_rows(least=1), data=st.data())
def test_the_order_of_rows_means_nothing(strata: dict[str, list[Cluster]], data: st.DataObject) -> None:
    names = data.draw(st.permutations(list(strata)))
    shuffled = {name: data.draw(st.permutations(strata[name])) for name in names}
    for node in NODES.values():
        assert node_variance(node, shuffled) == node_variance(node, strata)
        assert node_mean(node, shuffled) == node_mean(node, strata)


CLUSTERS = st.integers(1, 30).flatmap(lambda size: st.builds(Cluster, st.integers(-size, size), st.just(size)))


@given(strata=st.dictionaries(st.sampled_from(SINGLE_TURN_SUBSETS), st.lists(CLUSTERS, min_size=1, max_size=12)))
def test_a_variance_is_never_negative_and_is_defined_where_every_subset_has_two_clusters(
    strata: dict[str, list[Cluster]],
) -> None:
    for node in NODES.values():
        present = [strata[name] for name in subset_coefficients(node, dict.fromkeys(strata, 1))]
        variance = node_variance(node, strata)
        assert variance is None or variance >= 0
        if not present:
            assert variance is None
        elif all(len(found) >= 2 for found in present):
            assert variance is not None
    several = sum(len(found) for found in strata.values()) >= 2
    assert (node_variance(OVERALL, strata) is not None) == several  # a pool of everything always finds a neighbour


@given(values=st.lists(st.integers(0, 1), min_size=2, max_size=50), copies=st.integers(2, 5))
def test_rows_said_twice_are_no_more_certain_when_they_are_one_cluster(values: list[int], copies: int) -> None:
    once = [Cluster(value, 1) for value in values]
    clustered = [Cluster(value * copies, copies) for value in values]
    assert mean_variance(clustered) == mean_variance(once)
    apart = [Cluster(value, 1) for value in values for _ in range(copies)]
    assert (mean_variance(apart) or 0) <= (mean_variance(clustered) or 0)


def test_values_are_added_up_by_cluster_within_their_subset() -> None:
    values = [("multiple", "a", 1), ("multiple", "b", 0), ("multiple", "a", 0), ("irrelevance", "a", 1)]
    assert group(values) == {"irrelevance": (Cluster(1, 1),), "multiple": (Cluster(1, 2), Cluster(0, 1))}


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe (1998), table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_intervals_are_those_published(hits: int, n: int, low: float, high: float) -> None:
    assert tuple(round(end, 4) for end in wilson(hits / n, n)) == (low, high)


@given(n=st.integers(1, 5000), data=st.data())
def test_a_wilson_interval_holds_the_score_and_is_no_single_point(n: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, n)) / n
    low, high = wilson(value, n)
    assert 0 <= low <= value + 1e-12
    assert value - 1e-12 <= high <= 1
    assert low < high


def test_the_effective_size_is_the_number_of_rows_where_rows_are_all_there_is() -> None:
    value, n = Fraction(3, 4), 40
    weights, sizes = {"multiple": Fraction(1)}, {"multiple": n}
    assert effective_size(value, value * (1 - value) / n, weights, sizes) == n
    assert effective_size(Fraction(1), Fraction(0), weights, sizes) == n
    halves = {"multiple": Fraction(1, 2), "parallel": Fraction(1, 2)}
    # Two clusters of twenty rows that were all hit are two observations, not forty.
    assert effective_size(Fraction(1), Fraction(0), weights, {"multiple": 2}) == 2
    # Half the weight on 10 rows makes 90 others worth little: 1 / (1/4 / 10 + 1/4 / 90).
    assert effective_size(Fraction(1), Fraction(0), halves, {"multiple": 10, "parallel": 90}) == pytest.approx(36)


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (0, 0, Fraction(1)),  # no flip says nothing
        (1, 0, Fraction(1)),  # 2 * 1/2
        (3, 0, Fraction(1, 4)),  # 2 * 1/8
        (6, 0, Fraction(1, 32)),  # 2 * 1/64: the least number of flips, all one way, that is significant
        (5, 1, Fraction(7, 32)),  # 2 * (1 + 6) / 64
        (7, 3, Fraction(11, 32)),  # 2 * (1 + 10 + 45 + 120) / 1024
        (4, 4, Fraction(1)),
    ],
)
def test_mcnemar_worked_by_hand(gained: int, lost: int, p: Fraction) -> None:
    assert mcnemar(gained, lost) == p


@pytest.mark.parametrize("lost", range(11))
def test_mcnemar_is_the_sum_of_all_splits_that_are_no_likelier(lost: int) -> None:
    for gained in range(11):
        flips = gained + lost
        chances = [
            Fraction(factorial(flips), factorial(up) * factorial(flips - up) * 2**flips) for up in range(flips + 1)
        ]
        assert mcnemar(gained, lost) == sum(chance for chance in chances if chance <= chances[gained])


@given(gained=st.integers(0, 60), lost=st.integers(0, 60))
def test_mcnemar_is_the_exact_two_sided_binomial_test(gained: int, lost: int) -> None:
    p = mcnemar(gained, lost)
    assert p == mcnemar(lost, gained)
    if gained + lost:
        assert float(p) == pytest.approx(stats.binomtest(gained, gained + lost, 0.5).pvalue, rel=1e-9)
    else:
        assert p == 1

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.aggregate import OVERALL, WEIGHTS, Node, OnError, aggregate, percent, subset_coefficients
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, plan, select
from agentcompass_bfcl.rows import Row, tally_rows
from agentcompass_bfcl.statistics import Estimate, build_statistics
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, reference_subset_totals
from agentcompass_bfcl.tally import Outcome

HIT, MISS, ERROR = Outcome.HIT, Outcome.MISS, Outcome.ERROR
ALONE: Mapping[str, str] = {f"multiple_{number}": str(number) for number in range(40)}


def multiple(*outcomes: Sequence[Outcome] | Outcome) -> list[Row]:
    return [
        Row(f"multiple_{number}", "multiple", (found,) if isinstance(found, Outcome) else tuple(found))
        for number, found in enumerate(outcomes)
    ]


def test_the_error_bars_of_four_rows_worked_by_hand() -> None:
    found = build_statistics(multiple(HIT, HIT, HIT, MISS), ALONE, on_error=OnError.FAIL)
    overall = found.overall
    assert overall is not None
    # sqrt(3/4 * 1/4 / 3) = 1/4; Wilson for 3 of 4 by Newcombe's formula
    assert (overall.score, overall.standard_error, overall.clusters) == (75.0, 25.0, 4)
    assert overall.interval == (30.0642, 95.4413)
    assert found.subsets["multiple"] == found.categories["non_live"] == found.normalized == overall
    assert found.few_clusters == {"multiple": 4}
    assert found.attempts is None


@pytest.mark.parametrize(
    ("draw", "overall", "normalized"), [("golden", 1.07, 1.65), ("echolp", 1.07, 1.51), ("full", 0.56, 0.64)]
)
def test_standard_errors_of_the_presets_at_87_percent_in_every_subset(
    draw: str, overall: float, normalized: float
) -> None:
    # As near 87 % as whole rows allow; 2 % for that. In mini, subsets of one, four and five rows allow too little.
    sizes = plan(PRESETS[draw], reference_subset_totals())
    rows = [
        Row(f"{name}_{place}", name, (HIT if place < round(0.87 * size) else MISS,))
        for name, size in sizes
        for place in range(size)
    ]
    found = build_statistics(rows, {row.id: row.id for row in rows}, on_error=OnError.FAIL)
    for estimate, expected in ((found.overall, overall), (found.normalized, normalized)):
        assert estimate is not None
        assert estimate.standard_error == pytest.approx(expected, rel=0.02)


def test_errors_count_as_misses_or_not_at_all() -> None:
    rows = multiple(HIT, HIT, MISS, ERROR)
    failing, excluding = (build_statistics(rows, ALONE, on_error=policy).overall for policy in OnError)
    assert failing is not None
    assert excluding is not None
    assert (failing.score, failing.clusters) == (50.0, 4)
    assert (excluding.score, excluding.clusters) == (66.67, 3)


def test_what_is_undefined_is_none_and_not_zero() -> None:
    one_row = build_statistics(multiple(HIT), ALONE, on_error=OnError.FAIL).overall
    assert one_row is not None
    assert (one_row.standard_error, one_row.clustered_standard_error) == (None, None)
    # Wilson holds for a single row as well: 1 / (1 + 1.96^2) = 0.2065
    assert one_row.interval == one_row.clustered_interval == (20.6549, 100.0)
    one_cluster = build_statistics(
        multiple(HIT, MISS, HIT), dict.fromkeys(ALONE, "same"), on_error=OnError.FAIL
    ).overall
    assert one_cluster is not None
    assert one_cluster.standard_error is not None
    assert (one_cluster.clusters, one_cluster.clustered_standard_error) == (1, None)
    assert one_cluster.clustered_interval is None


def test_nothing_counted_has_no_error_bars() -> None:
    found = build_statistics(multiple(ERROR, ERROR), ALONE, on_error=OnError.EXCLUDE)
    assert (found.overall, found.normalized, found.subsets, found.categories) == (None, None, {}, {})


def test_a_single_row_of_a_category_leaves_normalized_without_a_standard_error_and_overall_with_one() -> None:
    rows = [*multiple(HIT, MISS, HIT), Row("irrelevance_0", "irrelevance", (HIT,))]
    found = build_statistics(rows, {**ALONE, "irrelevance_0": "i"}, on_error=OnError.FAIL)
    assert found.overall is not None
    assert found.normalized is not None
    assert found.overall.standard_error is not None
    assert (found.normalized.standard_error, found.normalized.interval) == (None, None)


def test_equal_attempts_add_no_certainty_and_unequal_ones_are_shown() -> None:
    once = build_statistics(multiple(HIT, MISS, HIT, HIT), ALONE, on_error=OnError.FAIL)
    thrice = build_statistics(multiple((HIT,) * 3, (MISS,) * 3, (HIT,) * 3, (HIT,) * 3), ALONE, on_error=OnError.FAIL)
    assert once.overall is not None
    assert thrice.overall is not None
    assert thrice.overall.standard_error == once.overall.standard_error
    assert thrice.attempts is not None
    assert (thrice.attempts.rows_that_vary, thrice.attempts.standard_deviation) == (0, 0.0)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_ten_rows_hit_k_times_are_no_surer_than_ten_rows_hit_once(k: int) -> None:
    once, often = (
        build_statistics(multiple(*[(HIT,) * attempts] * 10), ALONE, on_error=OnError.FAIL).overall
        for attempts in (1, k)
    )
    assert once is not None
    assert once.interval == (72.2467, 100.0)  # 10 / (10 + 1.96^2)
    assert often == once


def test_attempts_that_came_out_both_ways_are_counted_under_the_policy_for_errors() -> None:
    rows = multiple((HIT, ERROR), (MISS, ERROR), (ERROR, ERROR), (HIT, MISS))
    vary = {policy: build_statistics(rows, ALONE, on_error=policy).attempts for policy in OnError}
    assert {policy: found and found.rows_that_vary for policy, found in vary.items()} == {
        OnError.FAIL: 2,  # the first and the last
        OnError.EXCLUDE: 1,  # the last: an error is no miss
    }


def test_the_spread_of_attempts_worked_by_hand() -> None:
    spread = build_statistics(
        multiple((HIT, MISS), (MISS, HIT), (HIT, HIT), (MISS, MISS)), ALONE, on_error=OnError.FAIL
    )
    assert spread.attempts is not None
    assert spread.attempts.model_dump() == {
        "k": 2,
        "avg_at_k": 50.0,
        "pass_at_k": 75.0,
        "by_attempt": [50.0, 50.0],
        "standard_deviation": 0.0,
        "rows_that_vary": 2,
    }


def test_attempts_that_end_with_the_first_hit_have_no_average() -> None:
    found = build_statistics(multiple((HIT,), (MISS, HIT), (MISS, MISS)), ALONE, on_error=OnError.FAIL, any_of=True)
    assert found.overall is not None
    assert (found.overall.score, found.overall.clusters) == (66.67, 3)
    assert found.attempts is not None
    assert (found.attempts.avg_at_k, found.attempts.pass_at_k, found.attempts.by_attempt) == (None, 66.67, [])


def test_where_every_row_is_a_hit_the_intervals_are_no_single_points() -> None:
    sizes = plan(PRESETS["golden"], reference_subset_totals())
    rows = [Row(f"{name}_{place}", name, (HIT,)) for name, size in sizes for place in range(size)]
    pairs = {row.id: f"{row.subset}:{place // 2}" for place, row in enumerate(rows)}
    found = build_statistics(rows, pairs, on_error=OnError.FAIL)
    lows = []
    for estimate in (found.overall, found.normalized):
        assert estimate is not None
        assert estimate.interval is not None
        assert estimate.clustered_interval is not None
        assert (estimate.score, estimate.standard_error, estimate.interval[1]) == (100.0, 0.0, 100.0)
        assert estimate.clustered_interval[0] < estimate.interval[0] < 100  # half as many clusters show half as much
        lows.append(estimate.interval[0])
    assert lows[0] == pytest.approx(100 * 995 / (995 + 1.959964**2), abs=1e-3)
    assert lows[1] < lows[0]  # few rows carry much of normalized


OUTCOMES = st.lists(
    st.tuples(st.sampled_from(SINGLE_TURN_SUBSETS), st.lists(st.sampled_from(Outcome), min_size=1, max_size=3)),
    min_size=1,
    max_size=60,
)


def rows_of(outcomes: Sequence[tuple[str, Sequence[Outcome]]]) -> list[Row]:
    return [Row(f"{subset}_{place}", subset, tuple(found)) for place, (subset, found) in enumerate(outcomes)]


@given(outcomes=OUTCOMES, policy=st.sampled_from(OnError), any_of=st.booleans())
def test_the_scores_are_those_of_the_aggregate(
    outcomes: list[tuple[str, list[Outcome]]], policy: OnError, any_of: bool
) -> None:
    rows = rows_of(outcomes)
    found = build_statistics(rows, {row.id: row.id for row in rows}, on_error=policy, any_of=any_of)
    exact = aggregate(tally_rows(rows, any_of=any_of), policy).exact

    def score(estimate: Estimate | None) -> float | None:
        return None if estimate is None else estimate.score

    assert score(found.overall) == (None if exact.overall is None else percent(exact.overall))
    assert score(found.normalized) == (None if exact.normalized is None else percent(exact.normalized))
    assert {name: score(estimate) for name, estimate in found.subsets.items()} == {
        name: percent(value) for name, value in exact.subsets.items()
    }
    assert {name: score(estimate) for name, estimate in found.categories.items()} == {
        name: percent(exact.nodes[name]) for name in found.categories
    }


@given(outcomes=OUTCOMES, policy=st.sampled_from(OnError))
def test_both_error_bars_are_the_same_where_every_cluster_is_one_row(
    outcomes: list[tuple[str, list[Outcome]]], policy: OnError
) -> None:
    rows = rows_of(outcomes)
    found = build_statistics(rows, {row.id: f"own {row.id}" for row in rows}, on_error=policy)
    for estimate in (found.overall, found.normalized, *found.categories.values(), *found.subsets.values()):
        if estimate is not None:
            assert estimate.clustered_standard_error == estimate.standard_error
            assert estimate.clustered_interval == estimate.interval


@given(outcomes=OUTCOMES, policy=st.sampled_from(OnError), groups=st.integers(1, 9), data=st.data())
def test_the_order_of_rows_means_nothing(
    outcomes: list[tuple[str, list[Outcome]]], policy: OnError, groups: int, data: st.DataObject
) -> None:
    rows = rows_of(outcomes)
    grouped = {row.id: f"{row.subset}:{place % groups}" for place, row in enumerate(rows)}
    shuffled = data.draw(st.permutations(rows))
    assert build_statistics(shuffled, grouped, on_error=policy) == build_statistics(rows, grouped, on_error=policy)


@given(
    outcomes=st.lists(
        st.tuples(st.sampled_from(SINGLE_TURN_SUBSETS), st.sampled_from(Outcome)), min_size=1, max_size=60
    ),
    policy=st.sampled_from(OnError),
    groups=st.integers(1, 9),
)
def test_whatever_came_out_intervals_hold_their_score_and_few_clusters_are_named(
    outcomes: list[tuple[str, Outcome]], policy: OnError, groups: int
) -> None:
    rows = [Row(f"{subset}_{place}", subset, (found,)) for place, (subset, found) in enumerate(outcomes)]
    grouped = {row.id: f"{row.subset}:{place % groups}" for place, row in enumerate(rows)}
    found = build_statistics(rows, grouped, on_error=policy)
    estimates = [found.overall, found.normalized, *found.categories.values(), *found.subsets.values()]
    for estimate in estimates:
        if estimate is None:
            continue
        for interval in (estimate.interval, estimate.clustered_interval):
            assert interval is None or interval[0] - 0.01 <= estimate.score <= interval[1] + 0.01
        for error in (estimate.standard_error, estimate.clustered_standard_error):
            assert error is None or 0 <= error <= 100
    assert set(found.few_clusters) == set(found.subsets)


# Agreement with the bootstrap, which knows nothing of the formulas.

RESAMPLES = 20_000
ACCURACY = {"live": 0.8, "simple_java": 0.62, "simple_javascript": 0.7, "irrelevance": 0.84}


def played(entries: Sequence[Entry], seed: int) -> list[Row]:
    """Let rows come out with a chance by subset, and rows of one cluster alike three times in four."""
    random_numbers = random.Random(seed)  # noqa: S311 - a simulation
    named = clusters(entries)
    mood: dict[str, bool] = {}
    rows = []
    for entry in entries:
        chance = ACCURACY.get(entry.subset, ACCURACY["live"] if entry.subset.startswith("live") else 0.92)
        shared = mood.setdefault(named[entry.id], random_numbers.random() < chance)
        hit = shared if random_numbers.random() < 0.75 else random_numbers.random() < chance
        rows.append(Row(entry.id, entry.subset, (HIT if hit else MISS,)))
    return rows


def bootstrap_error(
    rows: Sequence[Row], named: Mapping[str, str], node: Node, seed: int, *, linear: bool = False
) -> float:
    """Resample whole clusters within each subset, and give the standard deviation of the score in points.

    A resample of G clusters varies by (G - 1) / G too little; each subset's deviation is stretched by the root of that.
    With ``linear`` a subset's mean is divided by its rows and not by those of the resample, which differ where
    clusters are of unequal size: the part of the bootstrap that the formula claims.
    """
    generator = np.random.default_rng(seed)
    by_subset: dict[str, dict[str, list[int]]] = {}
    for row in rows:
        by_subset.setdefault(row.subset, {}).setdefault(named[row.id], []).append(int(row.outcomes[0] is HIT))
    sizes = {name: sum(map(len, groups.values())) for name, groups in by_subset.items()}
    score = np.zeros(RESAMPLES)
    for name, weight in subset_coefficients(node, sizes).items():
        totals = np.array([sum(group) for group in by_subset[name].values()])
        lengths = np.array([len(group) for group in by_subset[name].values()])
        count, mean = len(totals), totals.sum() / lengths.sum()
        for start in range(0, RESAMPLES, 2_000):  # full has a thousand rows in a subset: all at once takes much memory
            counts = generator.multinomial(count, np.full(count, 1 / count), 2_000)
            divisor = lengths.sum() if linear else counts @ lengths
            deviation = (counts @ (totals - mean * lengths)) / divisor
            score[start : start + 2_000] += float(weight) * np.sqrt(count / (count - 1)) * deviation
    return float(score.std()) * 100


@pytest.mark.parametrize("draw", ["golden", "echolp", "full"])
def test_standard_errors_agree_with_a_stratified_bootstrap_within_3_percent(draw: str, dataset: Dataset) -> None:
    entries = select(PRESETS[draw], dataset)
    rows, alone = played(entries, seed=5), {entry.id: entry.id for entry in entries}
    found = build_statistics(rows, clusters(entries), on_error=OnError.FAIL)
    for node, estimate in ((OVERALL, found.overall), (WEIGHTS, found.normalized)):
        assert estimate is not None
        assert estimate.standard_error == pytest.approx(bootstrap_error(rows, alone, node, seed=7), rel=0.03)


@pytest.mark.parametrize(("draw", "linear"), [("golden", True), ("echolp", True), ("full", False)])
def test_clustered_standard_errors_agree_with_a_bootstrap_of_clusters_within_3_percent(
    draw: str, linear: bool, dataset: Dataset
) -> None:
    entries = select(PRESETS[draw], dataset)
    rows, named = played(entries, seed=5), clusters(entries)
    found = build_statistics(rows, named, on_error=OnError.FAIL)
    for node, estimate in ((OVERALL, found.overall), (WEIGHTS, found.normalized)):
        assert estimate is not None
        expected = bootstrap_error(rows, named, node, seed=7, linear=linear)
        assert estimate.clustered_standard_error == pytest.approx(expected, rel=0.03)
        assert estimate.standard_error is not None
        assert estimate.clustered_standard_error is not None
        assert estimate.clustered_standard_error > estimate.standard_error * 1.1


@pytest.mark.parametrize("draw", ["golden", "echolp"])
def test_a_clustered_standard_error_falls_short_where_a_subset_is_said_to_have_few_clusters(
    draw: str, dataset: Dataset
) -> None:
    # A limit of the formula, which the documentation states: with 3 clusters of 2, 10 and 76 rows a resample may miss
    # the largest, and the true spread is far beyond what a linear formula sees.
    entries = select(PRESETS[draw], dataset)
    rows, named = played(entries, seed=5), clusters(entries)
    found = build_statistics(rows, named, on_error=OnError.FAIL)
    assert "live_irrelevance" in found.few_clusters
    for node, estimate in ((OVERALL, found.overall), (WEIGHTS, found.normalized)):
        assert estimate is not None
        assert estimate.clustered_standard_error is not None
        assert bootstrap_error(rows, named, node, seed=7) > estimate.clustered_standard_error * 1.2

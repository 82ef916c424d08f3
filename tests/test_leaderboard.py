from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.leaderboard import NOT_COMPUTABLE, OVERALL, leaderboard
from agentcompass_bfcl.report.leaderboard import render_leaderboard
from agentcompass_bfcl.subsets import SUBSETS, reference_subset_totals
from agentcompass_bfcl.tally import Tally
from recordings import RUNS, leaderboard_row, needs_recordings, official_scores

GOLDEN = Path(__file__).parent / "golden"

FULL = {name: Tally(rows // 2 + place, rows) for place, (name, rows) in enumerate(reference_subset_totals().items())}
DRAWN = {"simple_python": Tally(3, 4, 2), "multiple": Tally(1, 2), "live_relevance": Tally(16, 16)}


@pytest.mark.parametrize(("tallies", "file"), [(FULL, "leaderboard_full.txt"), (DRAWN, "leaderboard_part.txt")])
def test_the_columns_are_the_recorded_text_to_the_byte(tallies: dict[str, Tally], file: str) -> None:
    assert render_leaderboard(tallies) == (GOLDEN / file).read_text(encoding="utf-8")


@needs_recordings
@pytest.mark.parametrize("run", RUNS)
def test_the_columns_of_a_recorded_run_are_the_published_ones_to_two_decimals(run: str) -> None:
    recorded = official_scores(run)["subsets"]
    board = leaderboard({name: Tally(one["correct_count"], one["total_count"]) for name, one in recorded.items()})
    assert dict(board.non_live) == leaderboard_row(run, "data_non_live.json")
    assert dict(board.live) == leaderboard_row(run, "data_live.json")
    published = leaderboard_row(run, "data_overall.json")
    assert {name: value for name, value in board.overall.items() if name != OVERALL} == {
        name: published[name] for name in board.overall if name != OVERALL
    }
    assert board.incomplete == ()


def test_the_leaderboards_overall_score_is_never_a_number() -> None:
    for tallies in (FULL, DRAWN, {}):
        assert leaderboard(tallies).overall[OVERALL] == NOT_COMPUTABLE
        assert leaderboard(tallies).to_json()["overall"] == dict(leaderboard(tallies).overall)


PARTS = {
    "Non-Live AST Acc": [subset.name for subset in SUBSETS if subset.category == "non_live"],
    "Non-Live Simple AST": ["simple_python", "simple_java", "simple_javascript"],
    "Live Acc": [subset.name for subset in SUBSETS if subset.category == "live"],
    "Irrelevance Detection": ["irrelevance", "live_irrelevance"],
    "Relevance Detection": ["live_relevance"],
    "Live Parallel AST": ["live_parallel"],
}


@pytest.mark.parametrize(("column", "parts"), PARTS.items())
def test_a_column_that_lacks_a_part_has_no_value_where_upstream_counts_zero(column: str, parts: list[str]) -> None:
    for part in parts:
        without = {name: tally for name, tally in FULL.items() if name != part}
        assert leaderboard(without).overall[column] is None
        assert leaderboard({**without, part: Tally()}).overall[column] is None
        assert leaderboard(without).incomplete == (part,)
    assert leaderboard({part: FULL[part] for part in parts}).overall[column] == leaderboard(FULL).overall[column]


def test_the_live_column_weighs_rows_alike_and_the_non_live_one_its_four_kinds() -> None:
    zero = {name: Tally(0, rows) for name, rows in reference_subset_totals().items()}
    right = {name: Tally(rows, rows) for name, rows in reference_subset_totals().items()}

    def only(name: str) -> dict[str, Tally]:
        return {**zero, name: right[name]}

    assert leaderboard(only("live_multiple")).overall["Live Acc"] == 77.94  # 1053 of 1351
    assert leaderboard(only("multiple")).overall["Non-Live AST Acc"] == 25
    assert leaderboard(only("simple_java")).overall["Non-Live AST Acc"] == 8.33
    assert leaderboard(only("irrelevance")).overall["Irrelevance Detection"] == 50
    assert leaderboard(only("live_relevance")).overall["Irrelevance Detection"] == 0


def test_errors_count_as_wrong_or_not_at_all_and_where_nothing_was_scored_there_is_no_zero() -> None:
    tallies = {"multiple": Tally(1, 2, 2), "parallel": Tally(errors=4)}
    assert leaderboard(tallies).overall["Non-Live Multiple AST"] == 25
    assert leaderboard(tallies).overall["Non-Live Parallel AST"] == 0
    assert leaderboard(tallies, OnError.EXCLUDE).overall["Non-Live Multiple AST"] == 50
    assert leaderboard(tallies, OnError.EXCLUDE).overall["Non-Live Parallel AST"] is None
    nothing = leaderboard({"multiple": Tally(errors=3)})
    assert {value for name, value in nothing.overall.items() if name != OVERALL} == {None}


@st.composite
def tallies_of_subsets(draw: st.DrawFn) -> dict[str, Tally]:
    names = draw(st.lists(st.sampled_from([subset.name for subset in SUBSETS]), unique=True))
    tallies = {}
    for name in names:
        n = draw(st.integers(0, 50))
        tallies[name] = Tally(draw(st.integers(0, n)), n, draw(st.integers(0, 5)))
    return tallies


@given(tallies=tallies_of_subsets(), on_error=st.sampled_from(list(OnError)))
def test_every_column_lies_between_its_parts_and_agrees_with_the_scores(
    tallies: dict[str, Tally], on_error: OnError
) -> None:
    board, scores = leaderboard(tallies, on_error), aggregate(tallies, on_error)
    for column, parts in PARTS.items():
        value = board.overall[column]
        present = [scores.exact.subsets[name] for name in parts if name in scores.exact.subsets]
        if isinstance(value, float):
            assert len(present) == len(parts)
            assert float(min(present)) * 100 - 0.01 <= value <= float(max(present)) * 100 + 0.01
    categories = {"non_live": "Non-Live AST Acc", "live": "Live Acc", "hallucination": "Irrelevance Detection"}
    for category, column in categories.items():
        if board.overall[column] is not None:
            assert board.overall[column] == scores.category_scores[category]

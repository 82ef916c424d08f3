from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import ResultError, TallyError
from agentcompass_bfcl.rows import Row, attempts_of, decode_rows, encode_rows, tally_rows
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS
from agentcompass_bfcl.tally import Outcome, Tally, union
from test_result import document

HIT, MISS, ERROR = Outcome.HIT, Outcome.MISS, Outcome.ERROR

OUTCOMES = st.lists(st.sampled_from(Outcome), min_size=1, max_size=4).map(tuple)


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    places = draw(
        st.lists(st.tuples(st.sampled_from(SINGLE_TURN_SUBSETS), st.integers(0, 99)), unique=True, max_size=40)
    )
    return [Row(f"{subset}_{number}", subset, draw(OUTCOMES)) for subset, number in places]


def test_rows_are_written_by_subset_with_a_letter_an_attempt() -> None:
    rows = [
        Row("multiple_7", "multiple", (MISS, HIT)),
        Row("live_simple_106-63-0", "live_simple", (ERROR,)),
        Row("multiple_2", "multiple", (HIT,)),
    ]
    assert encode_rows(rows) == {"live_simple": "106-63-0:e", "multiple": "7:mh 2:h"}


@given(rows=some_rows())
def test_rows_read_back_in_the_order_they_were_written_in(rows: list[Row]) -> None:
    in_subsets = sorted(rows, key=lambda row: row.subset)
    assert list(decode_rows(encode_rows(rows))) == in_subsets
    assert encode_rows(decode_rows(encode_rows(rows))) == encode_rows(rows)


@settings(max_examples=20)  # 3,641 rows each
@given(attempts=st.lists(OUTCOMES, min_size=1, max_size=30))
def test_every_id_of_the_data_set_reads_back_with_whatever_attempts(
    dataset: Dataset, attempts: list[tuple[Outcome, ...]]
) -> None:
    entries = [entry for name in sorted(dataset.rows) for entry in dataset.rows[name]]
    rows = [Row(entry.id, entry.subset, attempts[place % len(attempts)]) for place, entry in enumerate(entries)]
    assert len(rows) == 3641
    assert list(decode_rows(encode_rows(rows))) == rows


@pytest.mark.parametrize(
    "row",
    [
        Row("parallel_7", "multiple", (HIT,)),  # would read back as multiple_parallel_7
        Row("multiple", "multiple", (HIT,)),
        Row("multiple_", "multiple", (HIT,)),
        Row("multiple_7", "multiple", ()),
        Row("multiple_7 8", "multiple", (HIT,)),
        Row("multiple_ 7", "multiple", (HIT,)),
        Row("multiple_7\u2028", "multiple", (HIT,)),
        Row("multiple_7:h", "multiple", (HIT,)),
    ],
)
def test_a_row_that_would_not_read_back_as_itself_is_not_written(row: Row) -> None:
    with pytest.raises(TallyError) as refusal:
        encode_rows([row])
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({"multiple": "7"}, "subset multiple: '7' is no row"),
        ({"multiple": "7:"}, "is no row"),
        ({"multiple": ":h"}, "is no row"),
        ({"multiple": "7:x"}, "is no row"),
        ({"multiple": "7:H"}, "is no row"),
        ({"multiple": "7:h:m"}, "is no row"),
        ({"multiple": "7:h,8:m"}, "is no row"),
        ({"multiple": "7:h 8"}, "'8' is no row"),
        ({"parallel": "multiple_7:h", "parallel_multiple": "7:m"}, "row parallel_multiple_7 stands twice"),
        ({"multiple": "7:h 7:m"}, "row multiple_7 stands twice"),
        ({"chatable": "1:h"}, "unknown subset 'chatable'"),
        ({"multiple": "\ud800" + "x" * 500}, "is no row"),
    ],
)
def test_what_is_no_row_is_refused_in_one_short_line(written: dict[str, str], fault: str) -> None:
    with pytest.raises(TallyError, match=fault) as refusal:
        decode_rows(written)
    assert len(str(refusal.value)) < 700
    str(refusal.value).encode("utf-8")


def test_a_result_without_rows_says_so() -> None:
    with pytest.raises(ResultError, match=r"what came of each row \(details.rows\)"):
        document({"multiple": Tally(1, 2)}).rows()


@pytest.mark.parametrize(
    ("outcomes", "pooled", "any_of"),
    [
        ([HIT, HIT, HIT], Tally(3, 3), Tally(1, 1)),
        ([MISS, HIT, ERROR], Tally(1, 2, 1), Tally(1, 1)),
        ([MISS, MISS, ERROR], Tally(0, 2, 1), Tally(0, 1)),
        ([ERROR, ERROR, ERROR], Tally(errors=3), Tally(errors=1)),
        ([MISS, HIT], Tally(1, 2), Tally(1, 1)),
    ],
)
def test_attempts_are_pooled_or_a_row_counts_once(outcomes: list[Outcome], pooled: Tally, any_of: Tally) -> None:
    row = Row("multiple_0", "multiple", tuple(outcomes))
    assert tally_rows([row]) == {"multiple": pooled}
    assert tally_rows([row], any_of=True) == {"multiple": any_of}


@given(rows=some_rows())
def test_a_tally_is_what_counting_by_hand_gives(rows: list[Row]) -> None:
    pooled, once = tally_rows(rows), tally_rows(rows, any_of=True)
    assert set(pooled) == set(once) == {row.subset for row in rows}
    for subset in pooled:
        of_subset = [row.outcomes for row in rows if row.subset == subset]
        every = [outcome for outcomes in of_subset for outcome in outcomes]
        hits, misses, errors = (every.count(outcome) for outcome in (HIT, MISS, ERROR))
        assert pooled[subset] == Tally(hits, hits + misses, errors)
        hit_rows = sum(HIT in outcomes for outcomes in of_subset)
        error_rows = sum(set(outcomes) == {ERROR} for outcomes in of_subset)
        assert once[subset] == Tally(hit_rows, len(of_subset) - error_rows, error_rows)


@given(rows=some_rows(), cut=st.integers(0, 40))
def test_tallies_of_parts_add_up_to_the_tally_of_the_whole(rows: list[Row], cut: int) -> None:
    for any_of in (False, True):
        parts = union(tally_rows(rows[:cut], any_of=any_of), tally_rows(rows[cut:], any_of=any_of))
        assert parts == tally_rows(rows, any_of=any_of)
    assert sum(tally.drawn for tally in tally_rows(rows, any_of=True).values()) == len(rows)


def test_the_most_attempts_of_any_row_are_counted() -> None:
    assert attempts_of([]) == 0
    assert attempts_of([Row("a", "multiple", (HIT,)), Row("b", "multiple", (MISS, MISS, HIT))]) == 3

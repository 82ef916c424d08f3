from __future__ import annotations

import pytest
from hypothesis import given
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


def test_every_id_of_the_data_set_reads_back(dataset: Dataset) -> None:
    rows = [Row(entry.id, name, (HIT,)) for name in sorted(dataset.rows) for entry in dataset.rows[name]]
    assert len(rows) == 3641
    assert list(decode_rows(encode_rows(rows))) == rows


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({"multiple": "7"}, "subset multiple: '7' is no row"),
        ({"multiple": "7:"}, "is no row"),
        ({"multiple": ":h"}, "is no row"),
        ({"multiple": "7:x"}, "is no row"),
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


@given(rows=some_rows(), cut=st.integers(0, 40))
def test_tallies_of_parts_add_up_to_the_tally_of_the_whole(rows: list[Row], cut: int) -> None:
    for any_of in (False, True):
        parts = union(tally_rows(rows[:cut], any_of=any_of), tally_rows(rows[cut:], any_of=any_of))
        assert parts == tally_rows(rows, any_of=any_of)
    assert sum(tally.drawn for tally in tally_rows(rows, any_of=True).values()) == len(rows)


def test_the_most_attempts_of_any_row_are_counted() -> None:
    assert attempts_of([]) == 0
    assert attempts_of([Row("a", "multiple", (HIT,)), Row("b", "multiple", (MISS, MISS, HIT))]) == 3

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.draw import PRESETS, DrawSpec, plan, select
from agentcompass_bfcl.errors import ShardError
from agentcompass_bfcl.shard import Shard, shard_owns, shard_plan, shard_take
from agentcompass_bfcl.subsets import reference_subset_totals

TAKES = st.integers(0, 2000)
COUNTS = st.integers(1, 60)


@given(take=TAKES, count=COUNTS)
def test_the_shares_of_all_shards_add_up_to_the_whole_and_differ_by_at_most_one(take: int, count: int) -> None:
    shares = [shard_take(take, index, count) for index in range(count)]
    assert sum(shares) == take
    assert max(shares) - min(shares) <= 1


@given(row=st.integers(0, 5000), count=COUNTS)
def test_every_row_belongs_to_exactly_one_shard(row: int, count: int) -> None:
    assert [shard_owns(row, index, count) for index in range(count)].count(True) == 1


@given(take=st.integers(0, 300), count=COUNTS, data=st.data())
def test_a_share_is_the_number_of_rows_owned(take: int, count: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, count - 1))
    assert shard_take(take, index, count) == sum(shard_owns(row, index, count) for row in range(take))


@given(count=st.integers(1, 12), preset=st.sampled_from(["golden", "mini"]), limit=st.none() | st.integers(1, 400))
def test_the_shards_of_a_draw_hold_each_of_its_rows_once(
    count: int, preset: str, limit: int | None, dataset: Dataset
) -> None:
    base = PRESETS[preset]
    spec = DrawSpec(base.categories, base.category_pct, base.subset_floor, limit=limit)
    drawn = select(spec, dataset)
    parts = [Shard(index, count).take(drawn) for index in range(count)]
    assert sorted(entry.id for part in parts for entry in part) == sorted(entry.id for entry in drawn)
    for index, part in enumerate(parts):
        planned = Shard(index, count).plan(plan(spec, dataset.totals()))
        assert planned == [
            (name, sum(entry.subset == name for entry in part)) for name in sorted({entry.subset for entry in part})
        ]


def test_a_shard_keeps_the_order_of_the_draw_and_takes_every_nth_row_of_each_subset(dataset: Dataset) -> None:
    drawn = select(DrawSpec(subsets=("live_parallel", "multiple"), limit=10), dataset)
    assert [entry.row for entry in Shard(1, 3).take(drawn)] == [1, 4, 1, 4]


@pytest.mark.parametrize(
    ("index", "count"), [(-1, 4), (4, 4), (5, 4), (0, 0), (0, -1), (1, 1), (-1, -1)], ids=lambda value: str(value)
)
def test_a_shard_that_does_not_exist_takes_nothing_and_is_refused_at_the_door(index: int, count: int) -> None:
    assert shard_take(100, index, count) == 0
    assert not any(shard_owns(row, index, count) for row in range(100))
    assert shard_plan([("multiple", 100)], index, count) == []
    with pytest.raises(ShardError, match=f"shard {index}/{count}"):
        Shard(index, count)


def test_nothing_is_owned_before_the_first_row() -> None:
    assert not any(shard_owns(-4, index, 4) for index in range(4))


@pytest.mark.parametrize("text", ["4/4", "9/4"])
def test_an_index_beyond_the_last_is_refused_by_saying_that_indices_are_0_based(text: str) -> None:
    with pytest.raises(ShardError, match=rf"shard {text}: indices are 0-based, so 0 to 3 of 4 exist"):
        Shard.parse(text)


@pytest.mark.parametrize("text", ["", "3", "/", "1/", "/4", "-1/4", "1/-4", "1.0/4", "a/b", "1/4/2", "1 of 4", "²/4"])
def test_text_that_is_no_shard_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ShardError, match=r"write index/count with a 0-based index, such as 0/4") as refusal:
        Shard.parse(text)
    assert repr(text) in str(refusal.value)


def test_numbers_of_up_to_nine_digits_are_read() -> None:
    assert Shard.parse("12345678/999999999") == Shard(12345678, 999999999)
    with pytest.raises(ShardError, match="write index/count"):
        Shard.parse("0/1000000000")


def test_a_count_of_zero_is_refused() -> None:
    with pytest.raises(ShardError, match="the count must be 1 or more"):
        Shard.parse("0/0")


@given(count=COUNTS, data=st.data())
def test_a_shard_reads_back_from_its_own_text(count: int, data: st.DataObject) -> None:
    shard = Shard(data.draw(st.integers(0, count - 1)), count)
    assert Shard.parse(str(shard)) == shard
    assert Shard.parse(f" {shard}\n") == shard
    assert shard.is_whole == (count == 1)


def test_the_whole_is_the_default_and_owns_everything(dataset: Dataset) -> None:
    drawn = select(PRESETS["mini"], dataset)
    assert Shard() == Shard.parse("0/1")
    assert Shard().take(drawn) == drawn
    whole = plan(PRESETS["golden"], reference_subset_totals())
    assert Shard().plan(whole) == whole


def test_a_shard_leaves_out_the_subsets_it_has_no_row_of() -> None:
    assert Shard(2, 4).plan([("live_parallel", 2), ("multiple", 7)]) == [("multiple", 2)]

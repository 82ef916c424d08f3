from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.draw import (
    MINI_SAMPLES,
    PRESET_SAMPLES,
    PRESETS,
    DrawSpec,
    fingerprint,
    plan,
    select,
    total,
)
from agentcompass_bfcl.errors import ConfigError, DrawError
from agentcompass_bfcl.subsets import CATEGORIES, SINGLE_TURN_SUBSETS, category_of, reference_subset_totals

REFERENCE = reference_subset_totals()
GOLDEN_PLAN = {
    "irrelevance": 24,
    "live_irrelevance": 88,
    "live_multiple": 105,
    "live_parallel": 16,
    "live_parallel_multiple": 24,
    "live_simple": 25,
    "multiple": 124,
    "parallel": 124,
    "parallel_multiple": 124,
    "simple_java": 62,
    "simple_javascript": 31,
    "simple_python": 248,
}
GOLDEN_FINGERPRINT = (
    "draw-sha256:31225ad1c4ee7087aee9cbf5245e53710d1f2bf20074f3310a985d868dd96d28;n=995;"
    "category_sample_pct=hallucination:10,live:10,non_live:62;subset_floor=25"
)


@pytest.mark.parametrize(("preset", "rows"), [("golden", 995), ("echolp", 1004), ("mini", 192), ("full", 3625)])
def test_presets_draw_the_number_of_rows_others_publish_scores_on(preset: str, rows: int, dataset: Dataset) -> None:
    assert total(plan(PRESETS[preset], REFERENCE)) == rows == PRESET_SAMPLES[preset]
    assert len(select(PRESETS[preset], dataset)) == rows


def test_the_mini_size_has_a_name_of_its_own() -> None:
    assert MINI_SAMPLES == 192


def test_golden_takes_the_published_number_of_rows_of_each_subset() -> None:
    assert dict(plan(PRESETS["golden"], REFERENCE)) == GOLDEN_PLAN


def test_no_selection_draws_every_row_live_relevance_included() -> None:
    everything = dict(plan(DrawSpec(), REFERENCE))
    assert everything == REFERENCE
    assert sum(everything.values()) == 3641


def test_a_selection_by_category_leaves_live_relevance_out() -> None:
    assert "live_relevance" not in dict(plan(DrawSpec(CATEGORIES), REFERENCE))


def test_a_draw_is_the_first_rows_of_each_subset_in_sorted_order(dataset: Dataset) -> None:
    drawn = select(PRESETS["golden"], dataset)
    assert [entry.id for entry in drawn] == [
        entry.id for name in sorted(GOLDEN_PLAN) for entry in dataset.rows[name][: GOLDEN_PLAN[name]]
    ]


@pytest.mark.parametrize(
    ("spec", "subset", "rows", "take"),
    [
        (DrawSpec(category_pct={"live": 10}), "live_simple", 258, 25),
        (DrawSpec(category_pct={"live": 29}), "live_simple", 100, 29),  # 29 / 100 * 100 would be cut to 28
        (DrawSpec(category_pct={"live": 0.001}), "live_simple", 258, 1),
        (DrawSpec(category_pct={"live": 100}), "live_simple", 258, 258),
        (DrawSpec(category_pct={"live": 10}), "multiple", 200, 200),
        (DrawSpec(category_pct={"live": 10}), "live_relevance", 16, 16),
        (DrawSpec(category_pct={"live": 10}, subset_floor=24), "live_parallel_multiple", 24, 24),
        (DrawSpec(category_pct={"live": 10}, subset_floor=23), "live_parallel_multiple", 24, 2),
        (DrawSpec(category_pct={"live": 10}, subset_floor=0), "live_parallel", 16, 1),
        (DrawSpec(category_pct={"live": 10}), "live_simple", 0, 0),
        (DrawSpec(("live",)), "multiple", 200, 0),
        (DrawSpec(subsets=("multiple",)), "parallel", 200, 0),
    ],
)
def test_the_number_of_rows_taken_of_a_subset(spec: DrawSpec, subset: str, rows: int, take: int) -> None:
    assert spec.take(subset, rows) == take


@st.composite
def specs(draw: st.DrawFn) -> DrawSpec:
    """Make any valid spec."""
    categories = draw(st.lists(st.sampled_from(CATEGORIES), unique=True))
    selectable = [name for name in SINGLE_TURN_SUBSETS if not categories or category_of(name) in categories]
    percentages = st.floats(0, 100, exclude_min=True)
    return DrawSpec(
        tuple(categories),
        draw(st.dictionaries(st.sampled_from(CATEGORIES), percentages)),
        draw(st.none() | st.integers(0, 1200)),
        tuple(draw(st.lists(st.sampled_from(selectable), unique=True))),
        draw(st.none() | st.integers(1, 4000)),
    )


TOTALS = st.dictionaries(st.sampled_from(SINGLE_TURN_SUBSETS), st.integers(0, 1200))


@given(spec=specs(), totals=TOTALS)
def test_a_plan_is_sorted_positive_and_within_what_there_is(spec: DrawSpec, totals: dict[str, int]) -> None:
    planned = plan(spec, totals)
    names = [name for name, _ in planned]
    assert names == sorted(set(names))
    assert all(0 < take <= totals[name] and spec.includes(name) for name, take in planned)


@given(spec=specs(), totals=TOTALS)
def test_without_a_limit_every_selected_subset_gives_at_least_one_row(spec: DrawSpec, totals: dict[str, int]) -> None:
    takes = dict(plan(replace(spec, limit=None), totals))
    assert set(takes) == {name for name, rows in totals.items() if rows > 0 and spec.includes(name)}


@given(spec=specs(), totals=TOTALS, limit=st.integers(1, 300))
def test_a_limit_caps_the_rows_and_spreads_them_evenly(spec: DrawSpec, totals: dict[str, int], limit: int) -> None:
    unlimited = dict(plan(replace(spec, limit=None), totals))
    limited = dict(plan(replace(spec, limit=limit), totals))
    takes = {name: limited.get(name, 0) for name in unlimited}
    assert sum(limited.values()) == min(limit, sum(unlimited.values()))
    most = max(takes.values(), default=0)
    for name, take in takes.items():
        exhausted = take == unlimited[name]
        assert exhausted or most - take <= 1, (name, takes)


def test_a_limit_of_less_than_the_number_of_subsets_takes_the_first_ones() -> None:
    assert plan(DrawSpec(limit=2), REFERENCE) == [("irrelevance", 1), ("live_irrelevance", 1)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"categories": ("chat",)}, r"categories: unknown category 'chat'; known: non_live, live, hallucination"),
        ({"category_pct": {"chat": 5}}, r"category_pct: unknown category 'chat'; known: non_live, live, hallucinati"),
        ({"category_pct": {"live": 0}}, r"category_pct\.live is 0; a percentage above 0 and up to 100 is allowed"),
        ({"category_pct": {"live": -3}}, r"category_pct\.live is -3; a percentage above 0 and up to 100 is allowed"),
        ({"category_pct": {"live": 100.5}}, r"category_pct\.live is 100\.5; a percentage above 0 and up to 100"),
        ({"category_pct": {"live": float("nan")}}, r"category_pct\.live is nan; a percentage above 0 and up to 100"),
        ({"category_pct": {"live": float("inf")}}, r"category_pct\.live is inf; a percentage above 0 and up to 100"),
        ({"subsets": ("simple",)}, r"unknown subset 'simple'; known: .*simple_python"),
        ({"categories": ("live",), "subsets": ("multiple",)}, r"subset 'multiple' is in none of .* categories live"),
        (
            {"categories": ("live", "non_live"), "subsets": ("irrelevance",)},
            r"^subset 'irrelevance' is in none of the chosen categories non_live, live$",
        ),
        ({"categories": ("live",), "subsets": ("live_relevance",)}, r"subset 'live_relevance' is in none of .* live"),
        ({"subset_floor": -1}, r"subset_floor is -1; 0 or more is allowed"),
        ({"limit": 0}, r"limit is 0; 1 or more is allowed"),
    ],
)
def test_a_spec_out_of_range_is_refused_with_field_value_and_what_is_allowed(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(DrawError, match=message) as refusal:
        DrawSpec(**fields)
    assert isinstance(refusal.value, ConfigError)
    assert isinstance(refusal.value, ValueError)


def test_a_hundred_percent_of_a_category_is_all_of_it() -> None:
    assert plan(DrawSpec(category_pct={"live": 100}), REFERENCE) == plan(DrawSpec(), REFERENCE)


def test_a_draw_of_nothing_is_an_error_and_not_an_empty_run() -> None:
    empty = Dataset(MappingProxyType({"irrelevance": ()}), MappingProxyType({}))
    with pytest.raises(DrawError, match=r"^the draw selects no row; widen its categories or subsets$"):
        select(PRESETS["golden"], empty)


def test_golden_has_the_fingerprint_others_record(dataset: Dataset) -> None:
    spec = PRESETS["golden"]
    assert fingerprint(spec, [entry.id for entry in select(spec, dataset)]) == GOLDEN_FINGERPRINT


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        (PRESETS["mini"], "category_sample_pct=hallucination:2,live:2,non_live:12.5;subset_floor=5"),
        (PRESETS["full"], "category_sample_pct=;subset_floor=none"),
        (DrawSpec(subset_floor=0), "category_sample_pct=;subset_floor=0"),
        (
            DrawSpec(subsets=("parallel", "multiple"), limit=3),
            "category_sample_pct=;subset_floor=none;subsets=multiple,parallel;limit=3",
        ),
    ],
)
def test_a_fingerprint_names_the_rule(spec: DrawSpec, rule: str) -> None:
    digest = hashlib.sha256(b"multiple_0\nmultiple_1\n").hexdigest()
    assert fingerprint(spec, ["multiple_0", "multiple_1"]) == f"draw-sha256:{digest};n=2;{rule}"


@given(ids=st.lists(st.text("ab\n", max_size=3), min_size=1, max_size=6), data=st.data())
def test_a_fingerprint_depends_on_every_id_and_on_their_order(ids: list[str], data: st.DataObject) -> None:
    other = data.draw(st.permutations(ids) | st.lists(st.text("ab", min_size=1, max_size=3), max_size=6))
    if [*other] != ids and not any("\n" in item for item in (*ids, *other)):
        assert fingerprint(DrawSpec(), other) != fingerprint(DrawSpec(), ids)
    assert fingerprint(DrawSpec(), iter(ids)) == fingerprint(DrawSpec(), ids)


def test_order_and_repetition_of_names_and_the_kind_of_number_mean_nothing() -> None:
    reordered = DrawSpec(
        ("hallucination", "live", "non_live", "live"), {"non_live": 62.0, "hallucination": 10, "live": 10.0}, 25
    )
    assert reordered == PRESETS["golden"]
    assert DrawSpec(subsets=("parallel", "multiple")) == DrawSpec(subsets=("multiple", "parallel", "multiple"))


def test_presets_cannot_be_altered() -> None:
    presets: Any = PRESETS
    spec: Any = PRESETS["golden"]
    with pytest.raises(TypeError, match="does not support item assignment"):
        presets["golden"] = DrawSpec()
    with pytest.raises(TypeError, match="does not support item assignment"):
        spec.category_pct["live"] = 100
    with pytest.raises(AttributeError):
        spec.subset_floor = 0
    assert dict(plan(PRESETS["golden"], REFERENCE)) == GOLDEN_PLAN


def test_a_spec_does_not_follow_the_mapping_it_was_made_from() -> None:
    percentages: dict[str, float] = {"live": 10}
    spec = DrawSpec(category_pct=percentages)
    percentages["live"] = 50
    assert spec.category_pct["live"] == 10


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda spec: pickle.loads(pickle.dumps(spec))])
def test_a_spec_survives_copying_and_pickling_and_stays_frozen(copied: Any) -> None:
    spec = DrawSpec(("live",), {"live": 12.5}, 3, ("live_simple",), 7)
    assert copied(spec) == spec
    assert isinstance(copied(spec).category_pct, Mapping)
    assert not isinstance(copied(spec).category_pct, dict)

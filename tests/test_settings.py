from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.draw import PRESETS, DrawSpec
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.settings import FIELDS, RunSettings, ToolChoice, parse_settings
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.subsets import CATEGORIES, SINGLE_TURN_SUBSETS, category_of
from agentcompass_bfcl.task import Mode


def test_nothing_set_is_the_whole_golden_draw_in_function_calling_mode() -> None:
    settings = parse_settings({})
    assert settings == RunSettings()
    assert settings.spec == PRESETS["golden"]
    assert (settings.shard, settings.mode, settings.on_error) == (Shard(0, 1), Mode.FC, OnError.FAIL)
    assert settings.tool_choice is None
    assert settings.wheel is None
    assert settings.draw_name == "golden"


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("empty", [None, "", [], (), {}], ids=repr)
def test_whatever_is_empty_means_not_set(name: str, empty: Any) -> None:
    # AgentCompass drops empty values from what it persists; a later summary must find the same settings.
    assert parse_settings({name: empty}) == parse_settings({})


def test_a_floor_of_zero_is_not_empty() -> None:
    assert parse_settings({"subset_floor": 0}).spec.subset_floor == 0


@pytest.mark.parametrize(
    ("typed", "texts"),
    [
        ({"categories": ["live", "non_live"]}, {"categories": "live,non_live"}),
        ({"categories": ("live", "non_live")}, {"categories": " non_live , live ,"}),
        ({"subsets": ["multiple", "parallel"]}, {"subsets": "multiple,parallel"}),
        ({"category_pct": {"non_live": 12.5, "live": 2}}, {"category_pct": {"live": "2", "non_live": " 12.5"}}),
        ({"subset_floor": 0}, {"subset_floor": "0"}),
        ({"subset_floor": 25}, {"subset_floor": 25.0}),
        ({"limit": 10}, {"limit": "10"}),
        ({"shard": Shard(1, 4)}, {"shard": "1/4"}),
        ({"mode": Mode.FC}, {"mode": "fc"}),
        ({"mode": Mode.PROMPT, "strip_think": True}, {"mode": "prompt", "strip_think": " Yes"}),
        ({"strip_think": False}, {"strip_think": "0"}),
        ({"on_error": OnError.EXCLUDE}, {"on_error": "exclude"}),
        ({"tool_choice": ToolChoice.AUTO}, {"tool_choice": "auto"}),
        ({"wheel": Path("folder/w.whl")}, {"wheel": "folder/w.whl"}),
        ({"draw": "mini", "limit": 5}, {"draw": "mini", "limit": "5"}),
    ],
)
def test_typed_values_and_the_texts_of_a_command_line_give_the_same_settings(
    typed: dict[str, Any], texts: dict[str, Any]
) -> None:
    assert parse_settings(typed) == parse_settings(texts)


@st.composite
def parameters(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make valid parameters twice: typed as YAML gives them, and as texts."""
    categories = draw(st.lists(st.sampled_from(CATEGORIES), unique=True, min_size=1))
    subsets = [name for name in SINGLE_TURN_SUBSETS if category_of(name) in categories]
    typed: dict[str, Any] = {
        "draw": draw(st.sampled_from([*PRESETS, "all"])),
        "categories": categories,
        "category_pct": draw(st.dictionaries(st.sampled_from(CATEGORIES), st.integers(1, 100), min_size=1)),
        "subset_floor": draw(st.integers(0, 1000)),
        "subsets": draw(st.lists(st.sampled_from(subsets), unique=True, min_size=1)),
        "limit": draw(st.integers(1, 5000)),
        "shard": draw(st.sampled_from(["0/1", "3/4"])),
    }
    texts = {
        name: ",".join(value) if isinstance(value, list) else value if isinstance(value, dict) else str(value)
        for name, value in typed.items()
    }
    texts["category_pct"] = {name: str(value) for name, value in typed["category_pct"].items()}
    chosen = draw(st.sets(st.sampled_from(sorted(typed))))
    chosen |= {"categories"} if "subsets" in chosen else set()
    return {name: typed[name] for name in chosen}, {name: texts[name] for name in chosen}


@given(both=parameters())
def test_any_parameters_mean_the_same_typed_and_as_texts(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    typed, texts = both
    assert parse_settings(typed) == parse_settings(texts)


def test_parts_of_a_draw_can_be_changed_and_the_others_stay() -> None:
    assert parse_settings({"subset_floor": 5}).spec == DrawSpec(CATEGORIES, PRESETS["golden"].category_pct, 5)
    assert parse_settings({"draw": "all", "limit": 3}).spec == DrawSpec(limit=3)
    assert parse_settings({"draw": "full", "subsets": "multiple"}).spec == DrawSpec(CATEGORIES, subsets=("multiple",))


@pytest.mark.parametrize(
    ("params", "field", "value", "allowed"),
    [
        ({"draw": "gold"}, "draw", "'gold'", "golden, echolp, mini, full, all"),
        ({"draw": ["golden"]}, "draw", "['golden']", "golden, echolp, mini, full, all"),
        ({"draw": 3}, "draw", "3", "golden, echolp, mini, full, all"),
        ({"categories": "chat"}, "categories", "'chat'", "non_live, live, hallucination"),
        ({"categories": 5}, "categories", "5", "a list of names, or names with commas between"),
        ({"categories": ["live", 5]}, "categories", "['live', 5]", "a list of names"),
        ({"categories": " , "}, "categories", "' , '", "a list of names"),
        ({"categories": {"live": 1}}, "categories", "{'live': 1}", "a list of names"),
        ({"category_pct": "live=10"}, "category_pct", "'live=10'", "a mapping such as {'non_live': 62}"),
        ({"category_pct": {"chat": 1}}, "category_pct", "'chat'", "non_live, live, hallucination"),
        ({"category_pct": {"live": 0}}, "category_pct.live", "0", "above 0 and up to 100"),
        ({"category_pct": {"live": "101"}}, "category_pct.live", "101", "above 0 and up to 100"),
        ({"category_pct": {"live": "nan"}}, "category_pct.live", "nan", "above 0 and up to 100"),
        ({"category_pct": {"live": "ten"}}, "category_pct.live", "'ten'", "above 0 and up to 100"),
        ({"category_pct": {"live": None}}, "category_pct.live", "None", "above 0 and up to 100"),
        ({"category_pct": {"live": True}}, "category_pct.live", "True", "above 0 and up to 100"),
        ({"subset_floor": -1}, "subset_floor", "-1", "at least 0"),
        ({"subset_floor": "many"}, "subset_floor", "'many'", "a whole number of at least 0"),
        ({"subset_floor": 2.5}, "subset_floor", "2.5", "a whole number of at least 0"),
        ({"subset_floor": float("nan")}, "subset_floor", "nan", "a whole number of at least 0"),
        ({"subset_floor": True}, "subset_floor", "True", "a whole number of at least 0"),
        ({"limit": 0}, "limit", "0", "a whole number of at least 1"),
        ({"limit": "1.5"}, "limit", "'1.5'", "a whole number of at least 1"),
        ({"limit": float("inf")}, "limit", "inf", "a whole number of at least 1"),
        ({"limit": [5]}, "limit", "[5]", "a whole number of at least 1"),
        ({"subsets": "simple"}, "subset", "'simple'", "simple_python"),
        ({"subsets": "live_relevance"}, "subset", "'live_relevance'", "non_live, live, hallucination"),
        ({"shard": "4/4"}, "shard", "4/4", "0 to 3"),
        ({"shard": "1"}, "shard", "'1'", "index/count with a 0-based index"),
        ({"shard": "0/0"}, "shard", "0/0", "1 or more"),
        ({"shard": 1}, "shard", "1", "text is expected"),
        ({"mode": "text"}, "mode", "'text'", "fc, prompt"),
        ({"mode": ["fc"]}, "mode", "['fc']", "fc, prompt"),
        ({"mode": "prompt", "strip_think": "maybe"}, "strip_think", "'maybe'", "true, false"),
        ({"mode": "prompt", "strip_think": 1}, "strip_think", "1", "true, false"),
        ({"strip_think": True}, "strip_think", "True", "with mode prompt only, and mode is fc"),
        ({"mode": "prompt", "tool_choice": "auto"}, "tool_choice", "'auto'", "with mode fc only, and mode is prompt"),
        ({"on_error": "ignore"}, "on_error", "'ignore'", "fail, exclude"),
        ({"on_error": False}, "on_error", "False", "fail, exclude"),
        ({"tool_choice": "any"}, "tool_choice", "'any'", "auto, required, none"),
        ({"wheel": 5}, "wheel", "5", "text is expected"),
        ({"darw": "golden"}, "setting", "'darw'", "category_pct, draw, limit"),
    ],
)
def test_a_wrong_setting_is_refused_with_field_value_and_what_is_allowed(
    params: dict[str, Any], field: str, value: str, allowed: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_settings(params)
    message = str(refusal.value)
    assert field in message
    assert value in message
    assert allowed in message
    assert "\n" not in message


@pytest.mark.parametrize("name", [*PRESETS, "all"])
def test_a_draw_that_is_written_out_bears_the_name_of_the_preset_it_equals(name: str) -> None:
    spec = parse_settings({"draw": name}).spec
    written = {
        "draw": "all",
        "categories": list(spec.categories)[::-1],
        "category_pct": dict(spec.category_pct),
        "subset_floor": spec.subset_floor,
    }
    assert parse_settings({"draw": name}).draw_name == name
    assert parse_settings(written).draw_name == name


@pytest.mark.parametrize(
    "params", [{"limit": 10}, {"subset_floor": 24}, {"subsets": "multiple"}, {"category_pct": {"live": 11}}]
)
def test_any_other_draw_is_custom(params: dict[str, Any]) -> None:
    assert parse_settings(params).draw_name == "custom"


def test_every_setting_has_a_sentence_for_the_host_to_show() -> None:
    assert set(FIELDS) == {
        *("draw", "categories", "category_pct", "subset_floor", "subsets", "limit"),
        *("shard", "mode", "on_error", "tool_choice", "strip_think", "wheel"),
    }
    assert all(text.endswith(".") for text in FIELDS.values())

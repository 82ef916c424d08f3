from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.literals import literal
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.reference import UNPASSABLE, reference_calls
from agentcompass_bfcl.response import Call, Calls, Response, Silence
from agentcompass_bfcl.score import Hit, Miss, score_sample
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Language, Rule, subset_named

AST_SUBSETS = [name for name in SINGLE_TURN_SUBSETS if subset_named(name).rule is Rule.AST]


def as_response(calls: tuple[tuple[str, str], ...]) -> Response:
    return Calls(tuple(Call(name, arguments) for name, arguments in calls)) if calls else Silence()


def row(subset: str, parameter: dict[str, Any], accepted: list[Any], *, required: bool = True) -> Entry:
    """Make a row with one function, one parameter and one reference call."""
    function = {
        "name": "box.open",
        "parameters": {"properties": {"x": parameter}, "required": ["x"] if required else []},
    }
    return Entry(
        id=f"{subset}_0",
        subset=subset,
        row=0,
        question_json="[[]]",
        functions_json=json.dumps([function]),
        answer_json=json.dumps([{"box.open": {"x": accepted}}]),
    )


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_every_reference_answer_passes_the_official_rule_but_the_six_that_cannot(
    subset: str, dataset: Dataset, official: Official
) -> None:
    for entry in dataset.rows[subset]:
        verdict = score_sample(entry, as_response(reference_calls(entry)), official)
        assert isinstance(verdict, Miss if entry.id in UNPASSABLE else Hit), (entry.id, verdict)


def test_the_rows_said_to_be_unpassable_exist_and_have_calls_all_the_same(dataset: Dataset) -> None:
    assert len(UNPASSABLE) == 6
    assert all(reference_calls(dataset.entry(sample_id)) for sample_id in UNPASSABLE)


def test_irrelevance_rows_have_no_call_and_relevance_rows_have_one(dataset: Dataset) -> None:
    for subset, count in (("irrelevance", 0), ("live_irrelevance", 0), ("live_relevance", 1)):
        assert {len(reference_calls(entry)) for entry in dataset.rows[subset]} == {count}


def test_every_call_names_a_tool_the_official_generator_offers_in_that_row(
    dataset: Dataset, official: Official
) -> None:
    for entry in dataset.by_id.values():
        offered = {tool["function"]["name"] for tool in official.tools(entry.functions(), entry.id)}
        for name, _ in reference_calls(entry):
            assert name in offered, entry.id
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name), entry.id


@pytest.mark.parametrize("subset", AST_SUBSETS)
def test_arguments_are_json_objects_and_strings_only_in_java_and_javascript(subset: str, dataset: Dataset) -> None:
    for entry in dataset.rows[subset]:
        for _, arguments in reference_calls(entry):
            values = json.loads(arguments)
            assert isinstance(values, dict)
            if subset_named(subset).language is not Language.PYTHON:
                assert all(isinstance(value, str) for value in values.values()), entry.id


@pytest.mark.parametrize(
    ("type_name", "accepted", "required", "arguments"),
    [
        ("integer", ["", 5], False, {"x": 5}),
        ("integer", [5, 6, ""], True, {"x": 5}),
        ("integer", [0, ""], False, {"x": 0}),
        ("boolean", ["", False], False, {"x": False}),
        ("string", [""], False, {}),
        ("string", [""], True, {"x": ""}),
        ("string", ["", None], False, {}),
        ("string", [None], False, {"x": None}),
        ("dict", [{"a": ["", 1], "b": [""], "c": [2, 3]}], True, {"x": {"a": 1, "c": 2}}),
        ("dict", [{"a": "letters, not a list"}], True, {"x": {}}),
    ],
)
def test_the_first_real_value_is_chosen_and_an_argument_is_left_out_only_when_nothing_else_is_accepted(
    type_name: str, accepted: list[Any], required: bool, arguments: dict[str, Any], official: Official
) -> None:
    entry = row("simple_python", {"type": type_name}, accepted, required=required)
    calls = reference_calls(entry)
    assert [(name, json.loads(text)) for name, text in calls] == [("box_open", arguments)]
    assert score_sample(entry, as_response(calls), official) == Hit()


@pytest.mark.parametrize(
    ("value", "type_name", "item_type", "language", "written"),
    [
        (True, "boolean", None, Language.PYTHON, True),
        (True, "boolean", None, Language.JAVA, "true"),
        (False, "Boolean", None, Language.JAVASCRIPT, "false"),
        (5, "long", None, Language.JAVA, "5L"),
        (3.0, "float", None, Language.JAVA, "3.0f"),
        (0.5, "double", None, Language.JAVA, "0.5"),
        (5, "Bigint", None, Language.JAVASCRIPT, "5n"),
        (1e-07, "float", None, Language.JAVASCRIPT, "0.0000001"),
        ("myList", "ArrayList", "String", Language.JAVA, "myList"),
        (["a", "b"], "ArrayList", "String", Language.JAVA, 'new ArrayList<>(Arrays.asList("a", "b"))'),
        ([1, 2], "ArrayList", "long", Language.JAVA, "new ArrayList<>(Arrays.asList(1L, 2L))"),
        ([], "ArrayList", "String", Language.JAVA, "new ArrayList<>()"),
        (["a", "b"], "Array", "String", Language.JAVA, "new String[]{a, b}"),
        ([1, 2], "Array", "integer", Language.JAVA, "new int[]{1, 2}"),
        ({"k": "v"}, "HashMap", None, Language.JAVA, 'new HashMap<String, Object>() {{ put("k", "v"); }}'),
        ({}, "HashMap", None, Language.JAVA, "new HashMap<String, Object>()"),
        (["a", True, 1], "array", "any", Language.JAVASCRIPT, '["a", true, 1]'),
        ({"k": ["v"], "n": None}, "dict", None, Language.JAVASCRIPT, '{"k": ["v"], "n": null}'),
    ],
)
def test_values_are_written_in_the_language_of_the_function(
    value: Any, type_name: str, item_type: str | None, language: Language, written: Any
) -> None:
    assert literal(value, type_name, item_type, language) == written


# What the converters can read back: they split at commas and brackets and never unescape.
WORDS = st.text("wxyzWXYZ", min_size=1, max_size=8)
INTEGERS = st.integers(-(10**12), 10**12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
BY_TYPE: dict[tuple[str, str, str | None], st.SearchStrategy[Any]] = {
    ("simple_java", "integer", None): INTEGERS,
    ("simple_java", "long", None): INTEGERS,
    ("simple_java", "float", None): FLOATS,
    ("simple_java", "double", None): FLOATS,
    ("simple_java", "boolean", None): st.booleans(),
    ("simple_java", "String", None): st.text(),
    ("simple_java", "Array", "String"): st.lists(WORDS),
    ("simple_java", "Array", "long"): st.lists(INTEGERS),
    ("simple_java", "ArrayList", "String"): st.lists(WORDS),
    ("simple_java", "ArrayList", "float"): st.lists(FLOATS),
    ("simple_java", "HashMap", None): st.dictionaries(WORDS, WORDS | INTEGERS | st.booleans()),
    ("simple_javascript", "integer", None): INTEGERS,
    ("simple_javascript", "Bigint", None): INTEGERS,
    ("simple_javascript", "float", None): FLOATS,
    ("simple_javascript", "Boolean", None): st.booleans(),
    ("simple_javascript", "String", None): WORDS,
    ("simple_javascript", "array", "String"): st.lists(WORDS),
    ("simple_javascript", "array", "Bigint"): st.lists(INTEGERS),
    ("simple_javascript", "array", "float"): st.lists(FLOATS),
    ("simple_javascript", "dict", None): st.dictionaries(WORDS, WORDS | INTEGERS | st.booleans()),
}


@given(data=st.data(), kind=st.sampled_from(list(BY_TYPE)))
def test_the_official_converters_read_back_exactly_the_value_that_was_written(
    data: st.DataObject, kind: tuple[str, str, str | None], official: Official
) -> None:
    subset, type_name, item_type = kind
    parameter = {"type": type_name} | ({"items": {"type": item_type}} if item_type else {})
    value, other = data.draw(BY_TYPE[kind]), data.draw(BY_TYPE[kind])

    def accepted(wanted: Any) -> list[Any]:
        return [{key: [item] for key, item in wanted.items()} if isinstance(wanted, dict) else wanted]

    calls = reference_calls(row(subset, parameter, accepted(value)))
    assert isinstance(score_sample(row(subset, parameter, accepted(value)), as_response(calls), official), Hit)
    if plainly(other) != plainly(value):
        assert isinstance(score_sample(row(subset, parameter, accepted(other)), as_response(calls), official), Miss)


def plainly(value: Any) -> Any:
    """Reduce a value as the official comparison does: no letter case, some punctuation dropped, True equal to 1."""
    match value:
        case str():
            return re.sub(r"[ ,./_*^-]", "", value).lower().replace("'", '"')
        case list():
            return [plainly(item) for item in value]
        case dict():
            return {key: plainly(item) for key, item in value.items()}
        case _:
            return value

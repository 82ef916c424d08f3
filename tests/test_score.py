from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.attempt import attempt_record
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.judge_worker import reply_from, reply_line
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.reference import reference_calls, tool_name
from agentcompass_bfcl.response import Call, Calls, Silence, Text
from agentcompass_bfcl.score import Hit, Miss, Unscored, score_output, score_sample
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Language, Rule, subset_named
from agentcompass_bfcl.task import Mode
from runaways import row_with

AST_SUBSETS = [name for name in SINGLE_TURN_SUBSETS if subset_named(name).rule is Rule.AST]
OTHER_SUBSETS = [name for name in SINGLE_TURN_SUBSETS if name not in AST_SUBSETS]

DECODER_FAILED = "ast_decoder:decoder_failed"
WRONG_FORMAT = "ast_decoder:decoder_wrong_output_format"
CALLED = "irrelevance_error:decoder_success"
NOT_CALLED = "relevance_error:decoder_failed"

# What a model gives, its verdict in AST subsets (None: depends on the row), and whether it counts as a call elsewhere.
# "NAME" stands for the first function of the row.
MALFORMED: list[tuple[str, Any, str | None, bool]] = [
    ("no call", [], "wrong_count", False),
    ("empty text", "", "wrong_count", False),
    ("an empty object", {}, "wrong_count", False),
    ("plain text", "There is no function for that.", DECODER_FAILED, False),
    ("an error stored as text", "Error during inference: Error code: 400", DECODER_FAILED, False),
    ("a number", 5, DECODER_FAILED, False),
    ("null", None, DECODER_FAILED, False),
    ("a call without a name", [{}], DECODER_FAILED, False),
    ("a list of text", ["NAME()"], DECODER_FAILED, False),
    ("empty arguments", [{"NAME": ""}], DECODER_FAILED, False),
    ("arguments cut off", [{"NAME": '{"x": '}], DECODER_FAILED, False),
    ("arguments in Python's notation", [{"NAME": "{'x': True}"}], DECODER_FAILED, False),
    ("arguments nested too deep", [{"NAME": '{"x": ' * 100_000}], DECODER_FAILED, False),
    ("an integer of too many digits", [{"NAME": f'{{"x": {"9" * 5000}}}'}], DECODER_FAILED, False),
    ("a dict instead of text", [{"NAME": {"x": 1}}], DECODER_FAILED, False),
    ("null instead of text", [{"NAME": None}], DECODER_FAILED, False),
    ("null arguments", [{"NAME": "null"}], WRONG_FORMAT, False),
    ("a list of arguments", [{"NAME": "[1]"}], WRONG_FORMAT, False),
    ("text as arguments", [{"NAME": '"x"'}], WRONG_FORMAT, False),
    ("arguments encoded twice", [{"NAME": '"{\\"x\\": 1}"'}], WRONG_FORMAT, False),
    ("a well-formed and a malformed call", [{"NAME": "{}"}, {"NAME": "{"}], DECODER_FAILED, False),
    ("a well-formed call and null arguments", [{"NAME": "{}"}, {"NAME": "null"}], WRONG_FORMAT, False),
    ("no arguments", [{"NAME": "{}"}], None, True),
    ("an unknown name", [{"no_such_function": "{}"}], None, True),
    ("an empty name", [{"": "{}"}], None, True),
    ("five calls", [{"NAME": "{}"}] * 5, "wrong_count", True),
]
CASES = [pytest.param(output, expected, called, id=name) for name, output, expected, called in MALFORMED]


def named(output: Any, entry: Entry) -> Any:
    """Put the tool name of the row's first function in the place of NAME."""
    name = tool_name(entry.functions()[0]["name"])
    if not isinstance(output, list):
        return output
    calls = [call if isinstance(call, dict) else None for call in output]
    if None in calls:
        return output
    return [
        {name if key == "NAME" else key: value for key, value in call.items()} for call in calls if call is not None
    ]


def error_type(entry: Entry, output: Any, official: Official) -> str | None:
    """Score an output: upstream's error type, or None for a hit."""
    verdict = score_output(entry, named(output, entry), official)
    assert isinstance(verdict, Hit | Miss), verdict
    return verdict.error_type if isinstance(verdict, Miss) else None


@pytest.mark.parametrize("subset", AST_SUBSETS)
@pytest.mark.parametrize(("output", "expected", "called"), CASES)
def test_a_malformed_output_misses_an_ast_row_with_upstreams_error_type(
    output: Any, expected: str | None, called: bool, subset: str, dataset: Dataset, official: Official
) -> None:
    found = error_type(dataset.rows[subset][0], output, official)
    assert found is not None
    if expected is None:  # it was decoded and checked, and fails there
        assert "_checker" in found
    elif expected == "wrong_count":
        assert found.endswith(":wrong_count")
    else:
        assert found == expected


@pytest.mark.parametrize("subset", ["irrelevance", "live_irrelevance"])
@pytest.mark.parametrize(("output", "expected", "called"), CASES)
def test_an_irrelevance_row_is_right_exactly_when_there_is_no_call(
    output: Any, expected: str | None, called: bool, subset: str, dataset: Dataset, official: Official
) -> None:
    assert error_type(dataset.rows[subset][0], output, official) == (CALLED if called else None)


@pytest.mark.parametrize(("output", "expected", "called"), CASES)
def test_a_relevance_row_is_right_exactly_when_there_is_a_call(
    output: Any, expected: str | None, called: bool, dataset: Dataset, official: Official
) -> None:
    assert error_type(dataset.rows["live_relevance"][0], output, official) == (None if called else NOT_CALLED)


def test_an_irrelevance_row_without_functions_is_scored_like_any_other(dataset: Dataset, official: Official) -> None:
    entry = dataset.entry("live_irrelevance_120-9-0")
    assert entry.functions() == []
    assert score_sample(entry, Silence(), official) == Hit()
    assert isinstance(score_sample(entry, Calls((Call("anything", "{}"),)), official), Miss)


def reference_output(entry: Entry) -> list[dict[str, str]]:
    return [{name: arguments} for name, arguments in reference_calls(entry)]


@pytest.mark.parametrize("subset", AST_SUBSETS)
def test_the_last_of_duplicate_keys_wins_and_blanks_do_not_matter(
    subset: str, dataset: Dataset, official: Official
) -> None:
    entry = dataset.rows[subset][0]
    output = reference_output(entry)
    ((name, arguments),) = output[0].items()
    first_key = json.dumps(next(iter(json.loads(arguments))))
    output[0] = {name: f' \n{{{first_key}: "overwritten", {arguments.removeprefix("{")}\t '}
    assert score_output(entry, output, official) == Hit()


@pytest.mark.parametrize("subset", ["parallel", "parallel_multiple", "live_parallel", "live_parallel_multiple"])
def test_parallel_calls_may_come_in_any_order_and_none_may_be_missing(
    subset: str, dataset: Dataset, official: Official
) -> None:
    entry = dataset.rows[subset][0]
    output = reference_output(entry)
    assert len(output) == 2
    assert score_output(entry, output[::-1], official) == Hit()
    assert error_type(entry, output[:1], official) == "parallel_function_checker_no_order:wrong_count"
    assert error_type(entry, output[:1] * 2, official) == "parallel_function_checker_no_order:cannot_find_match"


@pytest.mark.parametrize("subset", ["simple_python", "multiple", "live_simple", "live_multiple"])
def test_a_second_call_is_one_too_many_where_one_is_wanted(subset: str, dataset: Dataset, official: Official) -> None:
    entry = dataset.rows[subset][0]
    found = error_type(entry, reference_output(entry) * 2, official)
    assert found is not None
    assert found.endswith(":wrong_count")


def test_a_name_with_dots_hits_only_as_the_tool_was_named(dataset: Dataset, official: Official) -> None:
    entry = next(row for row in dataset.rows["simple_python"] if row.functions()[0]["name"] == "math.factorial")
    ((name, arguments),) = reference_calls(entry)
    assert score_sample(entry, Calls((Call(name, arguments),)), official) == Hit()
    missed = score_sample(entry, Calls((Call("math.factorial", arguments),)), official)
    assert isinstance(missed, Miss)
    assert missed.error_type == "simple_function_checker:wrong_func_name"


def test_a_response_is_judged_as_the_output_it_would_have_been_stored_as(dataset: Dataset, official: Official) -> None:
    entry = dataset.rows["simple_python"][0]
    (call,) = reference_calls(entry)
    assert score_sample(entry, Calls((Call(*call),), "and some text"), official) == Hit()
    assert score_sample(entry, Text("no"), official) == score_output(entry, "no", official)
    assert score_sample(entry, Silence(), official) == score_output(entry, [], official)
    as_object = Calls((Call(*call, arguments_are_text=False),))
    assert isinstance(score_sample(entry, as_object, official), Miss)


def test_the_official_code_need_not_be_handed_over(dataset: Dataset, official: Official) -> None:
    entry = dataset.rows["multiple"][0]
    assert score_sample(entry, Silence()) == score_sample(entry, Silence(), official)
    (call,) = reference_calls(entry)
    assert score_sample(entry, Calls((Call(*call),))) == Hit()


def with_argument(entry: Entry, name: str, text: str) -> Any:
    """Give the reference answer with one argument's JSON replaced."""
    ((tool, arguments),) = reference_calls(entry)
    others = {key: value for key, value in json.loads(arguments).items() if key != name}
    return [{tool: f"{json.dumps(others).removesuffix('}')}{', ' if others else ''}{json.dumps(name)}: {text}}}"}]


@pytest.mark.parametrize(
    ("subset", "type_name", "argument", "reason"),
    [
        ("simple_python", "float", "1" + "0" * 309, "OverflowError: int too large to convert to float"),
        ("live_simple", "float", "9" * 320, "OverflowError: int too large to convert to float"),
        ("simple_java", "integer", json.dumps("9" * 5000), "ValueError: Exceeds the limit"),
        ("simple_java", "long", json.dumps("9" * 5000 + "L"), "ValueError: Exceeds the limit"),
        ("simple_javascript", "integer", json.dumps("9" * 5000), "ValueError: Exceeds the limit"),
    ],
)
def test_an_output_that_breaks_the_checker_leaves_its_own_row_unscored_and_no_other(
    subset: str, type_name: str, argument: str, reason: str, dataset: Dataset, official: Official
) -> None:
    entry, name = row_with(dataset, subset, type_name)
    verdict = score_output(entry, with_argument(entry, name, argument), official)
    assert isinstance(verdict, Unscored)
    assert verdict.reason == "checker_raised"
    assert verdict.detail.startswith(reason)
    assert score_output(entry, reference_output(entry), official) == Hit()


def test_a_detail_is_cut_to_a_length_a_record_can_keep(dataset: Dataset, official: Official) -> None:
    entry, name = row_with(dataset, "simple_python", "string")
    verdict = score_output(entry, with_argument(entry, name, json.dumps("x" * 50_000)), official)
    assert isinstance(verdict, Miss)
    assert len(verdict.detail) == 2003
    assert verdict.detail.endswith("...")


def test_scoring_alters_neither_the_row_nor_the_output(dataset: Dataset, official: Official) -> None:
    for subset in SINGLE_TURN_SUBSETS:
        entry = dataset.rows[subset][0]
        before = (entry.question_json, entry.functions_json, entry.answer_json)
        output = reference_output(entry)
        written = json.dumps(output)
        assert score_output(entry, output, official) == score_output(entry, output, official) == Hit()
        assert json.dumps(output) == written
        assert (entry.question_json, entry.functions_json, entry.answer_json) == before


def json_values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | text | st.just(10**400),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=6,
    )


def outputs(entry: Entry) -> st.SearchStrategy[Any]:
    """Make any JSON value, and calls of the row's own functions with odd values for their own parameters.

    Text stays short: two regular expressions of the Java and JavaScript converters run away on long nested lists.
    """
    text = st.text(max_size=12) | st.text('[]{},:"1a ', max_size=12)
    values = json_values(text)
    documents = entry.functions()
    names = st.sampled_from([tool_name(document["name"]) for document in documents] or ["f"]) | text
    parameters = sorted({name for document in documents for name in document["parameters"]["properties"]})
    arguments = st.dictionaries(st.sampled_from(parameters or ["x"]) | text, values, max_size=4)
    call = st.dictionaries(names, arguments.map(json.dumps) | values, min_size=1, max_size=2)
    return values | st.lists(call, max_size=3)


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
@given(data=st.data())
def test_any_json_value_gets_a_verdict_and_nothing_is_raised(
    subset: str, data: st.DataObject, dataset: Dataset, official: Official
) -> None:
    rows = dataset.rows[subset]
    entry = rows[data.draw(st.integers(0, len(rows) - 1))]
    verdict = score_output(entry, data.draw(outputs(entry)), official)
    assert isinstance(verdict, Hit | Miss | Unscored)
    if isinstance(verdict, Unscored):
        assert subset in AST_SUBSETS
        assert verdict.reason == "checker_raised"


@pytest.mark.parametrize("subset", AST_SUBSETS)
@given(data=st.data())
def test_the_reference_answer_still_hits_when_the_order_of_arguments_changes(
    subset: str, data: st.DataObject, dataset: Dataset, official: Official
) -> None:
    entry = dataset.rows[subset][data.draw(st.integers(0, 15))]
    reordered = [
        {name: json.dumps(dict(data.draw(st.permutations(list(json.loads(arguments).items())))))}
        for name, arguments in reference_calls(entry)
    ]
    assert score_output(entry, reordered, official) == score_output(entry, reference_output(entry), official)


def test_languages_are_judged_by_their_own_converters(dataset: Dataset, official: Official) -> None:
    for subset in ("simple_java", "simple_javascript"):
        assert subset_named(subset).language is not Language.PYTHON
        entry, name = row_with(dataset, subset, "integer")
        ((_, arguments),) = reference_calls(entry)
        as_number = str(json.loads(arguments)[name])
        assert score_output(entry, with_argument(entry, name, json.dumps(as_number)), official) == Hit()
        # The checker wants source text in these languages, so a JSON number is a mistake of the model.
        assert score_output(entry, with_argument(entry, name, as_number), official) != Hit()


@pytest.mark.parametrize(
    ("output", "mode", "malformed"),
    [
        ([{"f": "{"}], Mode.FC, True),
        ([{"f": {"a": 1}}], Mode.FC, True),
        ([{"f": "[1]"}], Mode.FC, True),
        ([{"f": "null"}], Mode.FC, True),
        ([], Mode.FC, False),
        ("I cannot do that.", Mode.FC, False),
        ("", Mode.PROMPT, False),
        ("None of the functions fits.", Mode.PROMPT, False),
        ("[determine_body_mass_index(weight=", Mode.PROMPT, True),
        ("determine_body_mass_index is of no use", Mode.PROMPT, False),
        ("[]", Mode.PROMPT, False),
    ],
)
def test_a_right_abstention_that_held_a_malformed_call_is_marked_and_stays_right(
    output: Any, mode: Mode, malformed: bool, dataset: Dataset, official: Official
) -> None:
    verdict = score_output(dataset.entry("irrelevance_0"), output, official, mode)
    assert isinstance(verdict, Hit)
    assert verdict.malformed_call is malformed
    assert verdict == Hit()
    assert reply_from(reply_line(1, verdict), 1) == verdict
    reply = reply_from(reply_line(1, verdict), 1)
    assert isinstance(reply, Hit)
    assert reply.malformed_call is malformed
    record = attempt_record(verdict, output, {}, None)
    assert record.malformed_call is (True if malformed else None)

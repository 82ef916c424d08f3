from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint import Kind, Mistakes, parse_mistakes, planned_mistake
from agentcompass_bfcl.endpoint.answers import answer
from agentcompass_bfcl.endpoint.mistakes import is_flaky, real_mistake
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.reference import UNPASSABLE, tool_name
from agentcompass_bfcl.response import Call, Calls, Text
from agentcompass_bfcl.score import Miss, score_sample
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Rule, subset_named

WRONG_ANSWERS = [kind for kind in Kind if kind not in (Kind.HTTP_500, Kind.STALL)]
SHARES = st.fractions(0, 100, max_denominator=1000)


@given(seed=st.integers(), share=SHARES, kind=st.sampled_from(Kind), data=st.data())
def test_a_plan_depends_on_the_seed_and_the_row_alone(
    seed: int, share: Fraction, kind: Kind, data: st.DataObject, dataset: Dataset
) -> None:
    entry = data.draw(st.sampled_from(dataset.rows["live_simple"]))
    mistakes = Mistakes(**{kind.value: share})
    planned = planned_mistake(entry, mistakes, seed)
    assert planned == planned_mistake(entry, Mistakes(**{kind.value: share}), seed)
    assert planned in (None, real_mistake(entry, kind))


@given(seed=st.integers(), kind=st.sampled_from(Kind), data=st.data())
def test_no_share_plans_nothing_and_the_whole_share_plans_every_row(
    seed: int, kind: Kind, data: st.DataObject, dataset: Dataset
) -> None:
    entry = data.draw(st.sampled_from(dataset.rows["parallel"]))
    assert planned_mistake(entry, Mistakes(), seed) is None
    assert planned_mistake(entry, Mistakes(**{kind.value: 100}), seed) == kind


@given(seed=st.integers(), smaller=SHARES, larger=SHARES, data=st.data())
def test_a_larger_share_keeps_the_rows_of_a_smaller_one(
    seed: int, smaller: Fraction, larger: Fraction, data: st.DataObject, dataset: Dataset
) -> None:
    smaller, larger = sorted((smaller, larger))
    entry = data.draw(st.sampled_from(dataset.rows["simple_python"]))
    if planned_mistake(entry, Mistakes(http_500=smaller), seed) is not None:
        assert planned_mistake(entry, Mistakes(http_500=larger), seed) is Kind.HTTP_500


def test_shares_come_out_close_to_what_was_asked_and_seeds_choose_different_rows(dataset: Dataset) -> None:
    mistakes = Mistakes(http_500=10, stall=5, flaky_500=20)
    rows = list(dataset.by_id.values())
    plan = [planned_mistake(entry, mistakes, 7) for entry in rows]
    assert abs(plan.count(Kind.HTTP_500) / len(rows) - 0.10) < 0.015
    assert abs(plan.count(Kind.STALL) / len(rows) - 0.05) < 0.015
    assert abs(sum(is_flaky(entry, mistakes, 7) for entry in rows) / len(rows) - 0.20) < 0.02
    assert plan != [planned_mistake(entry, mistakes, 8) for entry in rows]


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("", Mistakes()),
        ("wrong_value=2.5", Mistakes(wrong_value=Fraction(5, 2))),
        (" stall = 1/3 , http_500=100e-2,", Mistakes(stall=Fraction(1, 3), http_500=1)),
    ],
)
def test_shares_are_read_exactly(text: str, mistakes: Mistakes) -> None:
    assert parse_mistakes(text) == mistakes


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("typo=1", "'typo'"),
        ("stall", "'stall'"),
        ("stall=many", "'stall=many'"),
        ("stall=1/0", "'stall=1/0'"),
        ("stall=1,stall=2", "twice"),
        ("stall=-1", "stall=-1"),
        ("flaky_500=101", "flaky_500=101"),
        ("stall=60,http_500=41", "101 %"),
    ],
)
def test_impossible_shares_are_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(named)):
        parse_mistakes(text)


COUNT, VALUE, NAME = r"\w+:wrong_count", "value_error:.+", "simple_function_checker:wrong_func_name"
NO_MATCH, DECODER = "parallel_function_checker_no_order:cannot_find_match", "ast_decoder:decoder_failed"
NOT_WANTED, WANTED = "irrelevance_error:decoder_success", "relevance_error:decoder_failed"

# What the official rule says about each kind: on AST subsets of one call and of several, on irrelevance, on relevance.
EXPECTED_ERROR_TYPES = {
    Kind.WRONG_VALUE: (f"{VALUE}|{NAME}", NO_MATCH, NOT_WANTED, WANTED),  # a call without arguments: the name is wrong
    Kind.WRONG_FUNCTION: (NAME, NO_MATCH, NOT_WANTED, WANTED),
    Kind.MISSING_CALL: (DECODER, COUNT, NOT_WANTED, WANTED),  # the only call gives way to text
    Kind.EXTRA_CALL: (COUNT, COUNT, NOT_WANTED, WANTED),
    Kind.MALFORMED_ARGUMENTS: (DECODER, DECODER, NOT_WANTED, WANTED),
}


def expected_error_type(entry: Entry, kind: Kind) -> str:
    one_call, several_calls, irrelevance, relevance = EXPECTED_ERROR_TYPES[kind]
    match subset_named(entry.subset).rule:
        case Rule.IRRELEVANCE:
            return irrelevance
        case Rule.RELEVANCE:
            return relevance
        case Rule.AST:
            return several_calls if "parallel" in entry.subset else one_call


@pytest.mark.parametrize("kind", WRONG_ANSWERS)
@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_every_planned_mistake_is_a_miss_of_its_kind_on_every_row(
    subset: str, kind: Kind, dataset: Dataset, official: Official
) -> None:
    for entry in dataset.rows[subset]:
        said = answer(entry, planned_mistake(entry, Mistakes(**{kind.value: 100}), seed=0))
        calls = tuple(Call(name, arguments) for name, arguments in said.calls)
        verdict = score_sample(entry, Calls(calls) if calls else Text(said.text), official)
        assert isinstance(verdict, Miss), (entry.id, verdict)
        if entry.id not in UNPASSABLE:  # these may fail for their own reason first
            assert re.fullmatch(expected_error_type(entry, kind), verdict.error_type), (entry.id, verdict)


def test_a_wrong_value_keeps_the_right_function_wherever_a_call_has_an_argument(dataset: Dataset) -> None:
    for entry in dataset.rows["simple_python"]:
        assert real_mistake(entry, Kind.WRONG_VALUE) is Kind.WRONG_VALUE
        (name, _), *_ = answer(entry, Kind.WRONG_VALUE).calls
        assert name == tool_name(entry.functions()[0]["name"])


def test_a_value_is_spoilt_where_it_can_be_rather_than_a_boolean_of_which_both_are_accepted(official: Official) -> None:
    parameters = {"properties": {"loud": {"type": "boolean"}, "times": {"type": "integer"}}, "required": []}
    entry = Entry(
        id="simple_python_0",
        subset="simple_python",
        row=0,
        question_json="[[]]",
        functions_json=json.dumps([{"name": "ring", "parameters": parameters}]),
        answer_json=json.dumps([{"ring": {"loud": [True, False], "times": [3]}}]),
    )
    ((name, arguments),) = answer(entry, Kind.WRONG_VALUE).calls
    assert json.loads(arguments)["loud"] is True
    verdict = score_sample(entry, Calls((Call(name, arguments),)), official)
    assert isinstance(verdict, Miss)
    assert verdict.error_type == "value_error:others"

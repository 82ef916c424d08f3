"""Prompt mode: what is asked, what of a reply counts, and how text is judged."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.reference import UNPASSABLE, calls_as_text, right_calls
from agentcompass_bfcl.response import (
    Call,
    Calls,
    Response,
    Silence,
    Text,
    official_output,
    response_from_message,
    without_leading_think,
)
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict, score_output, score_sample
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Language, Rule, subset_named
from agentcompass_bfcl.task import Mode, chat_request
from agentcompass_bfcl.wheel import Wheel
from fresh_python import run_python
from prompt_extra import needs_parsers, skip_without_parsers
from recordings import folder, needs_recordings

DECODER_FAILED = "ast_decoder:decoder_failed"
WRONG_FORMAT = "ast_decoder:decoder_wrong_output_format"
CALLED = "irrelevance_error:decoder_success"
NOT_CALLED = "relevance_error:decoder_failed"


# What is asked


# Upstream's own modules, imported from the wheel by Python's own import system and called as its generator does. Each
# stand-in is for a module whose import would need packages that cannot be installed here, or would make directories.
ASK_UPSTREAM = """
import hashlib, json, sys, types, zipfile
wheel, *subsets = sys.argv[1:]
sys.path.insert(0, wheel)

class Anything:
    def __init__(self, *args, **kwargs):
        pass

def stand_in(name, *attributes):
    sys.modules[name] = module = types.ModuleType(name)
    vars(module).update(dict.fromkeys(attributes, Anything))

stand_in("filelock", "FileLock")
stand_in("tenacity", "retry", "retry_if_exception_message", "retry_if_exception_type", "wait_random_exponential")
stand_in("bfcl_eval.constants.eval_config")
stand_in("bfcl_eval.model_handler.parser.java_parser", "parse_java_function_call")
stand_in("bfcl_eval.model_handler.parser.js_parser", "parse_javascript_function_call")

from bfcl_eval.model_handler.utils import system_prompt_pre_processing_chat_model
from bfcl_eval.utils import add_language_specific_hint_to_function_doc

asked = {}
with zipfile.ZipFile(wheel) as archive:
    for subset in subsets:
        lines = archive.read(f"bfcl_eval/data/BFCL_v4_{subset}.json").decode().split("\\n")
        for entry in add_language_specific_hint_to_function_doc([json.loads(line) for line in lines if line]):
            turn = system_prompt_pre_processing_chat_model(entry["question"][0], entry["function"], entry["id"])
            asked[entry["id"]] = hashlib.sha256(json.dumps(turn).encode()).hexdigest()
print(json.dumps(asked))
"""


def test_every_row_is_asked_as_the_official_generator_asks_it(
    wheel: Wheel, dataset: Dataset, official: Official, tmp_path: Path
) -> None:
    upstream = json.loads(run_python(ASK_UPSTREAM, str(wheel.path), *SINGLE_TURN_SUBSETS, cwd=tmp_path))
    assert len(upstream) == len(dataset.by_id) == 3641
    for entry in dataset.by_id.values():
        request = chat_request(entry, official, Mode.PROMPT)
        assert request.tools == []
        assert hashlib.sha256(json.dumps(request.messages).encode()).hexdigest() == upstream[entry.id], entry.id


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_the_system_message_comes_first_and_the_rest_of_the_question_stays(
    subset: str, dataset: Dataset, official: Official
) -> None:
    for entry in dataset.rows[subset]:
        messages, own = chat_request(entry, official, Mode.PROMPT).messages, entry.messages()
        assert messages[0]["role"] == "system"
        if own[0]["role"] == "system":
            assert messages[0]["content"].endswith(f"\n\n{own[0]['content']}")
            assert messages[1:] == own[1:]
        else:
            assert messages[1:] == own


def test_functions_are_documented_with_their_dots_and_java_parameters_as_strings(
    dataset: Dataset, official: Official
) -> None:
    java = chat_request(dataset.rows["simple_java"][1], official, Mode.PROMPT).messages[0]["content"]
    assert '"name": "SQLCompletionAnalyzer.makeProposalsFromObject"' in java
    assert "Note that the provided function is in Java 8 SDK syntax." in java
    assert '"type": "string"' in java
    assert '"type": "integer"' not in java


def test_each_request_is_made_of_fresh_objects(dataset: Dataset, official: Official) -> None:
    entry = dataset.rows["simple_java"][0]
    first = chat_request(entry, official, Mode.PROMPT)
    before = json.dumps(first.messages)
    first.messages[0]["content"] = "overwritten"
    assert json.dumps(chat_request(entry, official, Mode.PROMPT).messages) == before


# How text is judged


def words(verdict: Verdict) -> str | None:
    """Give upstream's error type, or None for a hit."""
    assert not isinstance(verdict, Unscored), verdict
    return verdict.error_type if isinstance(verdict, Miss) else None


# What a model gives, its verdict on a Python AST row (None: it is decoded and checked, and fails there), and whether it
# counts as a call elsewhere. NAME stands for the first function of the row.
OUTPUTS: list[tuple[str, Any, str | None, bool]] = [
    ("an empty list", "[]", "wrong_count", False),
    ("empty text", "", "wrong_count", False),
    ("blanks and backticks", " ``` \n", "wrong_count", False),
    ("null", None, DECODER_FAILED, False),
    ("native calls", [{"NAME": "{}"}], DECODER_FAILED, False),
    ("a number", 5, DECODER_FAILED, False),
    ("plain text", "There is no function for that.", DECODER_FAILED, False),
    ("one word", "Sorry", DECODER_FAILED, False),
    ("an error stored as text", "Error during inference: Error code: 400", DECODER_FAILED, False),
    ("an object", "{}", DECODER_FAILED, False),
    ("a list of numbers", "[1, 2]", DECODER_FAILED, False),
    ("a bracket too few", "[NAME(x=1]", DECODER_FAILED, False),
    ("a bracket too many", "[NAME(x=1))]", DECODER_FAILED, False),
    ("a fence with its language", "```python\n[NAME()]\n```", DECODER_FAILED, False),
    ("thoughts first", "<think>so</think>[NAME()]", DECODER_FAILED, False),
    ("two lists", "[NAME()], [NAME()]", DECODER_FAILED, False),
    ("a comparison", "[NAME(x=1 < 2)]", DECODER_FAILED, False),
    ("code", "[NAME(x=__import__('os').getpid() + 0)]", DECODER_FAILED, False),
    ("an exit", "[NAME(x=1 + exit())]", DECODER_FAILED, False),
    ("a number without end", "[NAME(x=9 ** 9 ** 9)]", DECODER_FAILED, False),
    ("a division by zero", "[NAME(x=1 / 0)]", DECODER_FAILED, False),
    ("an integer of too many digits", f"[NAME(x={'9' * 5000})]", DECODER_FAILED, False),
    ("a null character", "[NAME(x='\0')]", DECODER_FAILED, False),
    ("half a surrogate pair", "[NAME(x='\ud800')]", DECODER_FAILED, False),
    ("brackets nested too deep", f"[NAME(x={'(' * 100_000}", DECODER_FAILED, False),
    ("a call", "[NAME()]", None, True),
    ("a call without its list", "NAME()", None, True),
    ("a call in quotes", "'NAME()'", DECODER_FAILED, False),
    ("a call in a fence", "```\n[NAME()]\n```", None, True),
    ("positional arguments", "[NAME(1, 2)]", None, True),
    ("an unpacked dictionary", "[NAME(**{'x': 1})]", None, True),
    ("an unknown name", "[no_such_function(x=1)]", None, True),
    ("a call of a call", "[NAME(x=f(y=1))]", None, True),
    ("an escape Python warns of", r"[NAME(x='\d')]", None, True),
    ("five calls", "[NAME(), NAME(), NAME(), NAME(), NAME()]", "wrong_count", True),
]
CASES = [pytest.param(output, expected, called, id=name) for name, output, expected, called in OUTPUTS]
PYTHON_AST_SUBSETS = [
    name
    for name in SINGLE_TURN_SUBSETS
    if subset_named(name).rule is Rule.AST and subset_named(name).language is Language.PYTHON
]


def scored(entry: Entry, output: Any, official: Official) -> str | None:
    if isinstance(output, str):
        output = output.replace("NAME", entry.functions()[0]["name"])
    return words(score_output(entry, output, official, Mode.PROMPT))


@pytest.mark.parametrize("subset", PYTHON_AST_SUBSETS)
@pytest.mark.parametrize(("output", "expected", "called"), CASES)
def test_an_ast_row_misses_with_upstreams_error_type(
    output: Any, expected: str | None, called: bool, subset: str, dataset: Dataset, official: Official
) -> None:
    found = scored(dataset.rows[subset][0], output, official)
    assert found is not None
    if expected is None:
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
    assert scored(dataset.rows[subset][0], output, official) == (CALLED if called else None)


@pytest.mark.parametrize(("output", "expected", "called"), CASES)
def test_a_relevance_row_is_right_exactly_when_there_is_a_call(
    output: Any, expected: str | None, called: bool, dataset: Dataset, official: Official
) -> None:
    assert scored(dataset.rows["live_relevance"][0], output, official) == (None if called else NOT_CALLED)


@needs_parsers
@pytest.mark.parametrize(
    ("subset", "output", "expected"),
    [
        ("simple_java", "", WRONG_FORMAT),
        ("simple_java", "hello;", WRONG_FORMAT),
        ("simple_java", "[NAME()]", "checker"),
        ("simple_java", "[f()]", DECODER_FAILED),  # too short for the parser to add the semicolon
        ("simple_java", "[NAME(x=1, x=2)]", DECODER_FAILED),
        ("simple_java", "There is no function for that.", DECODER_FAILED),
        ("simple_java", None, DECODER_FAILED),
        ("simple_java", [{"NAME": "{}"}], DECODER_FAILED),
        ("simple_javascript", "", WRONG_FORMAT),
        ("simple_javascript", "hello", WRONG_FORMAT),
        ("simple_javascript", "[NAME(x=1), NAME(x=1)]", WRONG_FORMAT),
        ("simple_javascript", "[NAME()]", "checker"),
        ("simple_javascript", "There is no function for that.", DECODER_FAILED),
        ("simple_javascript", None, DECODER_FAILED),
        ("simple_javascript", [{"NAME": "{}"}], DECODER_FAILED),
    ],
)
def test_java_and_javascript_rows_miss_with_upstreams_error_type(
    subset: str, output: Any, expected: str, dataset: Dataset, official: Official
) -> None:
    found = scored(dataset.rows[subset][0], output, official)
    assert found is not None
    assert expected in found


def test_names_keep_their_dots_and_arithmetic_is_computed(dataset: Dataset, official: Official) -> None:
    entry = next(row for row in dataset.rows["simple_python"] if row.functions()[0]["name"] == "math.factorial")
    for text in ("[math.factorial(number=5)]", "math.factorial(number=2 + 3)", "[math.factorial(number=25 // 5)]"):
        assert score_output(entry, text, official, Mode.PROMPT) == Hit()
    for text in ("[math_factorial(number=5)]", "[math.factorial(number=6)]", "[math.factorial(number=2.5 * 2)]"):
        assert isinstance(score_output(entry, text, official, Mode.PROMPT), Miss)


def test_what_breaks_the_checker_is_no_verdict(dataset: Dataset, official: Official) -> None:
    entry, name = next(
        (row, argument.name)
        for row in dataset.rows["simple_python"]
        for argument in right_calls(row)[0].arguments
        if argument.type_name == "float"
    )
    calls = calls_as_text(right_calls(entry))
    huge = re.sub(rf"\b{name}=[^,)]*", f"{name}=1{'0' * 309}", calls)
    verdict = score_output(entry, huge, official, Mode.PROMPT)
    assert isinstance(verdict, Unscored)
    assert verdict.reason == "checker_raised"


@given(text=st.text())
def test_any_text_gets_a_verdict(text: str, dataset: Dataset, official: Official) -> None:
    for subset in ("simple_python", "irrelevance", "live_relevance"):
        assert isinstance(score_output(dataset.rows[subset][0], text, official, Mode.PROMPT), Hit | Miss)


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_every_reference_answer_passes_as_text_but_the_six_that_cannot(
    subset: str, dataset: Dataset, official: Official
) -> None:
    skip_without_parsers(subset_named(subset).language)
    for entry in dataset.rows[subset]:
        verdict = score_output(entry, calls_as_text(right_calls(entry)), official, Mode.PROMPT)
        assert isinstance(verdict, Miss if entry.id in UNPASSABLE else Hit), (entry.id, verdict)


@needs_recordings
@needs_parsers
def test_recorded_texts_of_models_get_the_official_verdict_and_error_type(dataset: Dataset, official: Official) -> None:
    judged: Counter[str] = Counter()
    with gzip.open(folder() / "real_rows" / "verdicts.jsonl.gz", "rt", encoding="utf-8") as lines:
        for recorded in map(json.loads, lines):
            if recorded["mode"] == "prompt":
                verdict = score_output(dataset.entry(recorded["id"]), recorded["result"], official, Mode.PROMPT)
                assert isinstance(verdict, Hit) is recorded["valid"], recorded
                assert words(verdict) == recorded["error_type"], recorded
                judged[recorded["subset"]] += 1
    assert judged.total() == 2100
    assert {"simple_java", "simple_javascript"} < set(judged)


# What counts as the output of a reply


CALL = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "output"),
    [
        ({"content": "[f()]"}, "[f()]"),
        ({"content": ""}, ""),
        ({"content": " \n"}, " \n"),
        ({"content": None}, None),
        ({}, None),
        ({"content": "[f()]", "tool_calls": [CALL]}, "[f()]"),
        ({"content": "", "tool_calls": [CALL]}, ""),
        ({"content": None, "tool_calls": [CALL]}, None),
        ({"content": "no", "tool_calls": "not even a list"}, "no"),
        ({"content": None, "function_call": {"name": "f"}}, None),
        ({"content": [{"type": "text", "text": "[f"}, {"type": "text", "text": "()]"}]}, "[f()]"),
    ],
)
def test_the_output_of_a_reply_is_its_content_whatever_calls_came_along(
    message: dict[str, Any], output: str | None
) -> None:
    assert official_output(response_from_message(message, Mode.PROMPT), Mode.PROMPT) == output


@pytest.mark.parametrize(
    ("response", "output"),
    [
        (Text("[f()]"), "[f()]"),
        (Silence(), None),
        (Calls((Call("f", "{}"),), "[g()]"), "[g()]"),
    ],
)
def test_a_reply_read_in_either_mode_has_an_output_in_prompt_mode(response: Response, output: str | None) -> None:
    assert official_output(response, Mode.PROMPT) == output


def test_a_reply_is_judged_by_its_text(dataset: Dataset, official: Official) -> None:
    entry = dataset.rows["simple_python"][1]
    reply = Calls((Call("no_such_function", "{}"),), "[math.factorial(number=5)]")
    assert score_sample(entry, reply, official, Mode.PROMPT) == Hit()
    assert isinstance(score_sample(entry, reply, official), Miss)
    assert words(score_sample(entry, Silence(), official, Mode.PROMPT)) == DECODER_FAILED
    assert words(score_sample(dataset.rows["irrelevance"][0], Silence(), official, Mode.PROMPT)) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>so</think>[f()]", "[f()]"),
        (" \n<think>\nso\n</think>\n\n[f()]\n", "[f()]\n"),
        ("<think></think>", ""),
        ("<think>a</think>b<think>c</think>d", "b<think>c</think>d"),
        ("<think>a<think>b</think>c</think>d", "c</think>d"),
        ("<think>so [f()]", "<think>so [f()]"),
        ("[f()]<think>so</think>", "[f()]<think>so</think>"),
        ("so</think>[f()]", "so</think>[f()]"),
        ("<thinking>so</think>[f()]", "<thinking>so</think>[f()]"),
        (" [f()]\n", " [f()]\n"),
        ("", ""),
    ],
)
def test_only_a_closed_think_block_at_the_beginning_is_cut_off(text: str, left: str) -> None:
    assert without_leading_think(text) == left


@given(thought=st.text().filter(lambda text: "</think>" not in text), rest=st.text())
def test_what_is_behind_a_think_block_is_kept_but_for_leading_blanks(thought: str, rest: str) -> None:
    assert without_leading_think(f"<think>{thought}</think>{rest}") == rest.lstrip()

"""What is asked, against the official functions called as the official generator calls them, in another process."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Language, subset_named
from agentcompass_bfcl.task import chat_request
from agentcompass_bfcl.wheel import Wheel
from fresh_python import run_python

WITHOUT_FUNCTIONS = {f"live_irrelevance_{rest}" for rest in ("120-9-0", "121-9-1", "122-9-2", "123-9-3")}
HINTS = {
    Language.PYTHON: " Note that the provided function is in Python 3 syntax.",
    Language.JAVA: " Note that the provided function is in Java 8 SDK syntax.",
    Language.JAVASCRIPT: " Note that the provided function is in JavaScript syntax.",
}

# Imports upstream's own modules from the wheel, by Python's own import system. Stand-ins only where an import would
# need packages that cannot be installed here, or would make directories.
ASK_UPSTREAM = """
import json, sys, types, zipfile
wheel, *subsets = sys.argv[1:]
sys.path.insert(0, wheel)

class Anything:
    def __init__(self, *args, **kwargs):
        pass

def stand_in(name, *attributes):
    module = types.ModuleType(name)
    for attribute in attributes:
        setattr(module, attribute, Anything)
    sys.modules[name] = module

stand_in("filelock", "FileLock")
stand_in("tenacity", "retry", "retry_if_exception_message", "retry_if_exception_type", "wait_random_exponential")
stand_in("bfcl_eval.constants.eval_config")
stand_in("bfcl_eval.model_handler.parser.java_parser", "parse_java_function_call")
stand_in("bfcl_eval.model_handler.parser.js_parser", "parse_javascript_function_call")

from bfcl_eval.constants.enums import ModelStyle
from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
from bfcl_eval.model_handler.utils import convert_to_tool
from bfcl_eval.utils import add_language_specific_hint_to_function_doc

asked = {}
with zipfile.ZipFile(wheel) as archive:
    for subset in subsets:
        lines = archive.read(f"bfcl_eval/data/BFCL_v4_{subset}.json").decode().split("\\n")
        entries = [json.loads(line) for line in lines if line]
        for entry in add_language_specific_hint_to_function_doc(entries):
            tools = convert_to_tool(entry["function"], GORILLA_TO_OPENAPI, ModelStyle.OPENAI_COMPLETIONS)
            asked[entry["id"]] = [entry["question"], tools]
print(json.dumps(asked))
"""


@pytest.fixture(scope="module")
def asked_officially(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    output = run_python(ASK_UPSTREAM, str(wheel.path), *SINGLE_TURN_SUBSETS, cwd=tmp_path_factory.mktemp("upstream"))
    asked: dict[str, Any] = json.loads(output)
    return asked


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_every_row_is_asked_as_the_official_generator_asks_it(
    subset: str, dataset: Dataset, official: Official, asked_officially: dict[str, Any]
) -> None:
    for entry in dataset.rows[subset]:
        request = chat_request(entry, official)
        (messages,), tools = asked_officially[entry.id]
        assert request.messages == messages, entry.id
        # As text, since the order of keys is sent too.
        assert json.dumps(request.tools) == json.dumps(tools), entry.id


def test_building_a_request_alters_no_row_and_gives_fresh_objects_every_time(
    dataset: Dataset, official: Official
) -> None:
    for entry in dataset.by_id.values():
        before = (entry.question_json, entry.functions_json, entry.answer_json)
        first = chat_request(entry, official)
        written = json.dumps([first.messages, first.tools])
        for tool in first.tools:
            tool["function"].clear()
        first.tools.append({})
        first.messages.clear()
        second = chat_request(entry, official)
        assert json.dumps([second.messages, second.tools]) == written, entry.id
        assert (entry.question_json, entry.functions_json, entry.answer_json) == before, entry.id


def tools_of(entry: Entry, official: Official) -> list[dict[str, Any]]:
    return [tool["function"] for tool in chat_request(entry, official).tools]


def test_tool_names_are_what_apis_allow_once_dots_became_underscores(dataset: Dataset, official: Official) -> None:
    longest = 0
    for entry in dataset.by_id.values():
        names = [tool["name"] for tool in tools_of(entry, official)]
        assert names == [document["name"].replace(".", "_") for document in entry.functions()]
        for name in names:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name), (entry.id, name)
            longest = max(longest, len(name))
    assert longest == 64


def test_exactly_four_rows_have_no_tools(dataset: Dataset, official: Official) -> None:
    without = {entry.id for entry in dataset.by_id.values() if not chat_request(entry, official).tools}
    assert without == WITHOUT_FUNCTIONS


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_every_function_says_which_language_it_is_in(subset: str, dataset: Dataset, official: Official) -> None:
    hint = HINTS[subset_named(subset).language]
    for entry in dataset.rows[subset]:
        for tool, document in zip(tools_of(entry, official), entry.functions(), strict=True):
            assert tool["description"] == document["description"] + hint, entry.id


@pytest.mark.parametrize("subset", ["simple_java", "simple_javascript"])
def test_java_and_javascript_parameters_are_all_strings(subset: str, dataset: Dataset, official: Official) -> None:
    for entry in dataset.rows[subset]:
        for tool in tools_of(entry, official):
            types = {schema["type"] for schema in tool["parameters"]["properties"].values()}
            assert types <= {"string"}, entry.id


def test_every_tool_parameter_has_a_json_schema_type(dataset: Dataset, official: Official) -> None:
    allowed = {"string", "number", "integer", "boolean", "array", "object"}
    for entry in dataset.by_id.values():
        for tool in tools_of(entry, official):
            assert tool["parameters"]["type"] == "object"
            assert {schema["type"] for schema in tool["parameters"]["properties"].values()} <= allowed, entry.id


def test_a_request_has_the_messages_of_the_only_turn(dataset: Dataset, official: Official) -> None:
    several = 0
    for entry in dataset.by_id.values():
        messages = chat_request(entry, official).messages
        assert messages[-1]["role"] == "user", entry.id
        several += len(messages) > 1
    assert several > 92  # the rows with a system message, and some live_irrelevance rows with a conversation

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.errors import ResponseError
from agentcompass_bfcl.response import Call, Calls, Response, Silence, Text, official_output, response_from_message


def tool_call(name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": "call_0", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("message", "response"),
    [
        ({"content": "no"}, Text("no")),
        ({"content": " no\n"}, Text(" no\n")),
        ({"role": "assistant", "content": "no", "tool_calls": []}, Text("no")),
        ({"content": "no", "tool_calls": None, "function_call": None}, Text("no")),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, Text("ab")),
        ({}, Silence()),
        ({"content": None}, Silence()),
        ({"content": ""}, Silence()),
        ({"content": " \n"}, Silence()),
        ({"content": []}, Silence()),
        ({"content": None, "tool_calls": [], "reasoning_content": "hm"}, Silence()),
        ({"tool_calls": [tool_call("f", "{}")]}, Calls((Call("f", "{}"),))),
        ({"tool_calls": [tool_call("f", "{bad")]}, Calls((Call("f", "{bad"),))),
        ({"tool_calls": [tool_call("", "")]}, Calls((Call("", ""),))),
        ({"content": "so", "tool_calls": [tool_call("f", "{}")]}, Calls((Call("f", "{}"),), "so")),
        (
            {"tool_calls": [tool_call("f", ' {"x": 1}'), tool_call("f", "{}")]},
            Calls((Call("f", ' {"x": 1}'), Call("f", "{}"))),
        ),
        ({"tool_calls": [tool_call("f", {"x": 1})]}, Calls((Call("f", '{"x": 1}', arguments_are_text=False),))),
        ({"tool_calls": [tool_call("f", None)]}, Calls((Call("f", "null", arguments_are_text=False),))),
        ({"tool_calls": [{"function": {"name": "f"}}]}, Calls((Call("f", "null", arguments_are_text=False),))),
        ({"tool_calls": [tool_call("f", "{}")], "function_call": {"name": "f"}}, Calls((Call("f", "{}"),))),
    ],
)
def test_an_assistant_message_is_calls_text_or_silence(message: dict[str, Any], response: Response) -> None:
    assert response_from_message(message) == response


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"tool_calls": {"function": {"name": "f"}}}, "tool_calls is dict, expected a list"),
        ({"tool_calls": "f()"}, "tool_calls is str, expected a list"),
        ({"tool_calls": [None]}, r"tool_calls\[0\] has no function name"),
        ({"tool_calls": [tool_call("f", "{}"), {"id": "1"}]}, r"tool_calls\[1\] has no function name"),
        ({"tool_calls": [tool_call(None, "{}")]}, r"tool_calls\[0\] has no function name"),
        ({"tool_calls": [{"function": "f"}]}, r"tool_calls\[0\] has no function name"),
        ({"content": 5}, "content is int, expected text"),
        ({"content": {"text": "a"}}, "content is dict, expected text"),
        ({"content": [{"type": "image_url"}]}, "content is list, expected text"),
        ({"function_call": {"name": "f", "arguments": "{}"}}, "legacy function_call"),
    ],
)
def test_a_body_of_another_shape_is_a_failed_request_and_not_an_abstention(
    message: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ResponseError, match=complaint):
        response_from_message(message)


@pytest.mark.parametrize(
    ("response", "output"),
    [
        (Silence(), []),
        (Text("no"), "no"),
        (Calls((Call("f", "{bad"),), "text is dropped"), [{"f": "{bad"}]),
        (Calls((Call("f", "{}"), Call("f", '{"x": 1}'))), [{"f": "{}"}, {"f": '{"x": 1}'}]),
        (Calls((Call("f", '{"x": 1}', arguments_are_text=False),)), [{"f": {"x": 1}}]),
        (Calls((Call("f", "null", arguments_are_text=False),)), [{"f": None}]),
    ],
)
def test_the_stored_output_is_what_an_official_result_file_holds(response: Response, output: Any) -> None:
    assert official_output(response) == output


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(calls=st.lists(st.tuples(st.text(), JSON_VALUES), min_size=1, max_size=4), text=st.text())
def test_names_and_arguments_reach_the_checker_exactly_as_they_came(calls: list[tuple[str, Any]], text: str) -> None:
    message = {"content": text, "tool_calls": [tool_call(name, arguments) for name, arguments in calls]}
    assert official_output(response_from_message(message)) == [{name: arguments} for name, arguments in calls]


@given(message=st.dictionaries(st.sampled_from(["tool_calls", "content", "function_call"]), JSON_VALUES))
def test_any_message_is_read_or_refused_and_the_message_stays_as_it_was(message: dict[str, Any]) -> None:
    before = json.dumps(message)
    try:
        response_from_message(message)
    except ResponseError as error:
        assert str(error)  # a law: either outcome is right, and a refusal says why
    assert json.dumps(message) == before

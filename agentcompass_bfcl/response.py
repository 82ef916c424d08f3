"""What came back from a model: calls, text, silence - or a failed request, which is never an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.errors import ResponseError
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value


@dataclass(frozen=True, slots=True)
class Call:
    """One native tool call. ``arguments`` is the raw text the model wrote, valid JSON or not.

    Some servers send arguments as an object instead of text; then ``arguments_are_text`` is False, ``arguments``
    holds the object as JSON, and the official decoder fails on it as it would on the object.
    """

    name: str
    arguments: str
    arguments_are_text: bool = True


@dataclass(frozen=True, slots=True)
class Calls:
    """One or more tool calls, with whatever text came along."""

    calls: tuple[Call, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Text and no tool call."""

    text: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Neither a call nor text: an abstention, right on irrelevance rows and wrong elsewhere; not a failure.

    In prompt mode empty text is ``Text``: upstream reads it as an empty list of calls, and null as no list at all.
    """


@dataclass(frozen=True, slots=True)
class TransportFailure:
    """A request that brought no answer: HTTP error, timeout, invalid body. The sample stays unscored."""

    code: str
    message: str


type Response = Calls | Text | Silence


def response_from_message(message: Mapping[str, Json], mode: Mode = Mode.FC) -> Response:
    """Read an assistant message of the chat completions API. In prompt mode its content alone counts, as upstream.

    Raises ``ResponseError`` when tool calls are not a list of ``{"function": {"name", "arguments"}}`` or the content
    is not text, and for the legacy ``function_call``: such a body is a failed request, not an abstention.
    """
    tool_calls, content = message.get("tool_calls"), message.get("content")
    if message.get("function_call") and not tool_calls and mode is Mode.FC:
        raise ResponseError("a legacy function_call: the endpoint has to answer with tool_calls")
    if content is not None and not isinstance(content, str):
        content = _joined_parts(content)
    if mode is Mode.PROMPT:
        return Silence() if content is None else Text(content)
    text = content or ""
    if tool_calls is not None and not isinstance(tool_calls, list):
        raise ResponseError(f"tool_calls is {type(tool_calls).__name__}, expected a list")
    if tool_calls:
        return Calls(tuple(_call(position, item) for position, item in enumerate(tool_calls)), text)
    return Text(text) if text.strip() else Silence()


def official_output(response: Response, mode: Mode = Mode.FC) -> Json:
    """Give the value the official generator would have stored as ``result``: a list of calls, or text.

    In prompt mode that is the text, whatever calls came along, or None without text.
    """
    if mode is Mode.PROMPT:
        return None if isinstance(response, Silence) else response.text
    match response:
        case Calls(calls):
            return [{call.name: _arguments(call)} for call in calls]
        case Text(text):
            return text
        case Silence():
            return []


def without_leading_think(text: str) -> str:
    """Cut off a ``<think>...</think>`` block that a text begins with, and the blanks around it.

    For servers that leave a model's reasoning in the content. A block that is not closed stays: there is no answer
    behind it.
    """
    start, end = text.lstrip(), "</think>"
    return start.partition(end)[2].lstrip() if start.startswith("<think>") and end in start else text


def _arguments(call: Call) -> Json:
    return call.arguments if call.arguments_are_text else json.loads(call.arguments)


def _call(position: int, item: Json) -> Call:
    function = item.get("function") if isinstance(item, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str):
        raise ResponseError(f"tool_calls[{position}] has no function name")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        return Call(name, arguments)
    return Call(name, json.dumps(arguments), arguments_are_text=False)


def _joined_parts(content: Json) -> str:
    """Join ``[{"type": "text", "text": ...}]``, the list form of content some servers send."""
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content
    ):
        return "".join(part["text"] for part in content)
    raise ResponseError(f"content is {type(content).__name__}, expected text")

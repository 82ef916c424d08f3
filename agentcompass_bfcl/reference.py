"""The reference answers as a model would have to give them: tool calls, or text, that the official checker accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.literals import literal, literal_in_text
from agentcompass_bfcl.subsets import Language, Rule, subset_named

type Json = Any  # a parsed JSON value

_MIXED_LIST = "the converter reads every element of the list as text, the answer wants numbers or booleans as well"
_NO_VALUE = "a required parameter has an empty list of accepted values"
UNPASSABLE: Mapping[str, str] = MappingProxyType(
    {
        "simple_java_36": _MIXED_LIST,
        "simple_java_65": _MIXED_LIST,
        "live_simple_106-63-0": _NO_VALUE,
        "live_simple_112-68-0": _NO_VALUE,
        "live_multiple_862-181-3": "the answer wants a parameter, journey_start_time, that the function does not have",
        "live_multiple_964-207-0": "the function requires a parameter, statement, that the answer does not allow",
    }
)
"""The rows no output can pass, by id, and why the official checker rejects each."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a reference call: the documented types and the accepted value, not yet written as source."""

    name: str
    type_name: str
    item_type: str | None
    value: Json


@dataclass(frozen=True, slots=True)
class ReferenceCall:
    """One call of a reference answer. ``name`` is as documented, with its dots."""

    name: str
    arguments: tuple[Argument, ...]
    language: Language

    def written(self) -> tuple[str, str]:
        """Write the call as an OpenAI-style model does: a name without dots, and the arguments as JSON text."""
        arguments = {
            argument.name: literal(argument.value, argument.type_name, argument.item_type, self.language)
            for argument in self.arguments
        }
        return tool_name(self.name), json.dumps(arguments, ensure_ascii=False)

    def as_text(self) -> str:
        """Write the call as a model in prompt mode does: the name with its dots, and named arguments."""
        arguments = (
            f"{argument.name}={literal_in_text(argument.value, argument.type_name, argument.item_type, self.language)}"
            for argument in self.arguments
        )
        return f"{self.name}({', '.join(arguments)})"


def tool_name(function: str) -> str:
    """Name the tool a function becomes: OpenAI-style APIs allow no dot, so upstream sends an underscore."""
    return function.replace(".", "_")


def calls_as_text(calls: Sequence[ReferenceCall]) -> str:
    """Write calls as the official system prompt wants them: ``[f(x=1), g(y='a')]``."""
    return f"[{', '.join(call.as_text() for call in calls)}]"


def reference_calls(entry: Entry) -> tuple[tuple[str, str], ...]:
    """Give the calls, ``(tool name, arguments as JSON text)``, that are right for a row. See ``right_calls``."""
    return tuple(call.written() for call in right_calls(entry))


def right_calls(entry: Entry) -> tuple[ReferenceCall, ...]:
    """Give the calls that are right for a row, to be written for either mode.

    On live_relevance rows any call is right: the first function, without arguments. On irrelevance rows no call is.
    The rows of ``UNPASSABLE`` get their reference answer as well, though the checker rejects it.
    """
    match subset_named(entry.subset).rule:
        case Rule.AST:
            return accepted_calls(entry)
        case Rule.RELEVANCE:
            return (ReferenceCall(entry.functions()[0]["name"], (), subset_named(entry.subset).language),)
        case Rule.IRRELEVANCE:
            return ()


def accepted_calls(entry: Entry) -> tuple[ReferenceCall, ...]:
    """Choose one accepted value for every parameter of a row's reference answer; empty without a reference."""
    documents = {document["name"]: document["parameters"] for document in entry.functions()}
    language = subset_named(entry.subset).language
    return tuple(
        ReferenceCall(name, _arguments(accepted, documents[name]), language)
        for answer in entry.reference_answers()
        for name, accepted in answer.items()
    )


def _arguments(accepted: Mapping[str, list[Json]], parameters: Mapping[str, Json]) -> tuple[Argument, ...]:
    arguments = []
    for name, values in accepted.items():
        document = parameters["properties"].get(name)
        if document is None:  # upstream accepts no value of a parameter that its function does not have
            continue
        type_name, item_type = document["type"], document.get("items", {}).get("type")
        for value in _choice(values, required=name in parameters["required"]):
            arguments.append(Argument(name, type_name, item_type, _plain(value, type_name, item_type)))
    return tuple(arguments)


def _choice(accepted: list[Json], *, required: bool) -> tuple[Json, ...]:
    """Choose among accepted values: one, or none where the argument is best left out.

    The value "" means that the argument may be left out, except where the function requires it: then it is text.
    """
    if not accepted:  # the slip behind two unpassable rows, see UNPASSABLE
        return ([],)
    real_values = [value for value in accepted if value is not None and value != ""]
    if real_values:
        return (real_values[0],)
    if required and "" in accepted:
        return ("",)
    return () if "" in accepted else (None,)


def _plain(chosen: Json, type_name: str, item_type: str | None) -> Json:
    """Turn accepted dictionaries, ``{key: [accepted]}``, into dictionaries; upstream does so one level deep."""
    if isinstance(chosen, dict) and type_name in ("dict", "HashMap"):
        return _plain_dict(chosen)
    if isinstance(chosen, list) and item_type == "dict":
        return [_plain_dict(item) for item in chosen]
    return chosen


def _plain_dict(accepted: Mapping[str, Json]) -> dict[str, Json]:
    # simple_java_64 gives text instead of a list of accepted values. Upstream then looks for "" in that text, finds
    # it, and so lets the key be left out; as its value only single letters of the text would do.
    return {
        key: value
        for key, values in accepted.items()
        if isinstance(values, list)
        for value in _choice(values, required=False)
    }

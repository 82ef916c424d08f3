"""Values no reference answer accepts, of the type that is expected, so that the checker finds the value at fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.reference import Argument, ReferenceCall, accepted_calls

type Json = Any  # a parsed JSON value

_TEXT, _INTEGER, _NUMBER = "planted wrong value", 987654321, 987654321.5
_BY_ITEM_TYPE = {"integer": _INTEGER, "long": _INTEGER, "float": _NUMBER, "double": _NUMBER, "dict": {_TEXT: _TEXT}}


def has_argument_to_spoil(entry: Entry) -> bool:
    """Tell whether any call of the reference answer has an argument."""
    return any(call.arguments for call in accepted_calls(entry))


def with_wrong_value(entry: Entry) -> tuple[ReferenceCall, ...]:
    """Give the reference answer with one argument changed to a value that is not accepted.

    Raises ``ValueError`` for a row without arguments; ask ``has_argument_to_spoil`` first.
    """
    calls = accepted_calls(entry)
    places = [(c, a) for c, call in enumerate(calls) for a in range(len(call.arguments))]
    if not places:
        raise ValueError(f"{entry.id}: the reference answer has no argument to change")
    c, a = min(places, key=lambda place: _reluctance(calls[place[0]].arguments[place[1]].value))
    spoilt = replace(calls[c], arguments=_spoilt_at(calls[c].arguments, a))
    return (*calls[:c], spoilt, *calls[c + 1 :])


def _spoilt_at(arguments: tuple[Argument, ...], position: int) -> tuple[Argument, ...]:
    argument = arguments[position]
    wrong = replace(argument, value=_wrong(argument.value, argument.item_type))
    return (*arguments[:position], wrong, *arguments[position + 1 :])


def _reluctance(value: Json) -> bool:
    """Put booleans last: where both are accepted there is no wrong one. Null has no type to keep."""
    return value is None or isinstance(value, bool)


def _wrong(value: Json, item_type: str | None = None) -> Json:
    match value:
        case bool():
            return not value
        case int():
            return _INTEGER
        case float():
            return _NUMBER
        case list():
            return _wrong_list(value) if value else [_BY_ITEM_TYPE.get(item_type or "", _TEXT)]
        case dict():
            return _wrong_dict(value) if value else {_TEXT: _TEXT}
        case _:
            return _TEXT


def _wrong_list(values: Sequence[Json]) -> list[Json]:
    return [_wrong(values[0]), *values[1:]]


def _wrong_dict(values: dict[str, Json]) -> dict[str, Json]:
    key = min(values, key=lambda name: _reluctance(values[name]))
    return {**values, key: _wrong(values[key])}

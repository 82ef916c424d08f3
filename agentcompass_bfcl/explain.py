"""Why a sample got its verdict, in words: what was called, what would have been accepted, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

type Json = Any  # a parsed JSON value

_LEFT_OUT = ""  # in a list of accepted values: the parameter may be left out


def differences(decoded: Sequence[Mapping[str, Json]], answers: Sequence[Mapping[str, Json]]) -> list[str]:
    """Say how decoded calls differ from the reference answers, one sentence each.

    ``decoded`` is ``[{name: {parameter: value}}]``, ``answers`` ``[{name: {parameter: [accepted values]}}]``. Calls are
    paired by name in order, as a reader would; the verdict itself is the official checker's. Empty when nothing
    differs on the face of it, for instance when the checker objects to a type.
    """
    found: list[str] = []
    left = [next(iter(call.items())) for call in decoded if call]
    if len(left) != len(answers):
        found.append(f"{len(left)} call{'' if len(left) == 1 else 's'} where {len(answers)} would be right")
    for answer in answers:
        name, accepted = next(iter(answer.items()))
        match = next((call for call in left if _same_name(call[0], name)), None)
        if match is None:
            found.append(f"no call of {name}")
            continue
        left.remove(match)
        found.extend(f"{name}: {difference}" for difference in _argument_differences(match[1], accepted))
    found.extend(f"a call of {name}, which is not in the reference" for name, _ in left)
    return found


def _same_name(called: str, documented: str) -> bool:
    return called == documented or called == documented.replace(".", "_")


def _argument_differences(arguments: Json, accepted: Mapping[str, Json]) -> list[str]:
    if not isinstance(arguments, Mapping):
        return [f"its arguments are {_short(arguments)}, not an object"]
    found = []
    for parameter, values in accepted.items():
        if parameter not in arguments:
            if _LEFT_OUT not in values:
                found.append(f"{parameter} is missing; accepted: {_accepted(values)}")
        elif not any(_alike(arguments[parameter], value) for value in values):
            found.append(f"{parameter} is {_short(arguments[parameter])}; accepted: {_accepted(values)}")
    found.extend(
        f"{parameter} is not a parameter of the reference" for parameter in arguments if parameter not in accepted
    )
    return found


def _alike(value: Json, accepted: Json) -> bool:
    """Compare generously, as a reader does; upstream's own comparison decides the verdict.

    The reference gives a list of accepted values for each key of an object, but only for objects that are an argument
    or stand in a list that is one; deeper ones it gives plainly.
    """
    if isinstance(value, Mapping) and isinstance(accepted, Mapping):
        return all(key in accepted and any(_equal(item, one) for one in accepted[key]) for key, item in value.items())
    if isinstance(value, list) and isinstance(accepted, list):
        return len(value) == len(accepted) and all(map(_alike, value, accepted))
    return _equal(value, accepted)


def _equal(value: Json, accepted: Json) -> bool:
    if isinstance(value, str) and isinstance(accepted, str):
        return _plain(value) == _plain(accepted)
    return bool(value == accepted) and isinstance(value, bool) == isinstance(accepted, bool)


def _plain(text: str) -> str:
    # The characters upstream's standardize_string drops before it compares.
    return "".join(character for character in text.lower().replace("'", '"') if character not in " ,./-_*^")


def _accepted(values: Sequence[Json]) -> str:
    shown = [_short(value) for value in values if value != _LEFT_OUT]
    return " or ".join(shown) + (", or left out" if len(shown) < len(values) else "")


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else f"{text[:117]}..."

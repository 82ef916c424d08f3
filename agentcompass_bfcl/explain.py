"""Why a sample got its verdict, in words: what was called, what would have been accepted, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict

type Json = Any  # a parsed JSON value

_LEFT_OUT = ""  # in a list of accepted values: the parameter may be left out


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, in a sentence, and where it is to be seen.

    ``call`` and ``answer`` are places in the two lists, None where a side has nothing; ``parameter`` is None where it
    is not about a single one.
    """

    text: str
    call: int | None = None
    answer: int | None = None
    parameter: str | None = None


def differences(decoded: Sequence[Mapping[str, Json]], answers: Sequence[Mapping[str, Json]]) -> list[Difference]:
    """Say how decoded calls differ from the reference answers, one sentence each.

    ``decoded`` is ``[{name: {parameter: value}}]``, ``answers`` ``[{name: {parameter: [accepted values]}}]``. Calls are
    paired by name in order, as a reader would; the verdict itself is the official checker's. Empty when nothing
    differs on the face of it, for instance when the checker objects to a type.
    """
    found: list[Difference] = []
    left = [(place, *next(iter(call.items()))) for place, call in enumerate(decoded) if call]
    if len(left) != len(answers):
        found.append(Difference(f"{len(left)} call{'' if len(left) == 1 else 's'} where {len(answers)} would be right"))
    for number, answer in enumerate(answers):
        name, accepted = next(iter(answer.items()))
        match = next((call for call in left if _same_name(call[1], name)), None)
        if match is None:
            found.append(Difference(f"no call of {name}", answer=number))
            continue
        left.remove(match)
        place, _, arguments = match
        found.extend(
            Difference(f"{name}: {text}", place, number, parameter)
            for text, parameter in _argument_differences(arguments, accepted)
        )
    known = [name for answer in answers for name in answer]
    for place, name, _ in left:
        surplus = any(_same_name(name, one) for one in known)
        text = f"one call of {name} too many" if surplus else f"a call of {name}, which is not in the reference"
        found.append(Difference(text, call=place))
    return found


def in_words(entry: Entry, verdict: Verdict) -> list[str]:
    """Write a verdict line by line, with what would have been accepted, for readers who know neither."""
    match verdict:
        case Hit():
            return ["hit"]
        case Miss(error_type, detail):
            said = [f"miss: {error_type}", detail]
        case Unscored(reason, detail):
            said = [f"no verdict: {reason}", detail]
    accepted = [f"accepted: {json.dumps(answer, ensure_ascii=False)}" for answer in entry.reference_answers()]
    return [line for line in (*said, *(accepted or ["accepted: no call"])) if line]


def _same_name(called: str, documented: str) -> bool:
    return called == documented or called == documented.replace(".", "_")


def _argument_differences(arguments: Json, accepted: Mapping[str, Json]) -> Iterator[tuple[str, str | None]]:
    """Give each difference and the parameter it is about."""
    if not isinstance(arguments, Mapping):
        yield f"its arguments are {_short(arguments)}, not an object", None
        return
    for parameter, values in accepted.items():
        if parameter not in arguments:
            if _LEFT_OUT not in values:
                yield f"{parameter} is missing; accepted: {_accepted(values)}", parameter
        elif not any(_alike(arguments[parameter], value) for value in values):
            yield f"{parameter} is {_short(arguments[parameter])}; accepted: {_accepted(values)}", parameter
    for parameter in arguments:
        if parameter not in accepted:
            yield f"{parameter} is not a parameter of the reference", parameter


def _alike(value: Json, accepted: Json) -> bool:
    """Compare generously, as a reader does; upstream's own comparison decides the verdict.

    The reference gives a list of accepted values for each key of an object, but only for objects that are an argument
    or stand in a list that is one; deeper ones it gives plainly.
    """
    if isinstance(value, Mapping) and isinstance(accepted, Mapping):
        complete = all(key in value or _LEFT_OUT in options for key, options in accepted.items())
        return complete and all(
            key in accepted and any(_equal(item, one) for one in accepted[key]) for key, item in value.items()
        )
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

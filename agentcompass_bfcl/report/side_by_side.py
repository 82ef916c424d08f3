"""A sample's expected and actual calls, line by line, with the lines marked in which they differ."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.explain import Difference, differences
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.score import decode_output
from agentcompass_bfcl.subsets import Language, subset_named
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value

LONGEST_TEXT = 3_000
"""Characters of one text that are shown; what is left out is counted."""

MOST_LINES = 500
"""Lines of one side. A right answer has some ten, a reply of 12 MB may hold 250,000 calls."""

# What decodes here decodes soon: a list times a number makes millions of items, and brackets nest.
_LONGEST_DECODED = 2_000
_MOST_BRACKETS = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a side; ``differs`` where the other side says something else."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides and the differences in words. Without calls that can be read, the reply stands as it came."""

    expected: tuple[Line, ...]
    actual: tuple[Line, ...]
    sentences: tuple[str, ...]


def side_by_side(entry: Entry, output: Json, calls: Sequence[Mapping[str, Json]] | None) -> Sides:
    """Set a reply against its reference answers; ``calls`` is what the reply decodes to, None where that is unknown.

    Where no call fits every call differs, which needs no sentence.
    """
    reference = entry.reference_answers()
    if not calls:
        return Sides(_answer_lines(reference, ()), _cut(_as_it_came(output)), ())
    found = explained(entry, calls[:MOST_LINES])
    sentences = [shown_text(difference.text) for difference in found] if reference else []
    return Sides(
        expected=_answer_lines(reference, found),
        actual=_cut(_call_lines(calls[:MOST_LINES], found)),
        sentences=tuple(sentences[:MOST_LINES]),
    )


def explained(entry: Entry, calls: Sequence[Mapping[str, Json]]) -> list[Difference]:
    """Say how calls differ from an entry's reference answers; nothing of Java and JavaScript rows.

    There arguments are source text of the language, which only the official checker compares with the reference.
    """
    if subset_named(entry.subset).language is not Language.PYTHON:
        return []
    return differences(calls, entry.reference_answers())


def readable_calls(entry: Entry, output: Json, mode: Mode, official: Official | None) -> list[dict[str, Json]] | None:
    """Decode a reply for display; None where it holds no calls, or where decoding could take long.

    A text needs ``official``, whose decoder reads it; only short ones of Python functions are tried.
    """
    if mode is Mode.FC:
        return _native_calls(output)
    if official is None or not isinstance(output, str) or not decodes_soon(output):
        return None
    if subset_named(entry.subset).language is not Language.PYTHON:
        return None
    decoded, failure = decode_output(entry, output, official, mode)
    return decoded if failure is None and official.is_call_list(decoded) and is_json(decoded) else None


def shown_text(text: str) -> str:
    """Cut what nobody reads to its end, and replace what no page can show."""
    shown = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
    return shown if len(shown) <= LONGEST_TEXT else f"{shown[:LONGEST_TEXT]}... ({len(shown)} characters)"


def decodes_soon(text: str) -> bool:
    """Tell whether a text is short and simple enough to be decoded in this process, whoever wrote it."""
    return len(text) <= _LONGEST_DECODED and "*" not in text and sum(map(text.count, "[{(")) <= _MOST_BRACKETS


def _native_calls(output: Json) -> list[dict[str, Json]] | None:
    try:
        calls = [{name: json.loads(arguments) for name, arguments in call.items()} for call in output]
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None
    return calls if all(len(call) == 1 for call in calls) and is_json(calls) else None


def is_json(value: Json) -> bool:
    """Tell whether decoded calls can be written as JSON: a text may call with bytes, complex or endless numbers."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _answer_lines(reference: Sequence[Mapping[str, Json]], found: Collection[Difference]) -> tuple[Line, ...]:
    lines: list[Line] = []
    by_answer = _grouped((difference.answer, difference) for difference in found)
    for place, answer in enumerate(reference):
        about = by_answer.get(place, [])
        for name, accepted in answer.items():
            values = {parameter: " or ".join(map(_accepted, options)) for parameter, options in accepted.items()}
            lines += _lines(name, values, about)
    return tuple(lines)


def _call_lines(calls: Sequence[Mapping[str, Json]], found: Collection[Difference]) -> tuple[Line, ...]:
    lines: list[Line] = []
    by_call = _grouped((difference.call, difference) for difference in found)
    for place, call in enumerate(calls):
        about = by_call.get(place, [])
        for name, arguments in call.items():
            if isinstance(arguments, Mapping):
                lines += _lines(name, {key: _json(value) for key, value in arguments.items()}, about)
            else:
                lines.append(Line(shown_text(f"{name} {_json(arguments)}"), differs=True))
    return tuple(lines)


def _grouped(found: Iterable[tuple[int | None, Difference]]) -> dict[int | None, list[Difference]]:
    groups: dict[int | None, list[Difference]] = {}
    for place, difference in found:
        groups.setdefault(place, []).append(difference)
    return groups


def _cut(lines: Sequence[Line]) -> tuple[Line, ...]:
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    return (*lines[:MOST_LINES], Line("... and more"))


def _lines(name: str, values: Mapping[str, str], about: Collection[Difference]) -> list[Line]:
    """Give a head line and one for each parameter; a difference about none of them marks the head line."""
    named = {difference.parameter for difference in about}
    head = Line(shown_text(name), differs=None in named)
    return [head, *(Line(shown_text(f"  {key}: {value}"), key in named) for key, value in values.items())]


def _as_it_came(output: Json) -> tuple[Line, ...]:
    if output is None:
        return ()
    if isinstance(output, list):
        return tuple(Line(shown_text(_json(item))) for item in output) or (Line("(nothing)"),)
    return (Line(shown_text(output if isinstance(output, str) else _json(output))),)


def _accepted(value: Json) -> str:
    return "(left out)" if value == "" else _json(value)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)

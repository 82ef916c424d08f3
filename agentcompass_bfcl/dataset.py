"""The questions and reference answers of the pinned release, row by row."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agentcompass_bfcl import release
from agentcompass_bfcl.errors import DatasetError
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Rule, subset_named
from agentcompass_bfcl.wheel import Wheel

type Json = Any  # a parsed JSON value; shapes are given where one is returned


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: a question, its functions and, in AST subsets, its reference answer.

    The row is kept as JSON text and parsed anew on every call, because upstream's converters edit what they are
    given: nobody can alter a row for the next reader. The texts are upstream's own, a list of turns for the question.
    """

    id: str
    subset: str
    row: int
    question_json: str
    functions_json: str
    answer_json: str | None

    def messages(self) -> list[dict[str, Json]]:
        """Return the messages of the row's only turn: ``[{"role", "content"}, ...]``."""
        turn: list[dict[str, Json]] = json.loads(self.question_json)[0]
        return turn

    def functions(self) -> list[dict[str, Json]]:
        """Return the raw function documents: ``[{"name", "description", "parameters"}, ...]``, maybe empty."""
        documents: list[dict[str, Json]] = json.loads(self.functions_json)
        return documents

    def reference_answers(self) -> list[dict[str, Json]]:
        """Return ``[{function name: {parameter: [accepted values]}}]``; empty for subsets without a reference."""
        if self.answer_json is None:
            return []
        answers: list[dict[str, Json]] = json.loads(self.answer_json)
        return answers


@dataclass(frozen=True, slots=True)
class Dataset:
    """All single-turn rows. ``rows`` maps a subset to its entries in file order."""

    rows: Mapping[str, tuple[Entry, ...]]
    by_id: Mapping[str, Entry]

    @property
    def identity(self) -> str:
        """Identify the release the rows come from."""
        return release.dataset_identity()

    def totals(self) -> dict[str, int]:
        """Count the rows of each subset, sorted by name."""
        return {name: len(self.rows[name]) for name in sorted(self.rows)}

    def entry(self, sample_id: str) -> Entry:
        """Find a row by id, or raise ``DatasetError``."""
        try:
            return self.by_id[sample_id]
        except KeyError:
            raise DatasetError(f"unknown sample id {sample_id!r}: not in {release.WHEEL_NAME}") from None


def read_dataset(wheel: Wheel) -> Dataset:
    """Read every single-turn subset from the wheel (about half a second).

    Raises ``DatasetError`` when a subset does not have its pinned number of rows, an id stands twice, or an answer
    stands at another row than its question: upstream pairs them by position alone.
    """
    files = wheel.read_all(path for name in SINGLE_TURN_SUBSETS for path in _paths(name))
    rows = {name: _read_subset(files, name) for name in SINGLE_TURN_SUBSETS}
    by_id: dict[str, Entry] = {}
    for entry in (entry for entries in rows.values() for entry in entries):
        first = by_id.setdefault(entry.id, entry)
        if first is not entry:
            raise DatasetError(
                f"{_place(release.data_path(entry.subset), entry.row)}: id {entry.id} stands already"
                f" in {_place(release.data_path(first.subset), first.row)}"
            )
    return Dataset(MappingProxyType(rows), MappingProxyType(by_id))


def _paths(subset: str) -> list[str]:
    has_answers = subset_named(subset).rule is Rule.AST
    return [release.data_path(subset), *([release.answer_path(subset)] if has_answers else [])]


def _read_subset(files: Mapping[str, bytes], name: str) -> tuple[Entry, ...]:
    questions, *answers = (_records(files[path], path, subset_named(name).rows) for path in _paths(name))
    entries = []
    for row, question in enumerate(questions):
        answer = answers[0][row] if answers else None
        if answer is not None and answer["id"] != question["id"]:
            raise DatasetError(
                f"{_place(release.answer_path(name), row)}: answers {json.loads(answer['id'])},"
                f" not {json.loads(question['id'])}"
            )
        entries.append(
            Entry(
                id=json.loads(question["id"]),
                subset=name,
                row=row,
                question_json=question["question"],
                functions_json=question["function"],
                answer_json=None if answer is None else answer["ground_truth"],
            )
        )
    return tuple(entries)


def _records(content: bytes, name: str, expected: int) -> list[dict[str, str]]:
    lines = content.decode("utf-8").split("\n")  # not splitlines(): U+2028 may stand inside a row
    records = [_cut(line) or _members(line) for line in lines if line.strip()]
    if len(records) != expected:
        raise DatasetError(f"{release.WHEEL_NAME}: {name}: {len(records)} rows, expected {expected}")
    return records


def _cut(line: str) -> dict[str, str] | None:
    """Cut a line as upstream writes them at its keys, ten times as fast as reading it; None for any other line.

    Inside a JSON string a quotation mark comes with a backslash, so a mark that is there once is the key.
    """
    if not (line.startswith(_BEGIN) and line.endswith("}")):
        return None
    for keys, marks in _SHAPES:
        pieces, start = [], len(_BEGIN) - 1
        for mark in marks:
            place = line.find(mark, start)
            if place < 0 or line.find(mark, place + 1) >= 0:
                break
            pieces.append(line[start:place])
            start = place + len(mark)
        else:
            if pieces[0].count('"') == 2:  # the id alone, and no other key before the first mark
                return dict(zip(keys, (*pieces, line[start:-1]), strict=True))
    return None


def _members(line: str) -> dict[str, str]:
    """Read a JSON object into the text of each of its values: parsed here, and not written anew."""
    members: dict[str, str] = {}
    place = _after(line, 0, "{")
    while True:
        key, place = _SCANNER.raw_decode(line, place)
        start = _after(line, place, ":")
        _, place = _SCANNER.raw_decode(line, start)
        members[key] = line[start:place]
        place = _BLANKS.match(line, place).end()  # type: ignore[union-attr]  # it matches nothing as well
        if line[place : place + 1] == "}":
            return members
        place = _after(line, place, ",")


def _after(line: str, place: int, mark: str) -> int:
    found = _MARKS[mark].match(line, place)
    if found is None:
        raise json.JSONDecodeError(f"{mark!r} expected", line, place)
    return found.end()


_BEGIN = '{"id": "'
_SHAPES = tuple(
    (keys, tuple(f', "{key}": ' for key in keys[1:]))
    for keys in (("id", "question", "function"), ("id", "ground_truth"))
)
_SCANNER = json.JSONDecoder()
_BLANKS = re.compile(r"\s*")
_MARKS = {mark: re.compile(rf"\s*{re.escape(mark)}\s*") for mark in "{:,"}


def _place(name: str, row: int) -> str:
    return f"{release.WHEEL_NAME}: {name}:{row + 1}"

"""The questions and reference answers of the pinned release, row by row."""

from __future__ import annotations

import json
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
    given: nobody can alter a row for the next reader.
    """

    id: str
    subset: str
    row: int
    question_json: str
    functions_json: str
    answer_json: str | None

    def messages(self) -> list[dict[str, Json]]:
        """Return the messages of the row's only turn: ``[{"role", "content"}, ...]``."""
        turn: list[dict[str, Json]] = json.loads(self.question_json)
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
    rows = {name: _read_subset(wheel, name) for name in SINGLE_TURN_SUBSETS}
    by_id: dict[str, Entry] = {}
    for entry in (entry for entries in rows.values() for entry in entries):
        first = by_id.setdefault(entry.id, entry)
        if first is not entry:
            raise DatasetError(
                f"{_place(release.data_path(entry.subset), entry.row)}: id {entry.id} stands already"
                f" in {_place(release.data_path(first.subset), first.row)}"
            )
    return Dataset(MappingProxyType(rows), MappingProxyType(by_id))


def _read_subset(wheel: Wheel, name: str) -> tuple[Entry, ...]:
    subset = subset_named(name)
    questions = _records(wheel, release.data_path(name), subset.rows)
    answers = _records(wheel, release.answer_path(name), subset.rows) if subset.rule is Rule.AST else None
    entries = []
    for row, question in enumerate(questions):
        answer = None if answers is None else answers[row]
        if answer is not None and answer["id"] != question["id"]:
            raise DatasetError(
                f"{_place(release.answer_path(name), row)}: answers {answer['id']}, not {question['id']}"
            )
        entries.append(
            Entry(
                id=question["id"],
                subset=name,
                row=row,
                question_json=json.dumps(question["question"][0]),
                functions_json=json.dumps(question["function"]),
                answer_json=None if answer is None else json.dumps(answer["ground_truth"]),
            )
        )
    return tuple(entries)


def _records(wheel: Wheel, name: str, expected: int) -> list[dict[str, Json]]:
    lines = wheel.read(name).decode("utf-8").split("\n")  # not splitlines(): U+2028 may stand inside a row
    records = [json.loads(line) for line in lines if line.strip()]
    if len(records) != expected:
        raise DatasetError(f"{release.WHEEL_NAME}: {name}: {len(records)} rows, expected {expected}")
    return records


def _place(name: str, row: int) -> str:
    return f"{release.WHEEL_NAME}: {name}:{row + 1}"

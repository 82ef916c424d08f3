"""The rows of the pinned release: all of them, each with its own answer, and safe from their readers."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agentcompass_bfcl import release
from agentcompass_bfcl.dataset import Dataset, _cut, _members, _paths, read_dataset
from agentcompass_bfcl.errors import DatasetError
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Rule, reference_subset_totals, subset_named
from agentcompass_bfcl.wheel import Wheel, open_wheel

if TYPE_CHECKING:
    from conftest import Doctor, Edit

AST_SUBSETS = [name for name in SINGLE_TURN_SUBSETS if subset_named(name).rule is Rule.AST]
OTHER_SUBSETS = [name for name in SINGLE_TURN_SUBSETS if name not in AST_SUBSETS]


def editing_lines(change: Any) -> Edit:
    """Edit a file as a list of its lines."""
    return lambda content: b"\n".join(change(content.rstrip(b"\n").split(b"\n"))) + b"\n"


def test_every_subset_has_its_reference_number_of_rows(dataset: Dataset) -> None:
    assert dataset.totals() == reference_subset_totals()
    assert list(dataset.totals()) == sorted(SINGLE_TURN_SUBSETS)
    assert sum(dataset.totals().values()) == 3641


def test_ids_are_unique_and_lead_back_to_their_row(dataset: Dataset) -> None:
    entries = [entry for rows in dataset.rows.values() for entry in rows]
    assert Counter(entry.id for entry in entries).most_common(1)[0][1] == 1
    assert all(dataset.entry(entry.id) is entry for entry in entries)


def test_rows_are_numbered_from_zero_in_file_order(dataset: Dataset) -> None:
    for name, rows in dataset.rows.items():
        assert [entry.row for entry in rows] == list(range(len(rows)))
        assert {entry.subset for entry in rows} == {name}


def test_an_unknown_id_is_refused(dataset: Dataset) -> None:
    with pytest.raises(DatasetError, match="unknown sample id 'simple_python_400'"):
        dataset.entry("simple_python_400")


@pytest.mark.parametrize("name", AST_SUBSETS)
def test_every_row_of_an_ast_subset_has_an_answer_about_its_own_functions(dataset: Dataset, name: str) -> None:
    for entry in dataset.rows[name]:
        answers = entry.reference_answers()
        assert answers, entry.id
        offered = {document["name"] for document in entry.functions()}
        assert {function for answer in answers for function in answer} <= offered, entry.id


@pytest.mark.parametrize("name", OTHER_SUBSETS)
def test_a_row_judged_by_relevance_alone_has_no_answer(dataset: Dataset, name: str) -> None:
    assert all(entry.answer_json is None and entry.reference_answers() == [] for entry in dataset.rows[name])


def test_every_row_has_messages_with_role_and_content(dataset: Dataset) -> None:
    for entry in dataset.by_id.values():
        messages = entry.messages()
        assert messages, entry.id
        assert all(set(message) == {"role", "content"} for message in messages), entry.id


@pytest.mark.parametrize("part", ["messages", "functions", "reference_answers"])
def test_what_one_reader_alters_the_next_does_not_see(dataset: Dataset, part: str) -> None:
    read = getattr(dataset.entry("simple_python_0"), part)
    before = json.dumps(read())
    altered = read()
    altered[0].clear()
    altered.append({})
    assert json.dumps(read()) == before


def test_the_maps_of_a_dataset_cannot_be_altered(dataset: Dataset) -> None:
    with pytest.raises(TypeError):
        dataset.rows["multiple"] = ()  # type: ignore[index]  # the refusal is what is tested


def test_a_dataset_is_identified_by_version_and_hash(dataset: Dataset) -> None:
    assert release.VERSION in dataset.identity
    assert release.WHEEL_SHA256 in dataset.identity


def test_line_separators_inside_a_row_do_not_split_it(doctor: Doctor) -> None:
    text = "a\u2028b\u2029c\x85d"  # str.splitlines() would split at each

    def insert(lines: list[bytes]) -> list[bytes]:
        row = json.loads(lines[0])
        row["question"][0][0]["content"] = text
        return [json.dumps(row, ensure_ascii=False).encode(), *lines[1:]]

    path = doctor({release.data_path("live_relevance"): editing_lines(insert)}, pin_files=True)
    assert read_dataset(open_wheel(path)).rows["live_relevance"][0].messages()[0]["content"] == text


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        (
            release.data_path("multiple"),
            lambda lines: lines[:-1],
            r"data/BFCL_v4_multiple.json: 199 rows, expected 200",
        ),
        (
            release.answer_path("multiple"),
            lambda lines: lines[1:],
            r"data/possible_answer/BFCL_v4_multiple.json: 199 rows, expected 200",
        ),
        (release.data_path("irrelevance"), lambda lines: [*lines, lines[0]], r"241 rows, expected 240"),
        (
            release.answer_path("multiple"),
            lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
            r"data/possible_answer/BFCL_v4_multiple.json:2: answers multiple_2, not multiple_1",
        ),
        (
            release.data_path("irrelevance"),
            lambda lines: [lines[0], lines[0], *lines[2:]],
            r"data/BFCL_v4_irrelevance.json:2: id irrelevance_0 stands already in .*irrelevance.json:1",
        ),
    ],
    ids=["a row removed", "an answer removed", "a row added", "answers out of order", "an id twice"],
)
def test_a_file_whose_rows_do_not_fit_is_refused(doctor: Doctor, name: str, change: Any, complaint: str) -> None:
    path = doctor({name: editing_lines(change)}, pin_files=True)
    with pytest.raises(DatasetError) as caught:
        read_dataset(open_wheel(path))
    assert re.search(complaint, str(caught.value))


def test_lines_are_cut_where_a_json_parser_would_cut_them(wheel: Wheel) -> None:
    quick = 0
    for name in SINGLE_TURN_SUBSETS:
        for path in _paths(name):
            for line in filter(None, wheel.read(path).decode().split("\n")):
                cut = _cut(line)
                quick += cut is not None
                assert cut is None or cut == _members(line)
                assert {key: json.loads(text) for key, text in _members(line).items()} == json.loads(line)
    assert quick > 6100  # of 6,142: the others hold a mark twice


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "question": [[]], "function": [{"x": 1, "function": 2}]}',
        '{"id": "a", "function": [], "question": [[]]}',
        '{"id":"a","question":[[]],"function":[]}',
        '{ "id": "a", "question": [[]], "function": [] } ',
    ],
)
def test_a_line_that_is_written_otherwise_is_read_all_the_same(line: str) -> None:
    read = _cut(line) or _members(line)
    assert {key: json.loads(text) for key, text in read.items()} == json.loads(line)


@pytest.mark.parametrize("line", ["", "{", '{"id"}', '{"id": "a" "b"}', '{"id": "a", }', "[]", '{"id": }'])
def test_a_line_that_is_no_object_is_refused(line: str) -> None:
    assert _cut(line) is None
    with pytest.raises(ValueError, match=r"expected|Expecting"):
        _members(line)

"""Expected and actual calls beside each other: which lines are marked, and what is shown of a reply that is no call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.reference import reference_calls
from agentcompass_bfcl.report.side_by_side import (
    LONGEST_TEXT,
    MOST_LINES,
    Line,
    readable_calls,
    shown_text,
    side_by_side,
)
from agentcompass_bfcl.task import Mode


def native(*calls: tuple[str, Any]) -> list[dict[str, str]]:
    return [{name: json.dumps(arguments)} for name, arguments in calls]


def sides(dataset: Dataset, sample_id: str, output: Any) -> tuple[list[str], list[str]]:
    """Give both sides as texts, marked lines with a star before them."""
    entry = dataset.entry(sample_id)
    found = side_by_side(entry, output, readable_calls(entry, output, Mode.FC, None))
    return (
        [f"{'*' if line.differs else ''}{line.text}" for line in found.expected],
        [f"{'*' if line.differs else ''}{line.text}" for line in found.actual],
    )


AREA = "simple_python_0"  # calculate_triangle_area(base=10, height=5, unit="units" or left out)


@pytest.mark.parametrize(
    ("arguments", "expected", "actual"),
    [
        ({"base": 10, "height": 5}, [], []),
        ({"base": 10, "height": 6}, ["*  height: 5"], ["*  height: 6"]),
        ({"base": 10}, ["*  height: 5"], []),
        ({"base": 10, "height": 5, "colour": "red"}, [], ['*  colour: "red"']),
    ],
)
def test_the_lines_of_parameters_that_differ_are_marked_on_both_sides(
    arguments: dict[str, Any], expected: list[str], actual: list[str], dataset: Dataset
) -> None:
    left, right = sides(dataset, AREA, native(("calculate_triangle_area", arguments)))
    assert left[0] == right[0] == "calculate_triangle_area"
    assert '  unit: "units" or (left out)' in left
    assert [line for line in left if line.startswith("*")] == expected
    assert [line for line in right if line.startswith("*")] == actual


def test_a_call_of_another_function_is_marked_and_so_is_the_one_that_is_missing(dataset: Dataset) -> None:
    left, right = sides(dataset, AREA, native(("calculate_circle_area", {"base": 10})))
    assert left[0] == "*calculate_triangle_area"
    assert right == ["*calculate_circle_area", "  base: 10"]


def test_where_no_call_fits_every_call_is_marked(dataset: Dataset) -> None:
    left, right = sides(dataset, "irrelevance_0", native(("f", {"x": 1})))
    assert left == []
    assert right == ["*f", "  x: 1"]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (None, []),
        ([], ["(nothing)"]),
        ("I cannot.", ["I cannot."]),
        ([{"f": "{broken"}], ['{"f": "{broken"}']),
        ([{"f": "{}", "g": "{}"}], ['{"f": "{}", "g": "{}"}']),
        ([{"f": "[1]"}], ["*f [1]"]),
        ({"not": "a list"}, ['{"not": "a list"}']),
    ],
)
def test_a_reply_without_calls_that_can_be_read_stands_as_it_came(
    output: Any, shown: list[str], dataset: Dataset
) -> None:
    assert sides(dataset, AREA, output)[1] == shown


def test_right_calls_of_every_python_row_have_no_marked_line(dataset: Dataset) -> None:
    for subset in ("simple_python", "parallel", "multiple", "parallel_multiple"):
        for entry in dataset.rows[subset]:
            output = [{name: arguments} for name, arguments in reference_calls(entry)]
            found = side_by_side(entry, output, readable_calls(entry, output, Mode.FC, None))
            assert not any(line.differs for line in (*found.expected, *found.actual)), entry.id
            assert found.sentences == ()


def test_calls_in_text_are_decoded_where_that_ends_soon(dataset: Dataset, official: Official) -> None:
    entry = dataset.entry(AREA)
    text = "[calculate_triangle_area(base=10, height=6)]"
    calls = readable_calls(entry, text, Mode.PROMPT, official)
    assert calls == [{"calculate_triangle_area": {"base": 10, "height": 6}}]
    assert Line("  height: 6", differs=True) in side_by_side(entry, text, calls).actual
    for left_alone in (f"[f(x={'[' * 101}{']' * 101})]", "[f(x=[0] * 9)]", f"[f(x='{'a' * 2_000}')]", "no call", 7):
        assert readable_calls(entry, left_alone, Mode.PROMPT, official) is None
    assert readable_calls(entry, text, Mode.PROMPT, None) is None
    assert readable_calls(dataset.rows["simple_java"][0], text, Mode.PROMPT, official) is None


def test_long_texts_are_cut_and_what_no_page_can_show_is_replaced() -> None:
    assert shown_text("a" * LONGEST_TEXT) == "a" * LONGEST_TEXT
    assert shown_text("a" * 5_000) == f"{'a' * LONGEST_TEXT}... (5000 characters)"
    assert shown_text("\x00\ud800") == "\ufffd?"


@pytest.mark.parametrize("argument", ["b'x'", "1j", "{(1, 2): 3}", "1 << 60000", "1e999"])
def test_calls_that_no_json_can_hold_are_shown_as_they_came(
    argument: str, dataset: Dataset, official: Official
) -> None:
    text = f"[calculate_triangle_area(base={argument}, height=5)]"
    entry = dataset.entry(AREA)
    assert readable_calls(entry, text, Mode.PROMPT, official) is None
    assert side_by_side(entry, text, None).actual == (Line(text),)


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity"])
def test_native_arguments_without_an_end_are_shown_as_they_came(number: str, dataset: Dataset) -> None:
    output = [{"calculate_triangle_area": f'{{"base": {number}, "height": 5}}'}]
    assert readable_calls(dataset.entry(AREA), output, Mode.FC, None) is None


def test_a_reply_of_very_many_calls_is_cut(dataset: Dataset) -> None:
    output = native(*[("f", {})] * 50_000)
    entry = dataset.entry(AREA)
    found = side_by_side(entry, output, readable_calls(entry, output, Mode.FC, None))
    assert len(found.actual) == MOST_LINES
    assert len(found.sentences) <= MOST_LINES
    raw = side_by_side(entry, ["text"] * 50_000, None)
    assert len(raw.actual) == MOST_LINES + 1
    assert raw.actual[-1].text == "... and more"


def test_nothing_is_called_different_where_only_the_checker_can_tell(dataset: Dataset) -> None:
    for entry in (*dataset.rows["simple_java"], *dataset.rows["simple_javascript"]):
        output = [{name: arguments} for name, arguments in reference_calls(entry)]
        found = side_by_side(entry, output, readable_calls(entry, output, Mode.FC, None))
        assert not any(line.differs for line in (*found.expected, *found.actual)), entry.id

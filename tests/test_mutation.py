"""The mutation tests' own parts: names of changes, their reasons, and the page. The changes take half an hour."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # the suite is a script of the project's folder, and not installed

from benchmarks.mutation import function_of
from benchmarks.mutation_page import BEGIN, END, Module, Survivor, section, summary, with_section
from benchmarks.mutation_reasons import reason_of

PROJECT = Path(__file__).parents[1]
ROOM = 'return "{" in text'
SURVIVORS = (
    Survivor("shard.Shard.parse", "a < b", "a <= b", "The same."),
    Survivor("shard.Shard.parse", "a < b", "a > b", "The same."),
    Survivor("shard.take", ROOM, "return None", None),
)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("agentcompass_bfcl.shard.xǁShardǁparse__mutmut_3", "Shard.parse"),
        ("agentcompass_bfcl.shard.xǁShardǁ__post_init____mutmut_3", "Shard.__post_init__"),
        ("agentcompass_bfcl.shard.x_shard_take__mutmut_12", "shard_take"),
        ("agentcompass_bfcl.draw.x__preset__mutmut_1", "_preset"),
    ],
)
def test_a_change_is_known_by_its_function(name: str, function: str) -> None:
    assert function_of(name) == function


def test_a_reason_is_of_one_change_in_one_function() -> None:
    after = "count = counts.most_common(2)[0][0]"
    assert reason_of("merge._one_of_each", after) is not None
    assert reason_of("merge._one_of_each", f"{after} ") is None
    assert reason_of("gate._one_of_each", after) is None


def test_what_never_ended_was_noticed_too_and_the_last_line_is_the_sum() -> None:
    table = summary([Module("shard", 5, 1, SURVIVORS), Module("draw", 1, 0, ())]).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    assert cells == [
        ["`shard`", "9", "5", "1", "3", "66.7%"],
        ["`draw`", "1", "1", "0", "0", "100.0%"],
        ["all", "10", "6", "1", "3", "70.0%"],
    ]


def test_changes_of_a_line_stand_together_below_their_reason() -> None:
    text = section([Module("shard", 5, 1, SURVIVORS)])
    assert "### `shard.Shard.parse`\n\nThe same.\n\n```diff\n- a < b\n+ a <= b\n+ a > b\n```" in text
    assert f"### `shard.take`\n\nUnexplained.\n\n```diff\n- {ROOM}\n+ return None\n```" in text


def test_the_tables_replace_the_older_ones_and_nothing_else() -> None:
    page = with_section("# Title\n\ntext\n", "old")
    assert page == f"# Title\n\ntext\n\n{BEGIN}\n\nold\n\n{END}\n"
    assert with_section(f"{page}\nafter\n", "new") == f"# Title\n\ntext\n\n{BEGIN}\n\nnew\n\n{END}\nafter\n"


def test_every_module_that_is_changed_and_every_file_of_tests_is_there() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]
    for name in (*settings["only_mutate"], *settings["pytest_add_cli_args_test_selection"]):
        assert (PROJECT / name).is_file()

from __future__ import annotations

import pytest

from agentcompass_bfcl.errors import BfclError, DrawError
from agentcompass_bfcl.subsets import (
    CATEGORIES,
    HALLUCINATION,
    LIVE,
    NON_LIVE,
    SIMPLE_AST,
    SINGLE_TURN_SUBSETS,
    SUBSET_BY_NAME,
    Language,
    Rule,
    category_of,
    reference_subset_totals,
    subset_named,
)

TABLE = [
    ("simple_python", "non_live", Language.PYTHON, Rule.AST, 400),
    ("simple_java", "non_live", Language.JAVA, Rule.AST, 100),
    ("simple_javascript", "non_live", Language.JAVASCRIPT, Rule.AST, 50),
    ("multiple", "non_live", Language.PYTHON, Rule.AST, 200),
    ("parallel", "non_live", Language.PYTHON, Rule.AST, 200),
    ("parallel_multiple", "non_live", Language.PYTHON, Rule.AST, 200),
    ("irrelevance", "hallucination", Language.PYTHON, Rule.IRRELEVANCE, 240),
    ("live_simple", "live", Language.PYTHON, Rule.AST, 258),
    ("live_multiple", "live", Language.PYTHON, Rule.AST, 1053),
    ("live_parallel", "live", Language.PYTHON, Rule.AST, 16),
    ("live_parallel_multiple", "live", Language.PYTHON, Rule.AST, 24),
    ("live_irrelevance", "hallucination", Language.PYTHON, Rule.IRRELEVANCE, 884),
    ("live_relevance", None, Language.PYTHON, Rule.RELEVANCE, 16),
]


@pytest.mark.parametrize(("name", "category", "language", "rule", "rows"), TABLE)
def test_each_subset_has_the_category_language_rule_and_size_of_the_release(
    name: str, category: str | None, language: Language, rule: Rule, rows: int
) -> None:
    subset = subset_named(name)
    assert (subset.name, subset.category, subset.language, subset.rule, subset.rows) == (
        name,
        category,
        language,
        rule,
        rows,
    )
    assert category_of(name) == category


def test_the_table_holds_nothing_else() -> None:
    assert sorted(SINGLE_TURN_SUBSETS) == sorted(row[0] for row in TABLE)
    assert len(set(SINGLE_TURN_SUBSETS)) == 13


def test_reference_totals_are_sorted_and_add_up_to_3641_rows() -> None:
    totals = reference_subset_totals()
    assert list(totals) == sorted(totals)
    assert sum(totals.values()) == 3641


def test_the_three_categories_hold_every_subset_once_but_live_relevance_which_has_none() -> None:
    assert CATEGORIES == ("non_live", "live", "hallucination")
    members = [*NON_LIVE, *LIVE, *HALLUCINATION]
    assert sorted(members) == sorted(set(SINGLE_TURN_SUBSETS) - {"live_relevance"})
    assert category_of("live_relevance") is None


def test_the_simple_group_is_the_three_languages_of_one_kind_of_question() -> None:
    assert SIMPLE_AST == ("simple_python", "simple_java", "simple_javascript")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("irrelevance", "non_live"),
        ("multiple", "non_live"),
        ("live_irrelevance", "live"),
        ("live_relevance", "live"),
        ("live_simple", "live"),
    ],
)
def test_the_official_result_folder_goes_by_name_and_not_by_category(name: str, folder: str) -> None:
    assert subset_named(name).group == folder


def test_an_unknown_subset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DrawError, match=r"unknown subset 'chatable'; known: .*live_simple.*simple_python") as refusal:
        category_of("chatable")
    assert isinstance(refusal.value, BfclError)


def test_the_table_cannot_be_altered() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        SUBSET_BY_NAME["irrelevance"] = subset_named("multiple")  # type: ignore[index]  # that is the point
    with pytest.raises(AttributeError):
        subset_named("irrelevance").rows = 1  # type: ignore[misc]  # that is the point

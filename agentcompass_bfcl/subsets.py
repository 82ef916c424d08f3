"""The table of BFCL v4 single-turn subsets: the one place that knows a subset's category, language, rule and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from agentcompass_bfcl.errors import DrawError


class Rule(StrEnum):
    """How the official evaluator judges a subset's rows."""

    AST = "ast"
    IRRELEVANCE = "irrelevance"
    RELEVANCE = "relevance"


class Language(StrEnum):
    """The language a subset's functions are written in; values are upstream's ``Language`` values."""

    PYTHON = "python"
    JAVA = "java"
    JAVASCRIPT = "javascript"


@dataclass(frozen=True, slots=True)
class Subset:
    """One row of the table. ``category`` is None where score.py counts the subset in no category."""

    name: str
    category: str | None
    language: Language
    rule: Rule
    rows: int

    @property
    def group(self) -> str:
        """Name the folder the official result tree keeps this subset in."""
        return "live" if self.name.startswith("live_") else "non_live"


_PY, _AST = Language.PYTHON, Rule.AST

SUBSETS: tuple[Subset, ...] = (
    Subset("simple_python", "non_live", _PY, _AST, 400),
    Subset("simple_java", "non_live", Language.JAVA, _AST, 100),
    Subset("simple_javascript", "non_live", Language.JAVASCRIPT, _AST, 50),
    Subset("multiple", "non_live", _PY, _AST, 200),
    Subset("parallel", "non_live", _PY, _AST, 200),
    Subset("parallel_multiple", "non_live", _PY, _AST, 200),
    Subset("live_simple", "live", _PY, _AST, 258),
    Subset("live_multiple", "live", _PY, _AST, 1053),
    Subset("live_parallel", "live", _PY, _AST, 16),
    Subset("live_parallel_multiple", "live", _PY, _AST, 24),
    Subset("irrelevance", "hallucination", _PY, Rule.IRRELEVANCE, 240),
    Subset("live_irrelevance", "hallucination", _PY, Rule.IRRELEVANCE, 884),
    Subset("live_relevance", None, _PY, Rule.RELEVANCE, 16),
)

SUBSET_BY_NAME: Mapping[str, Subset] = MappingProxyType({subset.name: subset for subset in SUBSETS})

SINGLE_TURN_SUBSETS: tuple[str, ...] = tuple(subset.name for subset in SUBSETS)
CATEGORIES: tuple[str, ...] = tuple(dict.fromkeys(subset.category for subset in SUBSETS if subset.category))


def _in_category(category: str) -> tuple[str, ...]:
    return tuple(subset.name for subset in SUBSETS if subset.category == category)


NON_LIVE: tuple[str, ...] = _in_category("non_live")
LIVE: tuple[str, ...] = _in_category("live")
HALLUCINATION: tuple[str, ...] = _in_category("hallucination")
SIMPLE_AST: tuple[str, ...] = tuple(name for name in NON_LIVE if name.startswith("simple_"))


def subset_named(name: str) -> Subset:
    """Look up a subset, or raise ``DrawError`` that lists the known names."""
    try:
        return SUBSET_BY_NAME[name]
    except KeyError:
        raise DrawError(f"unknown subset {name!r}; known: {', '.join(sorted(SUBSET_BY_NAME))}") from None


def category_of(subset: str) -> str | None:
    """Name the category score.py counts a subset in.

    None for ``live_relevance``: it is scored row by row and belongs to no category, so a selection by category
    leaves it out. Raises ``DrawError`` for a name that is no subset.
    """
    return subset_named(subset).category


def reference_subset_totals() -> dict[str, int]:
    """Count the rows of every subset in the pinned release, sorted by name (3,641 rows in all)."""
    return {subset.name: subset.rows for subset in sorted(SUBSETS, key=lambda subset: subset.name)}

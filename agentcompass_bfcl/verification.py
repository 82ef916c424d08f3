"""Does a stored result agree with itself? Whoever decides something with it asks first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.errors import ResultError
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.rows import tally_rows
from agentcompass_bfcl.tally import Tally


def verify(document: ResultDocument) -> None:
    """Check that a result's tallies are those of its rows, and its counts and scores those of its tallies.

    Raises ``ResultError`` naming the first that is not.
    """
    held = document.tallies()
    # A result that was made from tallies alone has no rows to check them against.
    tallies = tally_rows(document.rows(), any_of=counts_once(document)) if document.details.rows else held
    if tallies != held:
        wrong = next(name for name in sorted({*tallies, *held}) if tallies.get(name) != held.get(name))
        raise ResultError(f"subset.{wrong}: the tally is not that of the rows; was it edited?")
    try:
        scores = aggregate(tallies, OnError(str(document.extra.get("on_error"))))
    except ValueError:
        raise ResultError(f"on_error is {document.extra.get('on_error')!r}, which is no error policy") from None
    evaluated = sum(tally.n for tally in tallies.values())
    errors = sum(tally.errors for tally in tallies.values())
    shown = document.details
    expected: list[tuple[str, Any, Any]] = [
        ("metrics.overall_accuracy", document.metrics.get("overall_accuracy"), scores.overall_accuracy),
        (
            "metrics.normalized_single_turn_score",
            document.metrics.get("normalized_single_turn_score"),
            scores.normalized_single_turn_score,
        ),
        ("details.categories", shown.categories, dict(scores.category_scores)),
        (
            "details.subsets",
            {name: (found.hits, found.n, found.errors, found.accuracy) for name, found in shown.subsets.items()},
            {name: (*_counts(tally), scores.subset_scores.get(name)) for name, tally in tallies.items()},
        ),
    ]
    if not evaluated:  # then there are no scores, which the failing policy would call 0
        nothing: list[Any] = [None, None, {}, {name: (*_counts(tally), None) for name, tally in tallies.items()}]
        expected = [(place, got, none) for (place, got, _), none in zip(expected, nothing, strict=True)]
    expected += [
        ("metrics.samples", document.metrics.get("samples"), evaluated + errors),
        (
            "counts",
            document.counts.model_dump(),
            {"total": evaluated + errors, "evaluated": evaluated, "error": errors},
        ),
    ]
    for place, got, value in expected:
        if got != value:
            raise ResultError(f"{place} is {got}, and the rows give {value}; was it edited?")


def _counts(tally: Tally) -> tuple[int, int, int]:
    return tally.hits, tally.n, tally.errors


def counts_once(document: ResultDocument) -> bool:
    """Tell whether a row counts once however many attempts there were, as with the host's strategy ``pass``."""
    attempts = document.extra.get("attempts")
    return isinstance(attempts, Mapping) and attempts.get("strategy") == "pass"

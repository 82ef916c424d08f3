"""Does a stored result agree with itself? Whoever decides something with it asks first."""

from __future__ import annotations

from collections.abc import Mapping

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.errors import ResultError
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.rows import tally_rows


def verify(document: ResultDocument) -> None:
    """Check that a result's tallies, counts and scores are those of its rows. Raises ``ResultError`` naming one."""
    any_of = counts_once(document)
    tallies = tally_rows(document.rows(), any_of=any_of)
    if tallies != document.tallies():
        wrong = next(
            name
            for name in sorted({*tallies, *document.tallies()})
            if tallies.get(name) != document.tallies().get(name)
        )
        raise ResultError(f"subset.{wrong}: the tally is not that of the rows; was it edited?")
    try:
        scores = aggregate(tallies, OnError(str(document.extra.get("on_error"))))
    except ValueError:
        raise ResultError(f"on_error is {document.extra.get('on_error')!r}, which is no error policy") from None
    evaluated = sum(tally.n for tally in tallies.values())
    errors = sum(tally.errors for tally in tallies.values())
    expected = {
        "metrics.overall_accuracy": scores.overall_accuracy if evaluated else None,
        "metrics.normalized_single_turn_score": scores.normalized_single_turn_score if evaluated else None,
        "metrics.samples": evaluated + errors,
        "counts.total": evaluated + errors,
        "counts.evaluated": evaluated,
        "counts.error": errors,
    }
    for place, value in expected.items():
        group, name = place.split(".")
        held = document.metrics.get(name) if group == "metrics" else getattr(document.counts, name)
        if held != value:
            raise ResultError(f"{place} is {held}, and the rows give {value}; was it edited?")


def counts_once(document: ResultDocument) -> bool:
    """Tell whether a row counts once however many attempts there were, as with the host's strategy ``pass``."""
    attempts = document.extra.get("attempts")
    return isinstance(attempts, Mapping) and attempts.get("strategy") == "pass"

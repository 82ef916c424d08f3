"""Counting: integers per subset, which add up exactly whatever way the rows were cut into shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentcompass_bfcl.errors import TallyError
from agentcompass_bfcl.subsets import SUBSET_BY_NAME

_FIELDS = ("hits", "n", "errors")


@dataclass(frozen=True, slots=True)
class Tally:
    """``hits`` of ``n`` scored samples, and ``errors``: drawn samples that have no verdict.

    Raises ``TallyError`` for negative or impossible counts.
    """

    hits: int = 0
    n: int = 0
    errors: int = 0

    def __post_init__(self) -> None:
        if any(type(value) is not int for value in (self.hits, self.n, self.errors)):
            raise TallyError(f"a tally counts in integers: hits={self.hits!r} n={self.n!r} errors={self.errors!r}")
        if not 0 <= self.hits <= self.n or self.errors < 0:
            raise TallyError(f"impossible tally: hits={self.hits} n={self.n} errors={self.errors}")

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.hits + other.hits, self.n + other.n, self.errors + other.errors)

    @property
    def drawn(self) -> int:
        """Count all samples, scored or not."""
        return self.n + self.errors


class Outcome(StrEnum):
    """What one attempt contributes to its subset's tally."""

    HIT = "hit"
    MISS = "miss"
    ERROR = "error"


def union(*parts: Mapping[str, Tally]) -> dict[str, Tally]:
    """Add up tallies by subset, sorted by name. That the parts hold different rows is the caller's to know."""
    summed: dict[str, Tally] = {}
    for part in parts:
        for subset, tally in part.items():
            summed[subset] = summed.get(subset, Tally()) + tally
    return dict(sorted(summed.items()))


def count(outcomes: Iterable[tuple[str, Outcome]]) -> dict[str, Tally]:
    """Count ``(subset, outcome)`` pairs, sorted by subset."""
    counts = Counter(outcomes)
    return {
        subset: Tally(
            hits=counts[subset, Outcome.HIT],
            n=counts[subset, Outcome.HIT] + counts[subset, Outcome.MISS],
            errors=counts[subset, Outcome.ERROR],
        )
        for subset in sorted({subset for subset, _ in counts})
    }


def tallies_to_metrics(tallies: Mapping[str, Tally]) -> dict[str, int]:
    """Flatten to ``subset.<name>.hits``, ``subset.<name>.n`` and ``subset.<name>.errors``."""
    return {f"subset.{subset}.{field}": getattr(tally, field) for subset, tally in tallies.items() for field in _FIELDS}


def tallies_from_metrics(metrics: Mapping[str, object]) -> dict[str, Tally] | None:
    """Read tallies back from flat metrics.

    None when there are none, or a subset has one of ``hits`` and ``n`` without the other: such metrics cannot be
    aggregated, and zeros would be a score. Raises ``TallyError`` for counts that contradict each other.
    """
    fields: dict[str, dict[str, int]] = {}
    for key, value in metrics.items():
        prefix, _, rest = key.partition(".")
        subset, _, field = rest.rpartition(".")
        if prefix == "subset" and field in _FIELDS and subset in SUBSET_BY_NAME:
            fields.setdefault(subset, {})[field] = _whole(key, value)
    if not fields or any("hits" not in found or "n" not in found for found in fields.values()):
        return None
    return {
        subset: Tally(found["hits"], found["n"], found.get("errors", 0)) for subset, found in sorted(fields.items())
    }


def _whole(key: str, value: object) -> int:
    # Metric stores that only know floats give 62.0 back for 62.
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer():
        raise TallyError(f"{key} is {value!r}, expected a whole number")
    return int(value)


def attempt_payload(detail: Mapping[str, Any], attempt: int) -> Mapping[str, Any] | None:
    """Find one persisted attempt (1-based) of a task's detail; None when it was never run.

    The one reader of persisted attempts; it changes nothing it is given. Raises ``TallyError`` when the detail holds
    something else than a mapping there.
    """
    attempts = detail.get("attempts")
    payload = attempts.get(str(attempt)) if isinstance(attempts, Mapping) else None
    if payload is None:
        return None
    if not isinstance(payload, Mapping):
        raise TallyError(
            f"task {detail.get('task_id')!r}: attempt {attempt} is {type(payload).__name__}, not a mapping"
        )
    return payload


def attempt_outcome(payload: Mapping[str, Any] | None) -> Outcome:
    """Read an attempt's outcome from what the host persists unredacted: its ``metrics`` and ``status``.

    Only a completed attempt with a boolean ``correct`` has a verdict; a host that marks a failed attempt and keeps a
    ``correct`` beside it does not turn an error into an answer.
    """
    if payload is None or payload.get("status") != "completed":
        return Outcome.ERROR
    metrics = payload.get("metrics")
    correct = metrics.get("correct") if isinstance(metrics, Mapping) else None
    if not isinstance(correct, bool):
        return Outcome.ERROR
    return Outcome.HIT if correct else Outcome.MISS

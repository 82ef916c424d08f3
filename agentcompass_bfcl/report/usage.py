"""How long replies took and how many tokens they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentcompass_bfcl.run_dir import Attempt


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The median, the value that 95 % do not exceed, and the sum."""

    median: float
    p95: float
    total: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Latencies in milliseconds and token counts of a run's replies; None where the endpoint said nothing."""

    replies: int
    latency: Quantiles | None
    prompt: Quantiles | None
    completion: Quantiles | None


def usage(attempts: Iterable[Attempt]) -> Usage:
    """Sum up the replies that came; a failed request has neither tokens nor a latency of its own."""
    records = [attempt.record for attempt in attempts if attempt.record is not None]
    return Usage(
        replies=len(records),
        latency=_quantiles([record.latency_ms for record in records if record.latency_ms is not None]),
        prompt=_quantiles([record.prompt_tokens for record in records if record.prompt_tokens is not None]),
        completion=_quantiles([record.completion_tokens for record in records if record.completion_tokens is not None]),
    )


def _quantiles(values: Sequence[float]) -> Quantiles | None:
    if not values:
        return None
    ordered = sorted(values)
    return Quantiles(_at(ordered, 50), _at(ordered, 95), sum(ordered))


def _at(ordered: Sequence[float], percent: int) -> float:
    """Give the smallest value that so many percent do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]

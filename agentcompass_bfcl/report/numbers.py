"""Numbers as every report shows them: two decimals, and a dash for what is undefined, which is never 0."""

from __future__ import annotations

from agentcompass_bfcl.statistics import Estimate

UNDEFINED = "-"


def number(value: float | None) -> str:
    """Write a percentage or a number of points."""
    return UNDEFINED if value is None else f"{value:.2f}"


def interval(ends: tuple[float, float] | None) -> str:
    """Write an interval."""
    return UNDEFINED if ends is None else "{:.2f} to {:.2f}".format(*ends)


def error_bars(estimate: Estimate | None) -> tuple[str, str, str]:
    """Write a score's standard error, its interval and its clustered standard error."""
    if estimate is None:
        return UNDEFINED, UNDEFINED, UNDEFINED
    return number(estimate.standard_error), interval(estimate.interval), number(estimate.clustered_standard_error)

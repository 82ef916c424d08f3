"""The speed suite's figures as Markdown: absolute ones for orientation, ratios of one run to compare by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tabulate import tabulate

from benchmarks.speed_commands import PARTS_REFERENCE, REFERENCE, ROWS
from benchmarks.speed_measure import Usage
from benchmarks.speed_runs import Run, ideal_seconds

BEGIN, END = "<!-- begin: written by benchmarks.speed -->", "<!-- end: written by benchmarks.speed -->"
_PLAIN = "`openai_chat`, 1 shard"
_ABSENT = "-"


def instant_table(runs: Sequence[Run], taken: Mapping[str, Usage]) -> str:
    """Write the runs against an instant endpoint.

    "times plain" is the whole command's samples a second over those of plain `openai_chat` in one process at the same
    size. "growth" is processor time a sample over the same row's at the smallest size; start-up is in both, so it falls
    where start-up dominates. CPU time is that of the command with all its processes, the endpoint's left out.
    """
    rows, smallest, first = [], {}, min((run.samples for run in runs), default=0)
    for run in runs:
        usage = taken.get(run.key)
        if usage is None:
            continue
        plain = next(
            (taken[o.key] for o in runs if (o.name, o.samples) == (_PLAIN, run.samples) and o.key in taken), None
        )
        cost = usage.cpu / run.samples * 1000
        if run.samples == first:
            smallest[run.name] = cost
        speed = [f"{run.samples / usage.wall:.1f}", _ratio(plain.wall if plain else None, usage.wall)]
        costs = [f"{cost:.0f}", _ratio(cost, smallest.get(run.name))]
        times = [_seconds(usage.start_up), _seconds(usage.requests)]
        rows.append([run.samples, run.name, *speed, *costs, *times, f"{usage.peak_mb:.0f}"])
    headers = ["samples", "what", "samples/s", "times plain", "CPU ms/sample", "growth", "start-up s", "requests s"]
    return _markdown([*headers, "peak MB"], rows)


def slow_table(runs: Sequence[Run], taken: Mapping[str, Usage]) -> str:
    """Write the runs against an endpoint with latency, as times of the ideal."""
    rows = []
    for run in runs:
        usage = taken.get(run.key)
        if usage is not None:
            ideal = ideal_seconds(run.samples)
            requests = [_seconds(usage.requests), _ratio(usage.requests, ideal)]
            whole = [f"{usage.wall:.1f}", _ratio(usage.wall, ideal), f"{usage.cpu / run.samples * 1000:.0f}"]
            rows.append([run.name, _seconds(usage.start_up), *requests, *whole])
    headers = ["what", "start-up s", "first request to last reply s", "x ideal", "whole process s", "x ideal"]
    return _markdown([*headers, "CPU ms/sample"], rows)


def commands_table(taken: Mapping[str, Usage]) -> str:
    """Write the commands, as times of starting Python at all."""
    reference = taken.get(REFERENCE)
    rows = []
    for name, usage in taken.items():
        times = [f"{usage.wall:.2f}", f"{usage.cpu:.2f}", _ratio(usage.cpu, reference.cpu if reference else None)]
        rows.append([name, *times, f"{usage.peak_mb:.0f}"])
    return _markdown(["process", "wall s", "CPU s", "x Python's start", "peak MB"], rows)


def parts_table(parts: Mapping[str, float], rows_judged: int = ROWS) -> str:
    """Write the parts measured in one process, as times of the reference."""
    reference = parts.get(PARTS_REFERENCE)
    rows = [[name, f"{s:.3f}", f"{s / rows_judged * 1e6:.0f}", _ratio(s, reference)] for name, s in parts.items()]
    return _markdown(["in one process", "CPU s", "µs/row", "x reference"], rows)


def replace_section(page: str, section: str) -> str:
    """Put a section between the two marks of a page; at its end, with the marks, where there are none."""
    marked = f"{BEGIN}\n\n{section.strip()}\n\n{END}\n"
    head, begin, rest = page.partition(BEGIN)
    if not begin:
        return f"{page.rstrip()}\n\n{marked}" if page.strip() else marked
    return head + marked + rest.partition(END)[2].lstrip("\n")


def _markdown(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)


def _ratio(value: float | None, reference: float | None) -> str:
    return _ABSENT if value is None or not reference else f"{value / reference:.2f}"


def _seconds(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.1f}"

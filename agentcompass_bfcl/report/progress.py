"""The provisional table of runs that are going on."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from agentcompass_bfcl.tally import Tally
from agentcompass_bfcl.uncertainty import wilson
from agentcompass_bfcl.watching import Watched, tallies, totals, warnings

_NONE = "-"


def render_progress(watched: Sequence[Watched]) -> str:
    """Write counts, accuracy and a 95 % interval for each subset and for all, then what looks wrong.

    Accuracies are of the rows that have a verdict, as independent rows: a look ahead, and not the score.
    """
    counted, expected = tallies(watched), totals(watched)
    rows = [_row(name, counted.get(name, Tally()), total) for name, total in expected.items()]
    together = sum(counted.values(), Tally())
    rows.append(_row("all", together, sum(expected.values())))
    headers = ["provisional", "done", "of", "hits", "errors", "accuracy %", "95 % interval"]
    alignment = ("left", *["right"] * 6)
    table = tabulate(rows, headers=headers, tablefmt="simple", colalign=alignment, disable_numparse=True)
    shards = [
        f"shard {run.request.settings.shard}: {len(run.finished)} of {sum(run.expected.values())}" for run in watched
    ]
    lines = [
        table,
        "",
        ", ".join(shards) if len(watched) > 1 else "",
        *(f"warning: {text}" for text in warnings(watched).values()),
    ]
    return "\n".join(line for number, line in enumerate(lines) if line or number == 1).rstrip() + "\n"


def _row(name: str, tally: Tally, total: int) -> list[str]:
    cells = [name, str(tally.drawn), str(total), str(tally.hits), str(tally.errors)]
    if not tally.n:
        return [*cells, _NONE, _NONE]
    low, high = wilson(tally.hits / tally.n, tally.n)
    return [*cells, f"{tally.hits / tally.n * 100:.2f}", f"{low * 100:.2f} to {high * 100:.2f}"]

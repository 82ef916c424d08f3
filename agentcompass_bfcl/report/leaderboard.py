"""The official leaderboard's columns as text."""

from __future__ import annotations

from collections.abc import Mapping

from tabulate import tabulate

from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.leaderboard import NOT_COMPUTABLE, OVERALL, leaderboard
from agentcompass_bfcl.tally import Tally

_MOST_NAMED = 4  # incomplete subsets


def render_leaderboard(tallies: Mapping[str, Tally], on_error: OnError = OnError.FAIL) -> str:
    """Write the columns of the official overall table, ending in a newline; a dash where a part is absent."""
    board = leaderboard(tallies, on_error)
    rows = [
        [name, "-" if value is None else f"{value:.2f}"]
        for name, value in board.overall.items()
        if not isinstance(value, str)
    ]
    headers = ["official leaderboard columns", "percent"]
    table = tabulate(rows, headers=headers, tablefmt="simple", colalign=("left", "right"), disable_numparse=True)
    return f"{table}\n{OVERALL}: {NOT_COMPUTABLE}\n{_caveat(board.incomplete)}"


def _caveat(incomplete: tuple[str, ...]) -> str:
    if not incomplete:
        return ""
    names = ", ".join(incomplete) if len(incomplete) <= _MOST_NAMED else f"{len(incomplete)} subsets"
    return f"rows of {names} are missing: columns that need them are not comparable with published ones\n"

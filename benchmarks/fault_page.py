"""The fault campaign's table, and its place in a Markdown page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentcompass_bfcl.reference import UNPASSABLE

BEGIN, END = "<!-- faults:begin -->", "<!-- faults:end -->"

INTRODUCTION = """# What a number is worth when things go wrong

A score is about the model, or it is not given. What is promised, and measured below:

- A failed request is an error of its row: never a hit, never an abstention. Errors are counted beside the score.
- A row counts as right only if a reply came that the official rule accepts. Rows that were not struck stay right.
- right + wrong + errors = the rows of the draw, in every result.
- An endpoint that cannot serve any row ends the run at once, with exit code 1, a reason and no score. What was scored
  stays, and the same command with `--reuse` asks only for the rest.
- Nothing waits longer than the limits say: `--timeout` for a request, `--retries` and `--retry-seconds` for all its
  tries. A server's `Retry-After` is kept in full where it fits into these, and the row is an error where it does not.
- The API key is in no file and in no output, also when the server repeats it in an error.
"""

SECTION = "## Faults of the endpoint"


@dataclass(frozen=True, slots=True)
class Ran:
    """One command under one fault. ``counts`` are rows right, wrong and without a verdict; None without a result.

    ``struck`` is how many rows the fault struck, None for all; ``code`` is None for a run that had to be killed.
    """

    title: str
    sees: str
    code: int | None
    struck: int | None
    counts: tuple[int, int, int] | None
    seconds: float
    complaints: tuple[str, ...]

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Ran:
        """Read one back from what JSON made of it."""
        counts = fields["counts"]
        return cls(
            **{
                **fields,
                "counts": None if counts is None else tuple(counts),
                "complaints": tuple(fields["complaints"]),
            }
        )

    def line(self) -> str:
        """Say in a line how it went."""
        rows = "no result" if self.counts is None else "{} right, {} wrong, {} errors".format(*self.counts)
        broken = "".join(f"\n    BROKEN: {text}" for text in self.complaints)
        return f"exit {self.code}, {rows}, {self.seconds:.0f} s; {self.sees}{broken}"


def render(rows: Sequence[Ran]) -> str:
    """Write the table in Markdown."""
    headers = ["fault", "struck", "what the user sees", "exit", "right", "wrong", "errors", "seconds"]
    lines = [headers, ["---"] * len(headers), *(_cells(ran) for ran in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_section(page: Path, rows: Sequence[Ran], draw: str, drawn: Sequence[str]) -> None:
    """Put the table between its markers; a page, or a section, that is not there is begun. ``drawn`` are row ids."""
    before = page.read_text(encoding="utf-8") if page.is_file() else INTRODUCTION
    if BEGIN not in before:
        before = f"{before.rstrip()}\n\n{SECTION}\n\n{BEGIN}\n{END}\n"
    head, _, rest = before.partition(BEGIN)
    tail = rest.partition(END)[2]
    page.write_text(f"{head}{BEGIN}\n{_text(rows, draw, drawn)}\n{END}{tail}", encoding="utf-8")


def _text(rows: Sequence[Ran], draw: str, drawn: Sequence[str]) -> str:
    broken = sum(bool(ran.complaints) for ran in rows)
    kept = "Every rule was kept in every run." if not broken else f"In {broken} runs a rule was broken."
    wrong = "".join(
        f"\nOne row is wrong in every run that judges it, {row}: {UNPASSABLE[row]}.\n"
        for row in drawn
        if row in UNPASSABLE
    )
    return (
        f"`python -m benchmarks.faults --draw {draw}` runs the real command on {len(drawn)} rows, 8 at a time,\n"
        "against an endpoint that answers from the reference answers but for the rows that are struck; with one\n"
        "retry, 4 s for a request where some are kept waiting. `benchmarks/fault_kinds.py` holds the rule of each\n"
        f"kind, row by row. {kept}\n{wrong}\n{render(rows)}\n"
    )


def _cells(ran: Ran) -> list[str]:
    counts = ("-", "-", "-") if ran.counts is None else tuple(str(count) for count in ran.counts)
    struck, code = "all" if ran.struck is None else str(ran.struck), "killed" if ran.code is None else str(ran.code)
    broken = "".join(f" **BROKEN: {text}**" for text in ran.complaints)
    cells = [ran.title, struck, f"{ran.sees}{broken}", code, *counts, f"{ran.seconds:.0f}"]
    return [cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells]

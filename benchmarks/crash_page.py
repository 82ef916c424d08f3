"""The crash campaign's tables, and their place in a Markdown page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

BEGIN, END = "<!-- crashes:begin -->", "<!-- crashes:end -->"
SECTION = "## Crashes"
_TITLE = "# What a number is worth when things go wrong"
_PHASES = {
    "start-up": "before the first row was stored",
    "asking": "while rows were asked",
    "result": "while the result was written",
    "": "not reached: it had ended",
}


@dataclass(frozen=True, slots=True)
class Struck:
    """What came of one moment. ``again`` is the phase of the second strike, empty without one.

    ``scored`` counts the rows with a verdict on disk after the first strike; ``asked_twice`` the requests for a row
    beyond its first, failed rows included, which ``--reuse`` is to ask again.
    """

    name: str
    shards: int
    signal: str
    target: str
    phase: str
    again: str
    identical: bool
    scored: int
    scored_asked_again: int
    asked_twice: int
    runs: int
    seconds: float
    complaints: tuple[str, ...]

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Struck:
        """Read one back from what JSON made of it."""
        return cls(**{**fields, "complaints": tuple(fields["complaints"])})

    def line(self) -> str:
        """Say in a line how it went."""
        again = f", again: {self.again}" if self.again else ""
        rows = f"{self.scored} scored, {self.scored_asked_again} of them and {self.asked_twice} in all asked again"
        same = "the same" if self.identical else "DIFFERENT"
        broken = "".join(f"\n    BROKEN: {text}" for text in self.complaints)
        where = f"{self.name} {self.signal} {self.target}, {self.phase}{again}"
        return f"{where}: {same}, {rows}, {self.seconds:.0f} s{broken}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a condition. ``code`` and ``says`` are the command's under it; ``then`` what came after it.

    ``title`` and ``shards`` are filled in by whoever asked for it.
    """

    code: int | None
    says: str
    then: str
    complaints: tuple[str, ...] = ()
    title: str = ""
    shards: int = 1

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Outcome:
        """Read one back from what JSON made of it."""
        return cls(**{**fields, "complaints": tuple(fields["complaints"])})

    def line(self) -> str:
        """Say in a line how it went."""
        broken = "".join(f"\n    BROKEN: {text}" for text in self.complaints)
        return f"{self.title} ({self.shards}): exit {self.code}; {self.says}; {self.then}{broken}"


def page_text(struck: Sequence[Struck], outcomes: Sequence[Outcome], draw: str, limit: int) -> str:
    """Write the tables in Markdown, with what they are about."""
    broken = sum(bool(row.complaints) for row in struck) + sum(bool(row.complaints) for row in outcomes)
    kept = "Every rule was kept." if not broken else f"In {broken} cases a rule was broken."
    parts = [
        f"`python -m benchmarks.crashes` kills the real command, {limit} rows of draw {draw}, at moments spread\n"
        "evenly over its life, then gives the same command with `--reuse`. The canonical result must then be that\n"
        "of a run nothing happened to, no row with a verdict on disk may have been asked again, and no process may be\n"
        f"left. Asked twice are only requests whose answer was not stored yet, and those that had failed. {kept}",
        _strikes(struck),
        "\nWhat else may happen to a run; the same command with `--reuse` follows once it is over.\n",
        _conditions(outcomes),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _strikes(struck: Sequence[Struck]) -> str:
    """Group moments by how the run was made, the signal and the phase."""
    headers = ["run", "signal", "struck", "moments", "again in `--reuse`", "identical results"]
    headers += ["rows scored before", "of them asked again", "rows asked twice, at most", "seconds (median)"]
    lines = []
    for shards in (1, 2):
        for signal in ("SIGKILL", "SIGTERM", "SIGINT"):
            for phase, words in _PHASES.items():
                rows = [row for row in struck if row.shards == shards and row.signal == signal and row.phase == phase]
                if rows:
                    lines.append([_way(shards), signal, words, *_numbers(rows)])
    for shards in (1, 2):
        rows = [row for row in struck if row.shards == shards]
        if rows:
            lines.append([_way(shards), "all", "", *_numbers(rows)])
    return _table(headers, lines)


def _numbers(rows: Sequence[Struck]) -> list[str]:
    return [
        str(len(rows)),
        str(sum(bool(row.again) for row in rows)),
        str(sum(row.identical for row in rows)),
        str(sum(row.scored for row in rows)),
        str(sum(row.scored_asked_again for row in rows)),
        str(max(row.asked_twice for row in rows)),
        f"{median(row.seconds for row in rows):.0f}",
    ]


def _conditions(outcomes: Sequence[Outcome]) -> str:
    headers = ["condition", "run", "exit", "what the user sees", "afterwards"]
    lines = [
        [
            outcome.title,
            _way(outcome.shards),
            "-" if outcome.code is None else str(outcome.code),
            _escaped(outcome.says),
            "; ".join([outcome.then, *(f"**BROKEN: {_escaped(text)}**" for text in outcome.complaints)]),
        ]
        for outcome in sorted(outcomes, key=lambda outcome: (outcome.title, outcome.shards))
    ]
    return _table(headers, lines)


def _way(shards: int) -> str:
    return "one process" if shards == 1 else f"{shards} shards"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _table(headers: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    return "\n".join(f"| {' | '.join(line)} |" for line in (headers, ["---"] * len(headers), *lines))


def write_section(page: Path, struck: Sequence[Struck], outcomes: Sequence[Outcome], draw: str, limit: int) -> None:
    """Put the tables between their markers; a page, or a section, that is not there is begun."""
    before = page.read_text(encoding="utf-8") if page.is_file() else f"{_TITLE}\n"
    if BEGIN not in before:
        before = f"{before.rstrip()}\n\n{SECTION}\n\n{BEGIN}\n{END}\n"
    head, _, rest = before.partition(BEGIN)
    tail = rest.partition(END)[2]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"{head}{BEGIN}\n{page_text(struck, outcomes, draw, limit)}{END}{tail}", encoding="utf-8")

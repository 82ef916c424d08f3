"""The tables of the mutation tests, and their place in a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tabulate import tabulate

BEGIN, END = "<!-- mutation:begin -->", "<!-- mutation:end -->"


@dataclass(frozen=True, slots=True)
class Survivor:
    """A change that no test noticed: where, the lines it took away and put there, and why that is no gap."""

    function: str
    before: str
    after: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Module:
    """How many changes of a module the tests noticed, or never came to an end with, and those they did not notice."""

    name: str
    noticed: int
    never_ended: int
    survivors: tuple[Survivor, ...]

    @property
    def total(self) -> int:
        """Count the module's changes."""
        return self.noticed + self.never_ended + len(self.survivors)


def summary(modules: Sequence[Module]) -> str:
    """Write a line for each module and one for all of them."""
    every = Module(
        "all",
        sum(module.noticed for module in modules),
        sum(module.never_ended for module in modules),
        tuple(survivor for module in modules for survivor in module.survivors),
    )
    rows = [
        [
            module.name if module is every else f"`{module.name}`",
            module.total,
            module.noticed,
            module.never_ended,
            len(module.survivors),
            f"{(module.noticed + module.never_ended) / module.total:.1%}" if module.total else "-",
        ]
        for module in [*modules, every]
    ]
    headers = ["module", "changes", "noticed", "never ended", "not noticed", "share"]
    return tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)


def section(modules: Sequence[Module]) -> str:
    """Write the table, and below it what went unnoticed, by function."""
    survivors = [survivor for module in modules for survivor in module.survivors]
    return "\n\n".join([summary(modules), *map("\n\n".join, _groups(survivors))])


def _groups(survivors: Sequence[Survivor]) -> list[list[str]]:
    return [
        [f"### `{function}`", *(_changes(list(alike), reason) for reason, alike in groupby(found, lambda s: s.reason))]
        for function, found in groupby(survivors, lambda survivor: survivor.function)
    ]


def _changes(alike: Sequence[Survivor], reason: str | None) -> str:
    lines = []
    for before, changed in groupby(alike, lambda survivor: survivor.before):
        lines += [f"- {before}", *(f"+ {survivor.after}" for survivor in changed)]
    return "\n".join([reason or "Unexplained.", "", "```diff", *lines, "```"])


def with_section(page: str, text: str) -> str:
    """Put the tables between the two marks of a page; at its end, with the marks, where there are none."""
    marked = f"{BEGIN}\n\n{text.strip()}\n\n{END}\n"
    head, begin, rest = page.partition(BEGIN)
    if not begin:
        return f"{page.rstrip()}\n\n{marked}".lstrip("\n")
    return head + marked + rest.partition(END)[2].lstrip("\n")

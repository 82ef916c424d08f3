"""Finds the commands the documentation tells a reader to type, and the links it tells him to follow."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = tuple(
    sorted(
        path
        for path in (
            *(ROOT / name for name in ("README.md", "CHANGELOG.md")),
            *(ROOT / "docs").glob("*.md"),
            *(ROOT / "examples").rglob("*.md"),
        )
        if not {".venv", "results"} & set(path.relative_to(ROOT).parts)
    )
)

_FENCE = re.compile(r"^ *```")
_ASSIGNMENT = re.compile(r"^[A-Z][A-Z0-9_]*=")
# Followed by a blank: in printed messages the program's name is followed by a colon.
_COMMAND = re.compile(r"^(agentcompass-bfcl|agentcompass|make|pip|python|sh|mkdocs|sbatch) +\S")
_YAML_STEP = re.compile(r"^(- )?run: ")


@dataclass(frozen=True, slots=True)
class Command:
    """One command line: where it stands, its words, the variables before it, and the file its output goes to."""

    place: str
    text: str
    words: tuple[str, ...]
    environ: Mapping[str, str]
    to_file: str | None


def commands(page: Path) -> Iterator[Command]:
    """Read the commands of fenced blocks, and of inline code, in the order of the page."""
    fenced, carried = False, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        place = f"{page.relative_to(ROOT)}:{number}"
        if not fenced:
            found = (_command(code, place) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", line))
            yield from (command for command in found if command is not None)
            continue
        carried += line.strip()
        if carried.endswith("\\"):
            carried = carried[:-1]
            continue
        command = _command(carried, place)
        carried = ""
        if command is not None:
            yield command


def _command(text: str, place: str) -> Command | None:
    text = _YAML_STEP.sub("", text.removeprefix("$ ")).strip()
    environ: dict[str, str] = {}
    rest = text
    while _ASSIGNMENT.match(rest):
        first, _, rest = rest.partition(" ")
        name, _, environ[name] = first.partition("=")
    if not _COMMAND.match(rest):
        return None
    words = shlex.split(rest, comments=True)
    to_file = words[words.index(">") + 1] if ">" in words else None
    return Command(place, text, tuple(words[: words.index(">")] if ">" in words else words), environ, to_file)


def filled_in(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Put values for placeholders; several runs that ``RUN_DIR...`` stands for become one."""
    return [values.get(word.removesuffix("..."), word) for word in words]


def shown_outputs(page: Path) -> dict[str, list[str]]:
    """Give the lines each ``$ command`` of a page is said to print; ``...`` stands for lines left out."""
    shown: dict[str, list[str]] = {}
    for block in re.findall(r"^```\n(\$ .*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
        first, *lines = block.splitlines()
        shown[first.removeprefix("$ ")] = [line for line in lines if line not in ("", "...")]
    return shown


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Read the targets of a page's links, with the line each stands in; code is no link."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                yield number, target


def anchors(page: Path) -> set[str]:
    """Give the anchors of a page's headings as code hosts and mkdocs make them; they agree on plain headings."""
    fenced, found = False, set()
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (heading := re.match(r"#+ +(.*)", line)):
            plain = re.sub(r"[^\w\- ]", "", heading[1]).strip().lower()
            found.add(re.sub(r"[ ]+", "-", plain))
    return found

"""Changes made to the code on purpose, one at a time: does a test notice each?

    make mutation                                       about half an hour on two processors
    python -m benchmarks.mutation --write PAGE.md       the same, and put the tables into a page

mutmut makes the changes and runs the tests, both as ``[tool.mutmut]`` in pyproject.toml says, in a copy below build/.
What it found out stays there, so that a second call goes on where the first was stopped; ``--afresh`` forgets it, and
so it must after a change of the tests. A change that no test noticed must have its reason in ``mutation_reasons``;
one without is listed as unexplained, and the status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutation_page import Module, Survivor, section, summary, with_section
from benchmarks.mutation_reasons import AT_IMPORT, reason_of

PROJECT = Path(__file__).resolve().parents[1]
COPY = PROJECT / "build" / "mutation"
_NOTES = COPY / "mutants" / "agentcompass_bfcl"
_COPIED = ("agentcompass_bfcl", "benchmarks", "tests", "pyproject.toml", "README.md", "LICENSE")
# What mutmut notes about a change: the status of pytest, or one of its own.
_NOTICED, _NOT_NOTICED, _NEVER_ENDED = {1, 3}, {0, 5, 33}, {24, 36, 152, 255, -24}


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one changed line: mutmut's name for it, its note, and None for a note that is not there yet."""

    name: str
    code: int | None


def prepare(*, afresh: bool) -> None:
    """Bring the copy up to date."""
    if afresh:
        shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        source, target = PROJECT / name, COPY / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)


def mutate(children: int) -> None:
    """Have every change made and tested that has not been."""
    # The same examples of every law each time, so that the same changes survive.
    environment = {**os.environ, "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(children)]
    subprocess.run(command, cwd=COPY, env=environment, check=True)


def found_in(module: str) -> Iterator[Found]:
    """Read what mutmut noted about a module's changes."""
    notes = json.loads((_NOTES / f"{module}.py.meta").read_text("utf-8"))
    for name, code in notes["exit_code_by_key"].items():
        yield Found(name, code)


def changed_lines(name: str) -> tuple[str, str]:
    """Give the lines that a change took away, and those it put there."""
    body = [line for line in _mutmut("show", name).splitlines() if not line.startswith(("---", "+++"))]
    lines = {sign: " ".join(line[1:].strip() for line in body if line[:1] == sign) for sign in "-+"}
    return lines["-"], lines["+"]


def function_of(name: str) -> str:
    """Name the function of a change: of ``agentcompass_bfcl.shard.xǁShardǁparse__mutmut_3``, ``Shard.parse``."""
    mangled = name.rpartition("__mutmut_")[0].rpartition(".")[2].removeprefix("x")
    return mangled.removeprefix("ǁ").replace("ǁ", ".") if "ǁ" in mangled else mangled.removeprefix("_")


def notices(name: str, module: str) -> bool:
    """Make one change in the source itself and tell whether its module's tests fail, in a process of their own."""
    source = COPY / "agentcompass_bfcl" / f"{module}.py"
    original = source.read_bytes()
    try:
        _mutmut("apply", name)
        command = [sys.executable, "-m", "pytest", "-x", "-q", f"tests/test_{module}.py"]
        environment = {**os.environ, "PYTHONPATH": str(COPY), "PYTHONDONTWRITEBYTECODE": "1"}
        tests = subprocess.run(command, cwd=COPY, env=environment, capture_output=True)
        return tests.returncode != 0
    finally:
        source.write_bytes(original)


def examine(module: str) -> Module:
    """Count what became of a module's changes, and look for the reason of each that no test noticed."""
    counts, survivors = Counter[str](), []
    for found in found_in(module):
        function = f"{module}.{function_of(found.name)}"
        if found.code in _NOTICED:
            counts["noticed"] += 1
        elif found.code in _NEVER_ENDED:
            counts["never ended"] += 1
        elif found.code not in _NOT_NOTICED:
            raise SystemExit(f"{found.name}: mutmut notes {found.code}, so its tests were not run to their end")
        elif function in AT_IMPORT and notices(found.name, module):
            counts["noticed"] += 1
        else:
            before, after = changed_lines(found.name)
            survivors.append(Survivor(function, before, after, reason_of(function, after)))
    return Module(module, counts["noticed"], counts["never ended"], tuple(survivors))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it all; the status is 1 when a change went unnoticed without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--afresh", action="store_true", help="forget what was found out before")
    parser.add_argument(
        "--children", type=int, default=os.cpu_count() or 1, help="tests at a time (default: %(default)s)"
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this Markdown page")
    options = parser.parse_args(arguments)
    prepare(afresh=options.afresh)
    # The same examples of every law each time, so that the same changes go unnoticed.
    _mutmut("run", "--max-children", str(options.children), CI="1", PYTHONDONTWRITEBYTECODE="1")
    modules = [examine(path.name.removesuffix(".py.meta")) for path in sorted(_NOTES.glob("*.py.meta"))]
    if options.write:
        old = options.write.read_text("utf-8") if options.write.exists() else ""
        options.write.write_text(with_section(old, section(modules)), "utf-8")
    print(summary(modules))
    unexplained = [survivor for module in modules for survivor in module.survivors if survivor.reason is None]
    for survivor in unexplained:
        print(f"\nunexplained, in {survivor.function}:\n- {survivor.before}\n+ {survivor.after}")
    return 1 if unexplained else 0


def _mutmut(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    quiet = subprocess.PIPE if arguments[0] != "run" else None
    done = subprocess.run(command, cwd=COPY, env={**os.environ, **environment}, stdout=quiet, text=True, check=True)
    return done.stdout or ""


if __name__ == "__main__":
    raise SystemExit(main())

"""How fast is it, and what would be the fastest? The whole speed suite as one command.

From the project's folder: ``python -m benchmarks.speed [--sizes 200,995,3625] [--short] [--write docs/speed.md]``. Runs
against a local endpoint that answers at once, in a process of its own: both harnesses in one process and in shards,
AgentCompass doing nothing, the same requests with no host at all; then against one that takes 200 ms; then every
command around a run. Compare ratios: absolute figures are this machine's. About twenty minutes alone on two slow
cores. What is finished stands in the file of ``--resume`` and is not measured again.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed_commands import ROWS, commands, make_run
from benchmarks.speed_measure import MeasurementError, Usage, endpoint, median
from benchmarks.speed_runs import SLOW_SECONDS, Extent, Run, instant_runs, slow_runs
from benchmarks.speed_table import commands_table, instant_table, parts_table, replace_section, slow_table

type Json = Any  # a parsed JSON value

SIZES = (200, 995, 3625)
SHORT_SAMPLES = 24
_COMMAND_ROUNDS = 3


class Finished:
    """The measurements that are finished, as JSON values by name, in a file where there is to be one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, Json] = json.loads(file.read_text("utf-8")) if file and file.is_file() else {}

    def get(self, key: str, take: Callable[[], Json]) -> Json:
        """Give a finished measurement, or take and keep it."""
        if key not in self:
            self._known[key] = take()
            if self._file:
                written = self._file.with_name(f"{self._file.name}.part")
                written.write_text(json.dumps(self._known, indent=2), "utf-8")
                written.replace(self._file)
        return self._known[key]

    def __contains__(self, key: str) -> bool:
        return key in self._known


def take_runs(runs: Sequence[Run], finished: Finished, scratch: Path, latency: float = 0.0) -> dict[str, Usage]:
    """Measure runs one after the other against one endpoint. One that ends badly is named and left out."""
    taken = {}
    with contextlib.ExitStack() as stack:
        base_url = "" if all(run.key in finished for run in runs) else stack.enter_context(endpoint(latency))
        for run in runs:
            try:
                usage = finished.get(run.key, functools.partial(_take, run, base_url, scratch))
            except MeasurementError as error:
                _say(f"{run.key}: FAILED, {error}")
            else:
                taken[run.key] = Usage(**usage)
    return taken


def _take(run: Run, base_url: str, scratch: Path) -> Json:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        usage = run.take(base_url, Path(folder))
    _say(f"{run.key}: {usage.wall:.1f} s")
    return usage.to_json()


def take_commands(scratch: Path, samples: int) -> Json:
    """Measure the commands in turns, and give the median of the rounds. One that ends badly is named and left out."""
    with endpoint() as base_url:
        ran = make_run(base_url, scratch / "ran", samples)
    takes = commands(ran, scratch)
    usages: dict[str, list[Usage]] = {name: [] for name in takes}
    for _ in range(_COMMAND_ROUNDS):
        for name, take in takes.items():
            try:
                usages[name].append(take())
            except MeasurementError as error:
                _say(f"{name}: FAILED, {error}")
    _say(f"commands, {samples}: {_COMMAND_ROUNDS} rounds")
    return {name: median(taken).to_json() for name, taken in usages.items() if taken}


def take_parts(samples: int) -> Json:
    """Measure the parts in a process that has nothing else to do."""
    said = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed_commands", str(samples)], capture_output=True, text=True, check=True
    )
    return json.loads(said.stdout)


def suite(sizes: Sequence[int], samples: int, finished: Finished, extent: Extent) -> str:
    """Measure and write it as Markdown; ``samples`` is the size where there is only one."""
    instant, latency = instant_runs(sizes, extent), slow_runs(samples, extent)
    with tempfile.TemporaryDirectory(prefix="bfcl-speed-") as made:
        scratch = Path(made)
        at_once = instant_table(instant, take_runs(instant, finished, scratch))
        slowly = slow_table(latency, take_runs(latency, finished, scratch, SLOW_SECONDS))
        around = finished.get(f"commands, {samples}", lambda: take_commands(scratch, samples))
        parts = finished.get(f"parts, {samples}", lambda: take_parts(samples))
    return "\n\n".join(
        [
            f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}.",
            "### An endpoint that answers at once, concurrency 16",
            at_once,
            f"### An endpoint that takes {SLOW_SECONDS * 1000:.0f} ms, {samples} samples, concurrency 32",
            slowly,
            f"### Commands around a run of {samples} samples",
            commands_table({name: Usage(**usage) for name, usage in around.items()}),
            parts_table(parts, samples),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; write into a page where one is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="samples, the smallest first")
    parser.add_argument("--short", action="store_true", help="a few samples each: does the suite work?")
    parser.add_argument("--everything", action="store_true", help="every run at every size: an hour more")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="JSON of finished measurements, read and added to")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables between the marks of this page")
    given = parser.parse_args(arguments)
    extent = Extent.SHORT if given.short else Extent.EVERYTHING if given.everything else Extent.USUAL
    sizes = (SHORT_SAMPLES,) if given.short else tuple(sorted(int(size) for size in given.sizes.split(",")))
    section = suite(sizes, SHORT_SAMPLES if given.short else ROWS, Finished(given.resume), extent)
    print(section)
    if given.write:
        page = given.write.read_text("utf-8") if given.write.is_file() else ""
        given.write.write_text(replace_section(page, section), "utf-8")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

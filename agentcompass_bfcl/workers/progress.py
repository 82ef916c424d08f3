"""How far the shards are, read from their directories as they grow."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from agentcompass_bfcl.workers.plan import ShardRun

_FINISHED = ("normal", "error", "fatal")
_SECONDS_APART = 5.0


def rows_done(run_dir: Path | None) -> int:
    """Count the rows a run has finished so far; a directory that is not there yet has none."""
    return 0 if run_dir is None else sum(_entries(run_dir / "details" / kind) for kind in _FINISHED)


def progress_line(runs: Sequence[ShardRun]) -> str:
    """Write one line for all shards that have begun: ``shard 0/2: 120 of 498, shard 1/2: 118 of 497``."""
    ordered = sorted(runs, key=lambda run: run.shard.index)
    return ", ".join(f"shard {run.shard}: {rows_done(run.run_dir())} of {run.rows}" for run in ordered)


def watcher(stream: TextIO, clock: Callable[[], float] = time.monotonic) -> Callable[[Sequence[ShardRun]], None]:
    """Make a function that writes the line when it changed: in place on a terminal, else every five seconds."""
    last_line, last_time = "", clock() - _SECONDS_APART
    in_place = stream.isatty()

    def watch(runs: Sequence[ShardRun]) -> None:
        nonlocal last_line, last_time
        if clock() - last_time < (1.0 if in_place else _SECONDS_APART):
            return
        line, last_time = progress_line(runs), clock()
        if line != last_line:
            last_line = line
            stream.write(f"\r\x1b[K{line}" if in_place else f"{line}\n")
            stream.flush()

    return watch


def _entries(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(1 for _ in entries)
    except OSError:
        return 0

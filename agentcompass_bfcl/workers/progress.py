"""How far the shards are, read from their directories as they grow, and what there is to say about them meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from agentcompass_bfcl.errors import one_line
from agentcompass_bfcl.run_dir import FINISHED_STATES
from agentcompass_bfcl.workers.plan import ShardRun
from agentcompass_bfcl.workers.provisional import Provisional

_SECONDS_APART = 5.0
_SECONDS_IN_PLACE = 1.0
_FEW_SHARDS = 4
_USUAL_COLUMNS = 80
_CLEAR = "\r\x1b[K"


def rows_done(run_dir: Path | None) -> int:
    """Count the rows a run has finished so far; a directory that is not there yet has none."""
    return 0 if run_dir is None else sum(_entries(run_dir / "details" / kind) for kind in FINISHED_STATES)


def progress_line(runs: Sequence[ShardRun], score: str = "") -> str:
    """Write one line for all shards: ``238 of 995 rows; shard 0/2: 120 of 498, shard 1/2: 118 of 497``.

    Of more than four only those are listed that go on. ``score`` stands in the middle, where a narrow terminal does not
    cut it off.
    """
    done = [(run, rows_done(run.run_dir())) for run in sorted(runs, key=lambda run: run.shard.index)]
    together = f"{sum(rows for _, rows in done)} of {sum(run.rows for run in runs)} rows"
    few = len(runs) <= _FEW_SHARDS
    listed = [f"shard {run.shard}: {rows} of {run.rows}" for run, rows in done if few or 0 < rows < run.rows]
    return "; ".join(part for part in (together, score, ", ".join(listed)) if part)


class Progress:
    """Writes to a stream how far the shards are: in place on a terminal, else a line every five seconds.

    With ``provisional`` the line says how they score so far, and early warnings have lines of their own.
    ``shown`` turns that off; what ``say`` is given is written all the same. ``plain`` writes lines on a terminal too.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        shown: bool = True,
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
        columns: Callable[[TextIO], int] | None = None,
        provisional: Provisional | None = None,
    ) -> None:
        self._stream, self._shown, self._clock, self._columns = stream, shown, clock, columns or _columns
        self._in_place = stream.isatty() and not plain
        self._provisional = provisional
        self._last_line = ""
        self._next_time = clock()

    def update(self, runs: Sequence[ShardRun]) -> None:
        """Write the line for these shards, when it is time to and the line is another than before."""
        if self._shown and self._clock() >= self._next_time:
            self._write(runs)

    def finish(self, runs: Sequence[ShardRun]) -> None:
        """Write how far they got, whatever the time, and end the line."""
        if not self._shown:
            return
        self._write(runs, at_the_end=True)
        if self._in_place:
            self._stream.write("\n")
            self._stream.flush()
        self._last_line = ""

    def say(self, text: str) -> None:
        """Write a line of its own, above the one that is written in place."""
        covered = self._last_line if self._shown and self._in_place else ""
        self._stream.write(f"{_CLEAR if covered else ''}agentcompass-bfcl: {one_line(text)}\n{covered}")
        self._stream.flush()

    def _write(self, runs: Sequence[ShardRun], *, at_the_end: bool = False) -> None:
        self._next_time = self._clock() + (_SECONDS_IN_PLACE if self._in_place else _SECONDS_APART)
        line = progress_line(runs, self._score(runs, at_the_end))
        if self._in_place:
            line = line[: self._columns(self._stream) - 1]  # one that wraps cannot be written over
        if line != self._last_line:
            self._last_line = line
            self._stream.write(f"{_CLEAR}{line}" if self._in_place else f"{line}\n")
            self._stream.flush()

    def _score(self, runs: Sequence[ShardRun], at_the_end: bool) -> str:
        if self._provisional is None:
            return ""
        self._provisional.look(runs, at_once=at_the_end)
        for warning in self._provisional.new_warnings():
            self.say(f"warning: {warning}")
        return self._provisional.line()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS  # 0 where nobody has set a size
    except OSError:
        return _USUAL_COLUMNS


def _entries(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(1 for _ in entries)
    except OSError:
        return 0

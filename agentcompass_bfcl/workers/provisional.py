"""What the shards' files say so far: a provisional score in one line, and each early warning once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import RunDirError, counted
from agentcompass_bfcl.tally import Tally
from agentcompass_bfcl.uncertainty import wilson
from agentcompass_bfcl.watching import Watched, open_watched, tallies, warnings
from agentcompass_bfcl.workers.plan import ShardRun

_SECONDS_APART = 5.0  # reading takes the driver's share of a core, which the workers need


class Provisional:
    """Reads the files of shards as they grow, at most every five seconds; nothing is written, and no file held open."""

    def __init__(self, dataset: Dataset, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._dataset, self._clock = dataset, clock
        self._watched: dict[Path, Watched] = {}
        self._said: set[str] = set()
        self._next_time = clock()

    def look(self, runs: Sequence[ShardRun], *, at_once: bool = False) -> None:
        """Read what was finished since the last time, when it is time to or ``at_once``."""
        if self._clock() < self._next_time and not at_once:
            return
        self._next_time = self._clock() + _SECONDS_APART
        for run_dir in filter(None, (run.run_dir() for run in runs)):
            if run_dir not in self._watched:
                try:
                    self._watched[run_dir] = open_watched(run_dir, self._dataset)
                except RunDirError:  # it does not say yet what it is a run of
                    continue
            self._watched[run_dir].look()

    def line(self) -> str:
        """Write the score of what has a verdict, rows as independent; empty as long as there is none."""
        tally = sum(tallies(list(self._watched.values())).values(), Tally())
        if not tally.n:
            return ""
        score = f"{tally.hits} of {tally.n} right so far, {tally.hits / tally.n * 100:.2f} %"
        if all(run.request.k == 1 for run in self._watched.values()):  # several attempts at a row are not independent
            low, high = wilson(tally.hits / tally.n, tally.n)
            score += f" ({low * 100:.2f} to {high * 100:.2f})"
        return f"{score}, {counted(tally.errors, 'error', 'errors')}"

    def new_warnings(self) -> list[str]:
        """Give the warnings that were not given yet; one about the same thing comes once, whatever its numbers."""
        found = warnings(list(self._watched.values()))
        fresh = [text for about, text in found.items() if about not in self._said]
        self._said |= found.keys()
        return fresh

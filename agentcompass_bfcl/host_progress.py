"""AgentCompass's progress.json, written once a second.

The host itself writes it, through to the disk, at each of some fifteen events a row, and every event into
progress.jsonl: a sixth of the time of a run against a fast endpoint (docs/speed.md). The viewer reads progress.json.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentcompass.runtime.models import RunRequest
from agentcompass.runtime.progress import ProgressReporter, ProgressSink, SnapshotProgressSink

_SECONDS_APART = 1.0
_LAST_EVENT = "run_finished"


def lean_reporter(run_id: str, harness: str, model: str, find_run_dir: Callable[[], Path | None]) -> ProgressReporter:
    """Make a reporter that writes progress.json into the run directory, as soon as ``find_run_dir`` gives it."""
    request = RunRequest.from_params(
        {
            "benchmark": {"id": "bfcl"},
            "harness": {"id": harness},
            "environment": {"id": "host_process"},
            "model": {"id": model},
        }
    )
    return ProgressReporter(run_id=run_id, request=request, sinks=[_OncePerSecond(find_run_dir)])


class _OncePerSecond(ProgressSink):
    """Writes the newest snapshot at most once a second, and the last one always."""

    def __init__(self, find_run_dir: Callable[[], Path | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._find_run_dir, self._clock = find_run_dir, clock
        self._sink: SnapshotProgressSink | None = None
        self._next_time = clock()

    def emit(self, event: Any, snapshot: dict[str, Any]) -> None:
        if self._clock() < self._next_time and event.event != _LAST_EVENT:
            return
        self._next_time = self._clock() + _SECONDS_APART
        if self._sink is None:
            folder = self._find_run_dir()
            if folder is None:
                return
            self._sink = SnapshotProgressSink(folder / "progress.json")
        self._sink.emit(event, snapshot)

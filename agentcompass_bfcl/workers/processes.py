"""The driver's side: start a process a shard, as many at once as there are cores, and let none be left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from agentcompass_bfcl.errors import EndpointError
from agentcompass_bfcl.workers.plan import ShardRun
from agentcompass_bfcl.workers.shard_process import (
    EXIT_DONE,
    EXIT_RUN_FAILED,
    EXIT_UNUSABLE_ENDPOINT,
    command,
    run_line,
)

_GRACE_SECONDS = 15.0
_LOOK_SECONDS = 0.1
_LAST_WORDS = 500
_LOG_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How a shard's worker ended. ``trouble`` says what was wrong; ``has_result`` that there is a result."""

    shard_run: ShardRun
    has_result: bool
    trouble: str


def cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_processes(
    runs: Sequence[ShardRun], *, at_once: int, watch: Callable[[Sequence[ShardRun]], None] | None = None
) -> list[Ended]:
    """Run shards in processes and return how each ended, in their order.

    ``watch`` is called now and then with the shards that have begun. A worker that dies lets the others finish. Raises
    ``EndpointError``, once, when an endpoint serves no sample at all. No worker is left when this returns or raises,
    also after Ctrl-C and SIGTERM; after SIGKILL the workers notice and end themselves.
    """
    waiting = list(runs)
    running: dict[int, _Worker] = {}
    ended: dict[int, Ended] = {}
    with _sigterm_raises():
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    shard_run = waiting.pop(0)
                    running[shard_run.shard.index] = _Worker(shard_run)
                time.sleep(_LOOK_SECONDS)
                for index, worker in list(running.items()):
                    if worker.is_over():
                        ended[index] = running.pop(index).ended()
                if watch is not None:
                    watch([worker.shard_run for worker in running.values()] + [end.shard_run for end in ended.values()])
        finally:
            _stop(list(running.values()))
    return [ended[shard_run.shard.index] for shard_run in runs]


class _Worker:
    """One process and its log."""

    def __init__(self, shard_run: ShardRun) -> None:
        self.shard_run = shard_run
        self.log = shard_run.folder / f"{shard_run.run.run_id}.worker.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command(sys.path),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches the driver, which stops its workers in order
            )
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it died at once, and its log says why
                self._process.stdin.write(run_line(shard_run.run))
                self._process.stdin.flush()

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def close(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def ended(self) -> Ended:
        self.close()
        self.signal(signal.SIGKILL)  # whatever it started itself, its judge process for one
        code = self._process.returncode
        if code == EXIT_DONE:
            return Ended(self.shard_run, True, "")
        words = last_line(self.log)
        if code == EXIT_UNUSABLE_ENDPOINT:
            raise EndpointError(words)
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        said = f"{how}; {words}" if words else how
        trouble = f"shard {self.shard_run.shard}: {said} (log: {self.log})"
        return Ended(self.shard_run, code == EXIT_RUN_FAILED, trouble)


def last_line(log: Path) -> str:
    """Give the last line of a log, shortened; empty when there is none."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_BYTES))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][-_LAST_WORDS:] if lines else ""


def _stop(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.signal(signal.SIGINT)
    deadline = time.monotonic() + _GRACE_SECONDS
    for worker in workers:
        worker.wait(max(0.0, deadline - time.monotonic()))
        worker.signal(signal.SIGKILL)
        worker.wait(_GRACE_SECONDS)
        worker.close()


@contextlib.contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Let SIGTERM end the driver as Ctrl-C does, with its workers stopped."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

"""The driver's side: start a process a shard, as many at once as there are cores, and let none be left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from agentcompass_bfcl.errors import EndpointError, WorkerError
from agentcompass_bfcl.host import HostRun
from agentcompass_bfcl.workers.plan import ShardRun
from agentcompass_bfcl.workers.progress import Progress
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


def run_processes(runs: Sequence[ShardRun], *, at_once: int, progress: Progress) -> list[Ended]:
    """Run shards in processes and return how each ended, in their order.

    A worker that dies is named at once, and lets the others finish. Raises ``EndpointError``, once, when an endpoint
    serves no sample at all, and ``WorkerError`` when no worker can be started. No worker is left when this returns or
    raises, also after Ctrl-C and SIGTERM; after SIGKILL the workers notice and end themselves.
    """
    waiting = list(runs)
    running: dict[int, _Worker] = {}
    ended: dict[int, Ended] = {}
    with sigterm_raises():
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    shard_run = waiting.pop(0)
                    running[shard_run.shard.index] = _Worker(shard_run)
                time.sleep(_LOOK_SECONDS)
                for index, worker in list(running.items()):
                    if worker.is_over():
                        ended[index] = running.pop(index).ended()
                        if ended[index].trouble:
                            progress.say(ended[index].trouble)
                progress.update(runs)
        finally:
            progress.finish(runs)
            _stop(list(running.values()))
    return [ended[shard_run.shard.index] for shard_run in runs]


class _Worker:
    """One process and its log."""

    def __init__(self, shard_run: ShardRun) -> None:
        self.shard_run = shard_run
        self.log = shard_run.log
        self._process = start_worker(shard_run.run, self.log)

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
        return Ended(self.shard_run, code == EXIT_RUN_FAILED, trouble(self.shard_run, code, words))


def start_worker(run: HostRun, log: Path) -> subprocess.Popen[bytes]:
    """Start a worker process that says what it says into ``log``, and hand it the run.

    It lives as long as the pipe to its standard input, and leads a group of its own: Ctrl-C reaches the driver, which
    stops its workers in order. Raises ``WorkerError`` when there can be no log or no process.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as said:
            process = subprocess.Popen(
                command(sys.path), stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
            )
    except OSError as error:
        raise WorkerError(f"no worker can be started: {error.strerror} ({error.filename or sys.executable})") from None
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # it died at once, and its log says why
            process.stdin.write(run_line(run))
            process.stdin.flush()
    return process


def trouble(shard_run: ShardRun, code: int, words: str) -> str:
    """Say how a worker ended that did not end well: which shard's, how, its last words, and where to read on."""
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    return f"shard {shard_run.shard}: {how}{words and f'; {words}'} (log: {shard_run.log})"


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
def sigterm_raises() -> Iterator[None]:
    """Let SIGTERM end the driver as Ctrl-C does, with its workers stopped."""
    codes: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        codes.append(128 + number)
        raise SystemExit(codes[0])

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except SystemExit as ending:
        raise SystemExit(codes[0] if codes else ending.code) from None  # Ray's functions make it a 1
    finally:
        signal.signal(signal.SIGTERM, before)

"""The driver's end of a worker process: hand it shards, hear how each one ended, and stop it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from agentcompass_bfcl.errors import EndpointError, WorkerError
from agentcompass_bfcl.workers.plan import ShardRun
from agentcompass_bfcl.workers.shard_process import (
    EXIT_DONE,
    EXIT_RUN_FAILED,
    EXIT_UNUSABLE_ENDPOINT,
    command,
    shard_line,
)

_LAST_WORDS = 500
_LOG_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How a shard ended. ``trouble`` says what was wrong; ``has_result`` that there is a result."""

    shard_run: ShardRun
    has_result: bool
    trouble: str


class Worker:
    """One process, and the shard it is at work on; None while it waits for one."""

    def __init__(self, shard_run: ShardRun) -> None:
        self.shard_run: ShardRun | None = shard_run
        self._process = start_worker(shard_run.log)
        self._heard = b""
        self._send(shard_line(shard_run.run, shard_run.log))

    def give(self, shard_run: ShardRun) -> bool:
        """Hand over the next shard; False when the process has died meanwhile, and the shard was not begun.

        Raises ``WorkerError`` when there can be no log for it.
        """
        if self.is_over():
            return False
        make_log(shard_run.log)
        if not self._send(shard_line(shard_run.run, shard_run.log)):
            return False
        self.shard_run = shard_run
        return True

    def is_over(self) -> bool:
        """Tell whether the process has ended."""
        return self._process.poll() is not None

    def ended(self) -> Ended | None:
        """Say how the shard ended; None while it goes on. Raises ``EndpointError`` when nothing can be scored there."""
        if self.shard_run is None:
            return None
        over = self.is_over()  # before listening: what was said last was said before it ended
        heard = self._hear()
        if heard is None and not over:
            return None
        shard_run, self.shard_run = self.shard_run, None
        if over:
            self.end()
        if heard is None:
            return how_it_ended(shard_run, self._process.returncode, died=True)
        code, why = heard
        return how_it_ended(shard_run, code, died=False, why=why)

    def end(self) -> None:
        """End a worker that is not at work, and whatever it started itself, its judge process for one."""
        self.signal(signal.SIGKILL)
        self._process.wait()
        self.close()

    def signal(self, number: int) -> None:
        """Signal the process and whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def wait(self, seconds: float) -> None:
        """Wait for its end, so long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def close(self) -> None:
        """Close the pipes; a worker that is still there kills itself."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, line: bytes) -> bool:
        """Tell whether a line could be sent; a process that has died takes none, and its log says why it did."""
        if self._process.stdin is None:
            return False
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            return False
        return True

    def _hear(self) -> tuple[int, str] | None:
        """Read the number and the words the worker has said; None as long as there is no whole line."""
        if self._process.stdout is not None:
            with contextlib.suppress(BlockingIOError):
                self._heard += os.read(self._process.stdout.fileno(), 4096)
        line, end, rest = self._heard.partition(b"\n")
        if not end:
            return None
        self._heard = rest
        code, _, why = line.partition(b" ")
        return (int(code), why.decode("utf-8", "replace")) if code.isdigit() else None


def start_worker(log: Path) -> subprocess.Popen[bytes]:
    """Start a worker process that waits for shards, and says into ``log`` what it says before the first.

    It lives as long as the pipe to its standard input, and leads a group of its own: Ctrl-C reaches the driver, which
    stops its workers in order. Raises ``WorkerError`` when there can be no log or no process.
    """
    make_log(log)
    try:
        with log.open("ab") as said:
            process = subprocess.Popen(
                command(sys.path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
    except OSError as error:
        raise _cannot_start(error) from None
    if process.stdout is not None:
        os.set_blocking(process.stdout.fileno(), False)
    return process


def make_log(log: Path) -> None:
    """Make an empty log. Raises ``WorkerError`` when that cannot be."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
    except OSError as error:
        raise _cannot_start(error) from None


def how_it_ended(shard_run: ShardRun, code: int, *, died: bool, why: str = "") -> Ended:
    """Put a shard's end in words: whose, how, why or its log's last words, and where to read on."""
    if code == EXIT_DONE and not died:
        return Ended(shard_run, True, "")
    words = why or last_line(shard_run.log)
    if code == EXIT_UNUSABLE_ENDPOINT:
        raise EndpointError(words)
    how = f"ended by {_signal_name(-code)}" if code < 0 else f"ended with status {code}"
    trouble = f"shard {shard_run.shard}: {how}{words and f'; {words}'} (log: {shard_run.log})"
    return Ended(shard_run, code == EXIT_RUN_FAILED, trouble)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def last_line(log: Path) -> str:
    """Give the last line of a log, shortened; empty when there is none, or no log any more."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][-_LAST_WORDS:] if lines else ""


def _cannot_start(error: OSError) -> WorkerError:
    return WorkerError(f"no worker can be started: {error.strerror} ({error.filename or sys.executable})")

"""The parent's side of a judge process: start it, ask it, never wait for it beyond a deadline, end it for certain."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentcompass_bfcl.judge_worker import READY

type Spawn = Callable[[Sequence[str]], subprocess.Popen[bytes]]

START_SECONDS = 30.0
"""How long a judge process may take to become ready; it takes 0.3 s."""

_LARGEST_REPLY = 64 * 1024  # a detail has 2,000 characters, of at most 12 bytes each as escapes
_PIECE = 64 * 1024
_LAST_WORDS_SECONDS = 0.5
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def worker_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Choose the variables a judge process gets: those an interpreter may need to start at all, so no API keys."""
    return {name: environ[name] for name in _KEPT_VARIABLES if name in environ}


def worker_command(wheel_path: Path, limit_seconds: float, import_path: Sequence[str]) -> list[str]:
    """Write the command of a judge process that finds modules exactly where this process finds them.

    ``-I`` keeps the directory, the user's site and ``PYTHON*`` variables out; ``import_path`` is handed over instead,
    be it that of an installation, an editable one or ``PYTHONPATH``. ``-B``: no bytecode is written.
    """
    places = json.dumps([os.path.abspath(place) for place in import_path])  # noqa: PTH100 - "" is the directory we are in
    start = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        "from agentcompass_bfcl.judge_worker import main; main(*sys.argv[2:])"
    )
    return [sys.executable, "-I", "-B", "-c", start, places, str(wheel_path.absolute()), repr(limit_seconds)]


def start_process(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a judge process with pipes both ways, in a directory that harms nothing. Raises ``OSError``."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # its complaints until it is ready; from then on they lead nowhere
        bufsize=0,
        cwd="/",
        env=worker_environment(os.environ),
    )


class JudgeProcess:
    """One judge process. It is killed when this object goes, and ends by itself when this process does."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("a judge process needs pipes for its standard input and output")
        self._process = process
        self._requests, self._replies = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._requests, False)
        self._end = weakref.finalize(self, _kill, process)

    @property
    def pid(self) -> int:
        """The operating system's id of the process."""
        return self._process.pid

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until it can judge. Raises ``OSError`` with its last words when it ends first or takes too long."""
        deadline, said = time.monotonic() + seconds, b""
        while not said.endswith(READY):
            try:
                piece = self._read(deadline)
            except TimeoutError:
                raise OSError(f"not ready within {seconds:g} s") from None
            if not piece:
                raise OSError(f"it did not start: {_last_line(said) or self.how_it_ended()}")
            said = (said + piece)[-_PIECE:]

    def ask(self, request: bytes, seconds: float) -> bytes:
        """Send a line and return the line that answers it.

        Raises ``TimeoutError`` when the whole exchange takes too long, ``ValueError`` when more than a line comes
        back, and ``OSError`` when the process is gone. After any of these it must not be asked again.
        """
        deadline, left = time.monotonic() + seconds, memoryview(request)
        while left:
            _wait_for(self._requests, select.POLLOUT, deadline)
            with contextlib.suppress(BlockingIOError):
                left = left[os.write(self._requests, left[:_PIECE]) :]
        reply = b""
        while not reply.endswith(b"\n"):
            piece = self._read(deadline)
            if not piece:
                raise OSError(self.how_it_ended())
            reply += piece
            if len(reply) > _LARGEST_REPLY or b"\n" in reply[:-1]:
                raise ValueError("more than the line that was asked for")
        return reply

    def how_it_ended(self) -> str:
        """Say how a process ended that has closed its pipe, and wait a little for it to be over."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_WORDS_SECONDS)
        code = self._process.returncode
        if code is None:
            return "it closed its pipe"
        if code == errno.ENOMEM:
            return "it took too much memory"
        return f"it ended with status {code}" if code >= 0 else f"it was ended by {signal.Signals(-code).name}"

    def end(self) -> None:
        """Kill the process, wait for its end and close the pipes; nothing when that was done before."""
        self._end()

    def disown(self) -> None:
        """Forget a process that a fork copied the pipes of: it belongs to the process that started it."""
        self._end.detach()
        _close_pipes(self._process)
        self._process.returncode = 0  # else Popen warns that it still runs

    def _read(self, deadline: float) -> bytes:
        _wait_for(self._replies, select.POLLIN, deadline)
        return os.read(self._replies, _PIECE)


def _wait_for(descriptor: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError("not in time")


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    _close_pipes(process)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:500] if lines else ""

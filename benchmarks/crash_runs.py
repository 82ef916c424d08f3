"""What the crash campaign's runs are made of: an endpoint, the command in a process of its own, and what it left."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentcompass_bfcl.run_dir import iter_details
from agentcompass_bfcl.workers.progress import rows_done

COMMAND = [sys.executable, "-m", "agentcompass_bfcl"]
MISTAKES = "wrong_value=5,missing_call=3,http_500=1"
PATIENCE = 600.0
_LINGER_SECONDS = 30.0
_LOOK_SECONDS = 0.02
_ADOPT_ORPHANS = 36  # Linux's PR_SET_CHILD_SUBREAPER
_PROJECT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The loopback endpoint, in a process that no signal of the campaign reaches."""

    base_url: str
    process: subprocess.Popen[str]

    def requests(self) -> Counter[str]:
        """Count the requests for each row so far, once nobody waits for an answer any more."""
        while True:
            with urllib.request.urlopen(f"{self.base_url.removesuffix('/v1')}/stats") as reply:  # noqa: S310 - loopback
                stats = json.loads(reply.read())
            if not stats["waiting"]:
                return Counter(stats["rows"])
            time.sleep(_LOOK_SECONDS)


@contextlib.contextmanager
def endpoint(latency: float) -> Iterator[Endpoint]:
    """Serve with mistakes that fall on the same rows every time."""
    serve = [*COMMAND, "serve", "--port", "0", "--mistakes", MISTAKES, "--latency", str(latency)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=_PROJECT) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield Endpoint(next(word.rstrip(";") for word in line.split() if word.startswith("http")), process)
        finally:
            process.terminate()


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended. ``code`` is negative for a signal."""

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def canonical(self) -> str | None:
        """Give the printed result without where the shards ran; None where none was printed."""
        if not self.stdout:
            return None
        document = json.loads(self.stdout)
        document["extra"].pop("shards", None)
        return json.dumps(document, sort_keys=True)


@dataclass(slots=True)
class Driver:
    """A run's command at work. What it starts is adopted by this process once its parent is gone."""

    process: subprocess.Popen[str]
    begun: float = field(default_factory=time.monotonic)

    def workers(self) -> list[int]:
        """List the processes that run shards."""
        return [pid for pid in children(self.process.pid) if b"shard_process" in _command_line(pid)]

    def everybody(self) -> list[int]:
        """List the driver and all that descend from it."""
        return [self.process.pid, *descendants(self.process.pid)]

    def ended(self) -> Ended:
        """Wait for its end."""
        stdout, stderr = self.process.communicate(timeout=PATIENCE)
        return Ended(self.process.returncode, stdout, stderr, self.seconds())

    def seconds(self) -> float:
        """Say how long it has been at work."""
        return time.monotonic() - self.begun

    def wait(self, seconds: float) -> bool:
        """Wait so long; False when the command ended first."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is None

    def wait_until(self, happened: Callable[[], bool]) -> bool:
        """Wait for something to happen; False when the command ended first."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            if happened():
                return True
            time.sleep(_LOOK_SECONDS)
        return False


@dataclass(frozen=True, slots=True)
class Command:
    """``run`` with all its options but where results go."""

    base_url: str
    draw: str
    limit: int
    shards: int

    def arguments(self, results: Path) -> list[str]:
        """Write it, with JSON as its output."""
        options = ["--draw", self.draw, "--limit", str(self.limit), "--shards", str(self.shards), "--retries", "0"]
        where = ["--progress", "none", "--json", "--results-dir", str(results)]
        return [*COMMAND, "run", "some-model", "--base-url", self.base_url, *options, *where]

    def start(
        self, results: Path, *options: str, limits: Sequence[tuple[int, int]] = (), cwd: Path = _PROJECT
    ) -> Driver:
        """Start it in a group of its own; ``limits`` are what ``resource.setrlimit`` takes, for it and its workers."""

        def restrict() -> None:
            for what, most in limits:
                resource.setrlimit(what, (most, most))

        process = subprocess.Popen(
            [*self.arguments(results), *options],
            cwd=cwd,
            env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            preexec_fn=restrict if limits else None,
        )
        return Driver(process)

    def run(self, results: Path, *options: str) -> Ended:
        """Run it to its end."""
        return self.start(results, *options).ended()


def adopt_orphans() -> None:
    """Become the parent of whatever a killed driver leaves behind, so that nothing can hide. Linux only."""
    if ctypes.CDLL(None, use_errno=True).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def left_behind(known: Sequence[int], seconds: float = _LINGER_SECONDS) -> list[str]:
    """Wait until this process has no children but the known ones, and name those that stay; they are killed then."""
    deadline = time.monotonic() + seconds
    while others := [pid for pid in children(os.getpid()) if pid not in known and not _buried(pid)]:
        if time.monotonic() > deadline:
            names = [_command_line(pid).replace(b"\0", b" ").decode("utf-8", "replace")[:200] for pid in others]
            for pid in others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return names
        time.sleep(_LOOK_SECONDS)
    return []


def children(pid: int) -> list[int]:
    """List a process's children, whichever of its threads started them."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in path.read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    """List a process's children, theirs, and so on."""
    return [found for child in children(pid) for found in (child, *descendants(child))]


def run_dirs(results: Path) -> list[Path]:
    """List the directories of runs the host made; a merged one is none."""
    found = (path.parent for path in results.glob("**/run_info.json"))
    return sorted(path for path in found if (path / "run.log").exists())


def finished_rows(results: Path, since: Sequence[Path] = ()) -> int:
    """Count the rows that runs have finished, those in ``since`` left out."""
    return sum(rows_done(path) for path in run_dirs(results) if path not in since)


def scored_rows(results: Path) -> set[str]:
    """List the rows that have a verdict on disk, in any run."""
    return {
        str(detail["task_id"])
        for path in run_dirs(results)
        for detail in iter_details(path)
        if "1" in detail["attempts"]
        and detail["attempts"]["1"].get("status") == "completed"
        and "attempt_plan" in detail  # the host writes that last; before, the row was not finished
    }


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _buried(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True

"""Processes measured: on the clock, by the processor, and by the memory of the largest among them."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

COMMAND = [sys.executable, "-m", "agentcompass_bfcl"]
_LAST_WORDS = 400


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its own took. ``wall`` and ``cpu`` in seconds, ``peak_mb`` of the largest one in MB.

    ``start_up`` is until the first request, ``requests`` from the first request to the last reply; None without any.
    """

    wall: float
    cpu: float
    peak_mb: float
    start_up: float | None = None
    requests: float | None = None

    def to_json(self) -> dict[str, float | None]:
        """Give the fields for a file of finished measurements."""
        return asdict(self)


class MeasurementError(Exception):
    """A process that was to be measured ended badly; its last words."""


def measure(command: Sequence[str], *, allowed: Sequence[int] = (0,)) -> Usage:
    """Run a command alone. Raises ``MeasurementError`` when it ends with another status than the allowed."""
    return measure_together([command], allowed=allowed)


def measure_together(commands: Sequence[Sequence[str]], *, allowed: Sequence[int] = (0,)) -> Usage:
    """Run commands side by side: the time of all, the processor time of each added up, the memory of the largest."""
    with tempfile.TemporaryDirectory(prefix="bfcl-said-") as logs:
        said = [Path(logs) / str(number) for number in range(len(commands))]
        begun = time.perf_counter()
        started = [_start(command, log) for command, log in zip(commands, said, strict=True)]
        ended = [os.wait4(process.pid, 0) for process in started]  # as Popen.wait, and what the process used
        wall = time.perf_counter() - begun
        for command, process, (_, status, _), log in zip(commands, started, ended, said, strict=True):
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in allowed:
                words = log.read_text("utf-8", "replace").strip()[-_LAST_WORDS:]
                raise MeasurementError(f"status {process.returncode} of {command}: {words}")
    used = [usage for _, _, usage in ended]
    return Usage(
        wall=wall,
        cpu=sum(usage.ru_utime + usage.ru_stime for usage in used),
        peak_mb=max(usage.ru_maxrss for usage in used) / (1024 if sys.platform == "linux" else 1024 * 1024),
    )


def _start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as said:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)


def with_requests(usage: Usage, results: Path, begun: datetime) -> Usage:
    """Add when requests began and ended, as the attempts below a results directory say; ``begun`` is local time.

    A run's merged copy of its shards says the same as they do. Raises ``MeasurementError`` when no attempt says.
    """
    times = [
        datetime.fromisoformat(trajectory[key])
        for path in results.glob("**/attempt-1/result.json")
        if (trajectory := json.loads(path.read_text("utf-8")).get("trajectory"))
        for key in ("started_at", "finished_at")
    ]
    if not times:
        raise MeasurementError(f"no attempt below {results} says when it was made")
    first, last = min(times), max(times)
    return replace(usage, start_up=(first - begun).total_seconds(), requests=(last - first).total_seconds())


def median(usages: Sequence[Usage]) -> Usage:
    """Give the usage of the middle: each figure's own median, and the highest peak of memory."""
    start_ups = [usage.start_up for usage in usages if usage.start_up is not None]
    requests = [usage.requests for usage in usages if usage.requests is not None]
    return Usage(
        wall=statistics.median(usage.wall for usage in usages),
        cpu=statistics.median(usage.cpu for usage in usages),
        peak_mb=max(usage.peak_mb for usage in usages),
        start_up=statistics.median(start_ups) if start_ups else None,
        requests=statistics.median(requests) if requests else None,
    )


@contextlib.contextmanager
def endpoint(latency: float = 0.0) -> Iterator[str]:
    """Serve reference answers from a process of its own and give the address; each waits ``latency`` seconds."""
    serve = [*COMMAND, "serve", "--port", "0", "--latency", str(latency)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            address = next((word.rstrip(";") for word in line.split() if word.startswith("http")), None)
            if address is None:
                raise MeasurementError(f"the endpoint did not start: {' '.join(serve)}")
            yield address
        finally:
            process.terminate()

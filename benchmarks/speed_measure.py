"""Processes measured: on the clock, by the processor, and by the memory of the largest among them."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

COMMAND = [sys.executable, "-m", "agentcompass_bfcl"]
_LAST_WORDS = 400

# Reads commands from its input, runs them at once with what they say in files it is given, and tells what they used.
_STARTER = """
import json, os, sys, time
nothing = os.open(os.devnull, os.O_RDWR)
begun, started = time.perf_counter(), []
for command, log in zip(json.load(sys.stdin), sys.argv[1:]):
    said = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
    files = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, nothing, 1), (os.POSIX_SPAWN_DUP2, said, 2)]
    started.append(os.posix_spawnp(command[0], command, os.environ, file_actions=files))
ended = [os.wait4(pid, 0) for pid in started]
told = {
    "wall": time.perf_counter() - begun,
    "cpu": sum(used.ru_utime + used.ru_stime for _, _, used in ended),
    "peak": max(used.ru_maxrss for _, _, used in ended),
    "statuses": [os.waitstatus_to_exitcode(status) for _, status, _ in ended],
}
print(json.dumps(told))
"""


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
    """Run commands side by side: the time of all, the processor time of each added up, the memory of the largest.

    A small process of its own starts them: Linux counts the memory of the one that starts a command as the command's,
    as it runs in a copy of that one at first.
    """
    with tempfile.TemporaryDirectory(prefix="bfcl-said-") as logs:
        said = [str(Path(logs) / str(number)) for number in range(len(commands))]
        asked = json.dumps([list(map(str, command)) for command in commands])
        told = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _STARTER, *said],
            input=asked,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        answer = json.loads(told.stdout)
        for command, status, log in zip(commands, answer["statuses"], said, strict=True):
            if status not in allowed:
                words = Path(log).read_text("utf-8", "replace").strip()[-_LAST_WORDS:]
                raise MeasurementError(f"status {status} of {command}: {words}")
    per_mb = 1024 if sys.platform == "linux" else 1024 * 1024
    return Usage(wall=answer["wall"], cpu=answer["cpu"], peak_mb=answer["peak"] / per_mb)


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

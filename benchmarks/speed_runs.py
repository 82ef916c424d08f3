"""What the speed suite runs against an endpoint: the two harnesses in shards, and the floors below them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from benchmarks.speed_floor import draw_options, draw_params
from benchmarks.speed_measure import COMMAND, Usage, measure, measure_together, with_requests

FLOOR = [sys.executable, "-m", "benchmarks.speed_floor"]
CONCURRENCY = 16
SLOW_CONCURRENCY, SLOW_SECONDS = 32, 0.2
_MANY = 1500


class Extent(StrEnum):
    """How much is run: enough to see that the suite works, the usual, or an hour more."""

    SHORT = "short"
    USUAL = "usual"
    EVERYTHING = "everything"


# Numbers of shards by harness; None is how a run splits itself.
_SHARDS: Mapping[Extent, Mapping[str, Sequence[int | None]]] = {
    Extent.SHORT: {"openai_chat": (1,), "bfcl_chat": (2,)},
    Extent.USUAL: {"openai_chat": (1, 4), "bfcl_chat": (1, 2, 4, None)},
    Extent.EVERYTHING: {"openai_chat": (1, 2, 4, None), "bfcl_chat": (1, 2, 4, None)},
}


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement. ``part`` is the table it belongs to, ``name`` its row, ``take`` measures below a folder.

    ``take`` gets the endpoint's address and an empty folder.
    """

    part: str
    name: str
    samples: int
    take: Callable[[str, Path], Usage]

    @property
    def key(self) -> str:
        """Name the measurement in the file of finished ones."""
        return f"{self.part}: {self.name}, {self.samples}"


def harness_run(part: str, harness: str, shards: int | None, samples: int, concurrency: int) -> Run:
    """Measure a whole ``run``; without ``shards`` it splits itself, which is the setting we recommend."""

    def take(base_url: str, folder: Path) -> Usage:
        options = [*draw_options(samples), "--harness", harness, "--concurrency", str(concurrency)]
        options += ["--progress", "none", "--results-dir", str(folder)]
        options += [] if shards is None else ["--shards", str(shards)]
        begun = datetime.now()  # noqa: DTZ005 - as the host writes its times
        return with_requests(measure([*COMMAND, "run", "some-model", "--base-url", base_url, *options]), folder, begun)

    split = "as `run` splits it" if shards is None else f"{shards} shard{'s' * (shards > 1)}"
    return Run(part, f"`{harness}`, {split}", samples, take)


def stock_run(part: str, samples: int, concurrency: int) -> Run:
    """Measure the host's own command and harness as they are: analysis, and progress files written at every event."""

    def take(base_url: str, folder: Path) -> Usage:
        options = ["--benchmark-params", json.dumps(draw_params(samples)), "--task-concurrency", str(concurrency)]
        options += ["--model-base-url", base_url, "--model-api-key", "none", "--results-dir", str(folder)]
        command = [*COMMAND, "agentcompass", "run", "bfcl", "openai_chat", "some-model", *options]
        begun = datetime.now()  # noqa: DTZ005 - as the host writes its times
        return with_requests(measure([*command, "--progress", "none"]), folder, begun)

    return Run(part, "`agentcompass run bfcl openai_chat`, as it comes", samples, take)


def host_floor(part: str, processes: int, samples: int, concurrency: int, latency: float = 0.0) -> Run:
    """Measure AgentCompass over tasks that do nothing, in processes side by side that share the tasks."""

    def take(base_url: str, folder: Path) -> Usage:
        begun = datetime.now()  # noqa: DTZ005 - as the host writes its times
        shares = [len(range(first, samples, processes)) for first in range(processes)]
        options = ["--concurrency", str(concurrency // processes), "--latency", str(latency)]
        commands = [
            [*FLOOR, "host", "--rows", str(share), "--results-dir", str(folder / str(number)), *options]
            for number, share in enumerate(shares)
        ]
        return with_requests(measure_together(commands), folder, begun)

    several = f"{processes} process{'es' * (processes > 1)}"
    return Run(part, f"floor: AgentCompass doing nothing, {several}", samples, take)


def bare_floor(part: str, client: str, samples: int, concurrency: int) -> Run:
    """Measure the same requests from one asyncio loop."""

    def take(base_url: str, folder: Path) -> Usage:
        said = folder / "said.json"
        command = [*FLOOR, "bare", "--base-url", base_url, "--client", client, "--out", str(said)]
        usage = measure([*command, "--rows", str(samples), "--concurrency", str(concurrency)])
        requests = float(said.read_text())
        return replace(usage, start_up=max(0.0, usage.wall - requests), requests=requests)

    return Run(part, f"floor: bare asyncio loop, `{client}`", samples, take)


def instant_runs(sizes: Sequence[int], extent: Extent = Extent.USUAL) -> list[Run]:
    """List the runs against an endpoint that answers at once, by size and then by who sends the requests.

    One process takes minutes for a thousand samples and more than twenty for 3,625, its cost growing with the square:
    from 1,500 on only what splits itself is run, unless everything is wanted.
    """
    part, runs = "instant", []
    for samples in sizes:
        in_one = extent is Extent.EVERYTHING or samples < _MANY
        for harness, counts in _SHARDS[extent].items():
            chosen = [count for count in counts if in_one or count is None]
            runs += [harness_run(part, harness, count, samples, CONCURRENCY) for count in chosen]
        if in_one and (extent is Extent.EVERYTHING or samples == min(sizes)):
            runs.append(stock_run(part, samples, CONCURRENCY))
        if in_one:
            runs.append(host_floor(part, 1, samples, CONCURRENCY))
        runs.append(bare_floor(part, "openai", samples, CONCURRENCY))
    return runs


def slow_runs(samples: int, extent: Extent = Extent.USUAL) -> list[Run]:
    """List the runs against an endpoint that takes its time, as a model does."""
    part, concurrency = "latency", SLOW_CONCURRENCY
    runs = [harness_run(part, "bfcl_chat", None, samples, concurrency)]
    if extent is Extent.EVERYTHING:
        runs += [harness_run(part, harness, 1, samples, concurrency) for harness in ("bfcl_chat", "openai_chat")]
    if extent is not Extent.SHORT:
        runs.append(host_floor(part, 1, samples, concurrency, SLOW_SECONDS))
        runs.append(host_floor(part, 2, samples, concurrency, SLOW_SECONDS))
        runs.append(bare_floor(part, "openai", samples, concurrency))
    return [*runs, bare_floor(part, "httpx", samples, concurrency)]


def ideal_seconds(samples: int) -> float:
    """Give the time of that many requests when each connection is busy without a pause."""
    return -(-samples // SLOW_CONCURRENCY) * SLOW_SECONDS

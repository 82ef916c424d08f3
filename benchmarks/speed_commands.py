"""What the commands around a run cost: each as a process, and the parts of some of them in this one.

``python -m benchmarks.speed_commands`` prints the parts: ``{"name": processor seconds}`` for ``ROWS`` rows, the median
of some rounds. The reference of every part is writing the same rows' requests as JSON text once.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed_floor import draw_options
from benchmarks.speed_measure import COMMAND, MeasurementError, Usage, measure

REFERENCE = "reference: python -c pass"
PARTS_REFERENCE = "reference: requests to JSON text"
ROWS = 995
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished run in shards: its merged directory, and those of the shards."""

    merged: Path
    shards: tuple[Path, ...]


def make_run(base_url: str, folder: Path, samples: int) -> Ran:
    """Run a draw in two shards, for the commands that read one."""
    options = [*draw_options(samples), "--shards", "2", "--progress", "none", "--results-dir", str(folder)]
    measure([*COMMAND, "run", "some-model", "--base-url", base_url, *options])
    found = sorted(path.parent for path in folder.glob("**/metrics.json"))
    shards = tuple(path for path in found if "-shard" in path.relative_to(folder).parts[0])
    merged = [path for path in found if path not in shards]
    if len(merged) != 1 or len(shards) != 2:
        raise MeasurementError(f"{folder}: a merged run and its two shards were expected, there are {len(found)} runs")
    return Ran(merged[0], shards)


def commands(ran: Ran, folder: Path) -> dict[str, Callable[[], Usage]]:
    """Give what measures each command; writing ones write below ``folder``."""
    merged, shards = str(ran.merged), [str(path) for path in ran.shards]

    def ours(*words: str) -> Callable[[], Usage]:
        return lambda: measure([*COMMAND, *words])

    def merging() -> Usage:
        return measure([*COMMAND, "merge", *shards, "--out", str(folder / f"m{time.monotonic_ns()}" / "whole")])

    return {
        REFERENCE: lambda: measure([sys.executable, "-c", "pass"]),
        "`--help`": ours("--help"),
        "`draw --draw golden --json`": ours("draw", "--draw", "golden", "--json"),
        "`report -o html`": ours("report", merged, "-o", str(folder / "report.html")),
        "`rescore`": ours("rescore", merged),
        "`merge --json` of 2 shards": ours("merge", *shards, "--json"),
        "`merge --out` of 2 shards": merging,
        "`compare`": ours("compare", merged, merged),
        "`export --to csv`": ours("export", merged, "--to", "csv", "--out", str(folder / "rows.csv")),
        "import of AgentCompass": lambda: measure(
            [sys.executable, "-c", "from agentcompass_bfcl.host import register; register()"]
        ),
    }


def parts(rows: int = ROWS, rounds: int = _ROUNDS) -> dict[str, float]:
    """Measure the parts in this process, in turns: processor seconds for so many rows, the median of the rounds."""
    works = _works(rows)
    for work in works.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            begun = time.process_time()
            work()
            seconds[name].append(time.process_time() - begun)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def _works(rows: int) -> dict[str, Callable[[], object]]:
    from agentcompass_bfcl.aggregate import aggregate
    from agentcompass_bfcl.bounded import Judge
    from agentcompass_bfcl.dataset import read_dataset
    from agentcompass_bfcl.draw import fingerprint, select
    from agentcompass_bfcl.reference import accepted_calls
    from agentcompass_bfcl.settings import parse_settings
    from agentcompass_bfcl.sources import load_sources, open_pinned
    from agentcompass_bfcl.tally import Outcome, count
    from agentcompass_bfcl.task import chat_request
    from benchmarks.speed_floor import draw_params

    spec = parse_settings(draw_params(rows)).spec
    wheel, sources = open_pinned(), load_sources()
    entries = select(spec, sources.dataset)
    outputs = [[dict([call.written()]) for call in accepted_calls(entry)] for entry in entries]
    judge = Judge(sources.official, wheel.path)
    requests = [chat_request(entry, sources.official) for entry in entries]
    return {
        PARTS_REFERENCE: lambda: [json.dumps([request.messages, request.tools]) for request in requests],
        "loading the wheel's rows, every file checked": lambda: read_dataset(wheel),
        "draw and fingerprint": lambda: fingerprint(spec, (entry.id for entry in select(spec, sources.dataset))),
        "building the requests": lambda: [chat_request(entry, sources.official) for entry in entries],
        "scoring": lambda: [judge.verdict(entry, output) for entry, output in zip(entries, outputs, strict=True)],
        "aggregating": lambda: aggregate(count((entry.subset, Outcome.HIT) for entry in entries)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the parts as JSON."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    print(json.dumps(parts(int(given[0]) if given else ROWS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure judging a full run again, as whole processes, against the official command line on the same files.

From the project's folder: ``python -m benchmarks.rescore ENVIRONMENT PATH``. ENVIRONMENT is what
``python -m tests.parity.official_cli --environment`` makes. Made with ``--clients``, it imports the libraries of model
vendors as any installation of bfcl-eval does; otherwise these are stood in for, and official times are shorter than
anyone meets. PATH is a run directory or one model's results. The two take turns, so that what else the machine does
meets both.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.sources import open_pinned
from tests.parity.official_cli import MODELS, make_tree, official_command, official_verdicts, our_command, timed


def main() -> None:
    """Measure in turns and print medians, ranges and the ratio of each pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path)
    parser.add_argument("path", type=Path)
    parser.add_argument("--mode", choices=sorted(MODELS), default="fc")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bfcl-rescore-") as scratch:
        tree = make_tree(arguments.path, Path(scratch) / "project", arguments.mode, read_dataset(open_pinned()))
        command, environ = official_command(arguments.environment.absolute(), tree)
        ours = our_command(tree, arguments.mode, Path(scratch) / "verdicts.jsonl")
        timed(command, environ), timed(ours)  # both have their files in memory then
        rows = len(official_verdicts(tree))
        pairs = []
        for _ in range(arguments.rounds):
            shutil.rmtree(tree.scores)
            pairs.append((_measured(command, environ), _measured(ours)))
    print(f"{rows} rows, {len(pairs)} rounds, whole processes: median (least to most)")
    for measure, name in enumerate(("seconds", "processor seconds")):
        official, mine = ([one[measure] for one in side] for side in zip(*pairs, strict=True))
        print(f"{name}: official {_summary(official)}, rescore {_summary(mine)}")
        print(f"{name}: ratio {_summary([slow / fast for slow, fast in zip(official, mine, strict=True)])}")


def _measured(command: list[str], environ: Mapping[str, str] | None = None) -> tuple[float, float]:
    """Time a process: on the clock, and what it and its own children used of processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = timed(command, environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _summary(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()

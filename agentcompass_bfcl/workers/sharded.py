"""Run every shard that is not complete, then put all of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import WorkerError
from agentcompass_bfcl.merge import Merged
from agentcompass_bfcl.merged_dir import merge_runs
from agentcompass_bfcl.run_request import read_request
from agentcompass_bfcl.workers.plan import ShardRun
from agentcompass_bfcl.workers.worker import Ended

type Execute = Callable[[Sequence[ShardRun]], list[Ended]]
"""Runs shards and says how each ended, in their order."""


def run_sharded(
    runs: Sequence[ShardRun], execute: Execute, dataset: Dataset, *, out_name: str, facts: Mapping[str, Any]
) -> tuple[Merged, Path, tuple[str, ...]]:
    """Run the shards, merge them, and return the result, its run directory and the shards the host called failed.

    The directory is where the run would be if it had not been split: ``<results>/<out_name>/<model...>/<run id>``.
    Shards that may be used again and are complete are not started. Raises ``WorkerError`` naming each shard that has
    no result; the others' stay, for the same command with ``--reuse``.
    """
    complete = {run.shard: run.complete() for run in runs if run.run.reuse}
    again = [run for run in runs if not complete.get(run.shard)]
    ended = execute(again) if again else []
    lost = [str(end.shard_run.shard) for end in ended if not end.has_result]
    if lost:
        raise WorkerError(
            f"no result of shard {', '.join(lost)}; the same command with --reuse repeats only what is missing"
        )
    folders: list[Path] = []
    for run in runs:
        folder = complete.get(run.shard) or run.run_dir()
        if folder is None:
            raise WorkerError(f"shard {run.shard}: its worker ended well and left no run directory in {run.folder}")
        folders.append(folder)
    out = runs[0].run.results_dir / out_name / folders[0].parent.name / runs[0].run.run_id
    known = _facts_of_all(facts, runs, folders)
    failed = tuple(str(end.shard_run.shard) for end in ended if end.trouble)
    return merge_runs(folders, out, dataset, allow_errors=True, facts=known), out, failed


def _facts_of_all(facts: Mapping[str, Any], runs: Sequence[ShardRun], folders: Sequence[Path]) -> dict[str, Any]:
    """Leave out how many requests there were at a time where a shard ran earlier with another number of its own."""
    as_planned = all(
        read_request(folder).concurrency == run.run.concurrency for run, folder in zip(runs, folders, strict=True)
    )
    return {key: value for key, value in facts.items() if as_planned or key != "concurrency"}

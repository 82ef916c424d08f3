"""From one run to its shards: how many, where each one goes, and which have been run already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentcompass_bfcl.errors import BfclError
from agentcompass_bfcl.host import HostRun
from agentcompass_bfcl.merge import CHECKER_REASONS
from agentcompass_bfcl.reuse import run_to_go_on_with
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.shard import Shard

SMALL_RUN = 250
"""So many rows run in one piece: more processes would spend their time on importing AgentCompass."""

ROWS_A_SHARD = 200
"""The host's cost per row grows with the rows of a run, by 0.14 ms for each, so shards are small; but not smaller: at
the end of every shard fewer requests are on their way than could be."""

ROWS_A_TASK = 500
"""The same for a cluster's tasks, each of which imports AgentCompass first."""

_EVENLY = 4


@dataclass(frozen=True, slots=True)
class ShardRun:
    """One shard, the run that runs it, and how many rows it has."""

    shard: Shard
    run: HostRun
    rows: int

    @property
    def folder(self) -> Path:
        """Give the folder that holds this shard's runs, whenever they were made."""
        return self.run.results_dir / self.run.run_name

    @property
    def log(self) -> Path:
        """Name the file that holds what this run's worker says, beside its run directory."""
        return self.folder / f"{self.run.run_id}.worker.log"

    def run_dir(self) -> Path | None:
        """Give this run's own directory; None while there is none."""
        return next(iter(sorted(self.folder.glob(f"*/{self.run.run_id}"))), None)

    def previous(self) -> Path | None:
        """Give the run directory of this shard and harness that ``--reuse`` goes on with; None when there is none.

        The run's name does not say the harness, and rows of one are none of another.
        """
        return run_to_go_on_with(self.folder, self.run.harness)

    def complete(self) -> Path | None:
        """Give that run directory when every row in it has a verdict, or never will; else None."""
        previous = self.previous()
        if previous is None:
            return None
        try:
            result = read_result(previous)
        except BfclError:
            return None
        return None if set(result.details.error_types) - CHECKER_REASONS else previous


def automatic_shards(rows: int, *, on_cluster: bool = False) -> int:
    """Count the shards a draw is split into unless the user says.

    A multiple of four beyond 250 rows, so that two or four workers have equally many, and the same on every machine,
    so that ``--reuse`` finds them. A cluster's tasks have up to 500 rows each.
    """
    if on_cluster:
        return max(1, -(-rows // ROWS_A_TASK))
    return 1 if rows <= SMALL_RUN else -(-rows // (ROWS_A_SHARD * _EVENLY)) * _EVENLY


def most_at_once(shards: int, cores: int, concurrency: int) -> int:
    """Count the shards that may run at a time: each sends one request at least, and together no more than asked for."""
    return max(1, min(shards, cores, concurrency))


def split(whole: HostRun, takes: Sequence[int], base_urls: Sequence[str], at_once: int) -> tuple[ShardRun, ...]:
    """Split a run into one for each of ``takes``, the numbers of rows; shard i is sent to address i modulo their count.

    The whole run's concurrency is divided among ``at_once``, as ``most_at_once`` counts them. What is left over goes to
    the first where all run at once; otherwise nobody knows which will run together, and it goes to none.
    """
    count = len(takes)
    part, left_over = divmod(whole.concurrency, at_once)
    extra = left_over if at_once == count else 0
    return tuple(
        ShardRun(
            Shard(index, count),
            replace(
                whole,
                base_url=base_urls[index % len(base_urls)],
                benchmark_params={**whole.benchmark_params, "shard": f"{index}/{count}"},
                concurrency=part + (index < extra),
                run_name=f"{whole.run_name}-shard{index}of{count}",
                progress="none",
            ),
            rows,
        )
        for index, rows in enumerate(takes)
    )

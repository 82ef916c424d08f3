"""From one run to its shards: how many, where each one goes, and which have been run already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentcompass_bfcl.errors import BfclError
from agentcompass_bfcl.host import HostRun
from agentcompass_bfcl.merge import CHECKER_REASONS
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.shard import Shard

ROWS_A_SHARD = 500
"""The host's cost per sample grows with the size of a run, and a process uses one core."""


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

    def run_dir(self) -> Path | None:
        """Give this run's own directory; None while there is none."""
        return next(iter(sorted(self.folder.glob(f"*/{self.run.run_id}"))), None)

    def newest(self) -> Path | None:
        """Give the newest run directory of this shard; the host names them by time."""
        found = (path.parent for path in self.folder.glob("*/*/run_info.json"))
        return max(found, key=lambda path: path.name, default=None)

    def complete(self) -> Path | None:
        """Give the newest run directory when every row in it has a verdict, or never will; else None."""
        newest = self.newest()
        if newest is None:
            return None
        try:
            result = read_result(newest)
        except BfclError:
            return None
        return None if set(result.details.error_types) - CHECKER_REASONS else newest


def automatic_shards(rows: int) -> int:
    """Count the shards a draw is split into unless the user says: one up to 500 rows, one more for every 500 more."""
    return max(1, -(-rows // ROWS_A_SHARD))


def split(whole: HostRun, takes: Sequence[int], base_urls: Sequence[str], at_once: int) -> tuple[ShardRun, ...]:
    """Split a run into one for each of ``takes``, the numbers of rows; shard i is sent to address i modulo their count.

    Of the whole run's concurrency each gets its part of those that run at once, and one request at least.
    """
    count = len(takes)
    concurrency = max(1, whole.concurrency // max(1, min(count, at_once)))
    return tuple(
        ShardRun(
            Shard(index, count),
            replace(
                whole,
                base_url=base_urls[index % len(base_urls)],
                benchmark_params={**whole.benchmark_params, "shard": f"{index}/{count}"},
                concurrency=concurrency,
                run_name=f"{whole.run_name}-shard{index}of{count}",
                progress="none",
            ),
            rows,
        )
        for index, rows in enumerate(takes)
    )

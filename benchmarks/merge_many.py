"""Merge a thousand shards, as a whole process: how long does it take, and how much memory?

From the project's folder: ``python -m benchmarks.merge_many [--shards 1000]``. The shards of draw full are written as
JSON results first, each from the package's own scoring of made-up outputs; only ``merge`` is timed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agentcompass_bfcl.dataset import Dataset, Entry, read_dataset
from agentcompass_bfcl.draw import PRESETS, select
from agentcompass_bfcl.official_results import StoredRow
from agentcompass_bfcl.rescore import rescore, result_facts
from agentcompass_bfcl.scope import Drawn
from agentcompass_bfcl.score import Hit, Miss, Verdict
from agentcompass_bfcl.settings import RunSettings
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.sources import open_pinned


def main() -> None:
    """Write the shards, time ``merge`` three times, print the median and the whole's counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=1000)
    count = parser.parse_args().shards
    dataset = read_dataset(open_pinned())
    with tempfile.TemporaryDirectory(prefix="bfcl-merge-") as scratch:
        files = [str(_write(dataset, Shard(index, count), Path(scratch))) for index in range(count)]
        command = [sys.executable, "-m", "agentcompass_bfcl", "merge", "--json", *files]
        seconds = []
        for _ in range(3):
            begun = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds.append(time.perf_counter() - begun)
    document: dict[str, Any] = json.loads(done.stdout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{count} shards, {document['counts']['total']} rows: {sorted(seconds)[1]:.2f} s, peak {peak:.0f} MB")


def _write(dataset: Dataset, shard: Shard, folder: Path) -> Path:
    rows = [StoredRow(entry.id, entry.row) for entry in shard.take(select(PRESETS["full"], dataset))]
    facts = result_facts("some-model", RunSettings(), official_errors=False)
    result = rescore(rows, dataset, _verdict, scope=Drawn(PRESETS["full"], shard), facts=facts)
    file = folder / f"{shard.index}.json"
    file.write_text(result.document.to_json(), encoding="utf-8")
    return file


def _verdict(entry: Entry, output: int) -> Verdict:
    return Hit() if output % 3 else Miss("value_error:string", "")


if __name__ == "__main__":
    main()

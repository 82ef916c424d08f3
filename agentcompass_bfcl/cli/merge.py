"""``merge``: the shards of a run put together, into one run directory or one JSON result."""

from __future__ import annotations

import argparse
import sys

from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.errors import ConfigError, MergeError, counted, one_line
from agentcompass_bfcl.merge import Merged
from agentcompass_bfcl.merged_dir import merge_paths, merge_runs
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.sources import open_pinned


def run_command(namespace: argparse.Namespace) -> int:
    """Merge and print the result. 1 when the shards do not make up one run: every fault on a line of its own."""
    if namespace.out is not None and namespace.out.suffix == ".json":
        raise ConfigError(f"--out {namespace.out} names a folder to make; for a JSON result use --json")
    if namespace.out is None and not namespace.json:
        raise ConfigError("say where to: --out DIR makes a run directory, --json prints the result")
    dataset = read_dataset(open_pinned(namespace.wheel))
    try:
        merged = _merged(namespace, dataset)
    except MergeError as error:
        for fault in error.faults:
            print(f"agentcompass-bfcl: {one_line(fault)}", file=sys.stderr)
        if error.faults:
            raise MergeError(f"{counted(len(error.faults), 'fault', 'faults')}, nothing was merged") from None
        raise
    for note in merged.notes:
        print(f"agentcompass-bfcl: {one_line(note)}", file=sys.stderr)
    document = merged.document
    print(document.to_json() if namespace.json else render_text(document, namespace.out), end="")
    return 0


def _merged(namespace: argparse.Namespace, dataset: Dataset) -> Merged:
    if namespace.out is None:
        return merge_paths(namespace.runs, dataset, allow_errors=namespace.allow_errors)
    return merge_runs(namespace.runs, namespace.out, dataset, allow_errors=namespace.allow_errors)

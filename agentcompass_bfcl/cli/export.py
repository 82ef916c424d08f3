"""``export``: a run in the form another tool reads."""

from __future__ import annotations

import argparse
import sys

from agentcompass_bfcl.cli.output_file import STANDARD_OUTPUT, write_output
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.export import Exported, export_bfcl_eval, export_verdicts
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.verdicts import verdict_lines


def run_command(namespace: argparse.Namespace) -> int:
    """Write the run to ``--out``."""
    if namespace.to == "bfcl-eval":
        return _export_tree(namespace)
    if namespace.model is not None:
        raise ConfigError("--model is for --to bfcl-eval")
    write_output(namespace.out, _text(namespace))
    return 0


def _text(namespace: argparse.Namespace) -> str:
    if namespace.to == "json":
        return read_result(namespace.run_dir).to_json()
    dataset = read_dataset(open_pinned(namespace.wheel))
    return verdict_lines(export_verdicts(namespace.run_dir, dataset))


def _export_tree(namespace: argparse.Namespace) -> int:
    if namespace.out == STANDARD_OUTPUT:
        raise ConfigError("--to bfcl-eval writes a folder; name one with --out")
    dataset = read_dataset(open_pinned(namespace.wheel))
    exported = export_bfcl_eval(namespace.run_dir, namespace.out, dataset, model=namespace.model)
    print(f"{exported.rows} rows in {exported.folder}")
    if exported.left_out:
        print(f"agentcompass-bfcl: {_left_out(exported)}", file=sys.stderr)
    return 0


def _left_out(exported: Exported) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in exported.left_out.items())
    total = sum(exported.left_out.values())
    return f"left out {total} samples without a verdict ({reasons}); use `bfcl evaluate --partial-eval`"

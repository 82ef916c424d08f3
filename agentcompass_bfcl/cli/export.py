"""``export``: a run in the form another tool reads."""

from __future__ import annotations

import argparse
import os
import sys

from agentcompass_bfcl.cli.output_file import STANDARD_OUTPUT, write_output
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.errors import ConfigError, one_line
from agentcompass_bfcl.export import Exported, export_bfcl_eval, export_verdicts
from agentcompass_bfcl.report.csv_tables import samples_csv, subsets_csv
from agentcompass_bfcl.report.junit import junit_xml
from agentcompass_bfcl.report.markdown import render_markdown
from agentcompass_bfcl.run_record import read_record
from agentcompass_bfcl.sample_rows import sample_rows
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.verdicts import verdict_lines

_OF_DIRECTORIES = ("bfcl-eval", "verdicts")


def run_command(namespace: argparse.Namespace) -> int:
    """Write the run to ``--out``."""
    if namespace.to in _OF_DIRECTORIES and os.path.isfile(namespace.run_dir):  # noqa: PTH113  # Path.is_file may raise, as for a name that is too long
        raise ConfigError(f"{namespace.run_dir}: --to {namespace.to} needs the run directory, which holds the replies")
    if namespace.to == "bfcl-eval":
        return _export_tree(namespace)
    if namespace.model is not None:
        raise ConfigError("--model is for --to bfcl-eval")
    write_output(namespace.out, _text(namespace))
    return 0


def _text(namespace: argparse.Namespace) -> str:
    if namespace.to == "verdicts":
        return verdict_lines(export_verdicts(namespace.run_dir, read_dataset(open_pinned(namespace.wheel))))
    record = read_record(namespace.run_dir)
    match namespace.to:
        case "json":
            return record.document.to_json()
        case "csv-subsets":
            return subsets_csv(record.document)
        case "markdown":
            return render_markdown(record.document)
        case "openmetrics":
            from agentcompass_bfcl.report.openmetrics import openmetrics_text

            return openmetrics_text(record.document)
    rows = sample_rows(record, read_dataset(open_pinned(namespace.wheel)))
    return samples_csv(rows) if namespace.to == "csv" else junit_xml(rows)


def _export_tree(namespace: argparse.Namespace) -> int:
    if namespace.out == STANDARD_OUTPUT:
        raise ConfigError("--to bfcl-eval writes a folder; name one with --out")
    dataset = read_dataset(open_pinned(namespace.wheel))
    exported = export_bfcl_eval(namespace.run_dir, namespace.out, dataset, model=namespace.model)
    print(f"{exported.rows} rows in {one_line(str(exported.folder))}")
    if exported.left_out:
        print(f"agentcompass-bfcl: {_left_out(exported)}", file=sys.stderr)
    return 0


def _left_out(exported: Exported) -> str:
    reasons = ", ".join(f"{one_line(reason)} {count}" for reason, count in exported.left_out.items())
    total = sum(exported.left_out.values())
    return f"left out {total} samples without a verdict ({reasons}); use `bfcl evaluate --partial-eval`"

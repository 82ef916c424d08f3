"""``report``: one self-contained HTML file, or Markdown or text for a terminal."""

from __future__ import annotations

import argparse

from agentcompass_bfcl.cli.output_file import write_output
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import Comparison, compare
from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.errors import CompareError
from agentcompass_bfcl.report.markdown import render_markdown
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.run_record import RunRecord, read_record
from agentcompass_bfcl.sources import open_pinned


def run_command(namespace: argparse.Namespace) -> int:
    """Write the report of one or more runs; further runs are compared with the first where that can be."""
    records = [read_record(path) for path in namespace.runs]
    write_output(namespace.out, _text(records, namespace))
    return 0


def _text(records: list[RunRecord], namespace: argparse.Namespace) -> str:
    if namespace.format == "text":
        return "\n".join(render_text(record.document, record.source) for record in records)
    if namespace.format == "md":
        return "\n".join(render_markdown(record.document) for record in records)
    from agentcompass_bfcl.report.html import render_html

    dataset = read_dataset(open_pinned(namespace.wheel))
    comparisons, notes = _comparisons(records, dataset)
    return render_html(records, dataset, comparisons, notes)


def _comparisons(records: list[RunRecord], dataset: Dataset) -> tuple[list[Comparison], list[str]]:
    named = clusters(dataset.by_id.values())
    comparisons = []
    try:
        for other in records[1:]:
            comparisons.append(compare(records[0], other, named))
    except CompareError as error:
        return [], [f"The runs cannot be compared: {error}"]
    return comparisons, []

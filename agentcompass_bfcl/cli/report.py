"""``report``: one self-contained HTML file, or Markdown or text for a terminal."""

from __future__ import annotations

import argparse

from agentcompass_bfcl.cli.output_file import write_output
from agentcompass_bfcl.report.markdown import render_markdown
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.run_record import RunRecord, read_record


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
    from agentcompass_bfcl.cli.html_report import report_of_records  # templates and charts, which the others do without
    from agentcompass_bfcl.sources import open_pinned

    return report_of_records(records, open_pinned(namespace.wheel))

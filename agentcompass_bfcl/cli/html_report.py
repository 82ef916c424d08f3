"""The HTML report of runs, with what it takes to compare them and to show what was called."""

from __future__ import annotations

from collections.abc import Sequence

from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import Comparison, compare
from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.drawn_rows import drawn_attempts
from agentcompass_bfcl.errors import CompareError
from agentcompass_bfcl.official import load_official
from agentcompass_bfcl.report.html import Reported, render_html
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.task import Mode
from agentcompass_bfcl.wheel import Wheel


def report_of_records(records: Sequence[RunRecord], wheel: Wheel) -> str:
    """Report run directories with their attempts, and results in JSON without."""
    dataset = read_dataset(wheel)
    runs = [
        Reported(record, drawn_attempts(record.source, dataset) if record.is_directory else ()) for record in records
    ]
    return html_report(runs, dataset, wheel)


def html_report(runs: Sequence[Reported], dataset: Dataset, wheel: Wheel) -> str:
    """Write the page, with each further run compared with the first, or why that cannot be."""
    comparisons, notes = _comparisons([run.record for run in runs], dataset)
    has_texts = any(run.record.identity.get("mode") == Mode.PROMPT.value for run in runs)
    return render_html(runs, dataset, comparisons, notes, load_official(wheel) if has_texts else None)


def _comparisons(records: Sequence[RunRecord], dataset: Dataset) -> tuple[dict[int, Comparison], list[str]]:
    """Compare each further run with the first, by its place; where that cannot be, a sentence says why."""
    named = clusters(dataset.by_id.values())
    comparisons, notes = {}, []
    for place, other in enumerate(records[1:], 1):
        try:
            comparisons[place] = compare(records[0], other, named)
        except CompareError as error:
            notes.append(f"Run {place + 1} cannot be compared with the first: {error}")
    return comparisons, notes

"""A run as comma-separated values: a line a sample, or a line a subset."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, fields

from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.sample_rows import SampleRow

# A spreadsheet takes a cell that begins so for a formula, and the text is a model's.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def samples_csv(rows: Iterable[SampleRow]) -> str:
    """Write a line an attempt; what is not known is empty. Text that a spreadsheet would compute gets an apostrophe."""
    return _table([field.name for field in fields(SampleRow)], map(astuple, rows))


def subsets_csv(document: ResultDocument) -> str:
    """Write a line a subset, with its accuracy and standard error in percent and points."""
    statistics = document.details.statistics
    header = ["subset", "category", "hits", "n", "errors", "accuracy", "standard_error", "low", "high"]
    lines = []
    for name, subset in document.details.subsets.items():
        bars = None if statistics is None else statistics.subsets.get(name)
        low, high = (None, None) if bars is None or bars.interval is None else bars.interval
        error = None if bars is None else bars.standard_error
        lines.append([name, subset.category, subset.hits, subset.n, subset.errors, subset.accuracy, error, low, high])
    return _table(header, lines)


def _table(header: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)  # lines end as RFC 4180 has it, so that either end inside a cell is quoted
    writer.writerow(header)
    writer.writerows(map(_cell, line) for line in lines)
    return out.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return f"'{text}" if text.startswith(_FORMULA) else text

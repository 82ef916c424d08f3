"""The options of ``rescore`` and ``export``; apart from the commands, so that ``--help`` imports neither."""

from __future__ import annotations

import argparse
from pathlib import Path

WHEEL_HELP = "the pinned bfcl-eval wheel, or a folder with it; otherwise BFCL_WHEEL, then the cache, then pip"


def add_rescore_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``rescore``. None stands for an option that was not given."""
    parser.add_argument(
        "paths",
        metavar="PATH",
        type=Path,
        nargs="+",
        help="bfcl-eval results (a file, a model's folder or a folder of models) or a run directory",
    )
    rows = parser.add_argument_group(
        "which rows have to be there; without these options every row of each subset that has a file, "
        "or all that a run had to score"
    )
    rows.add_argument("--partial", action="store_true", help="take the rows that are there; none is missing")
    rows.add_argument("--draw", help="golden, echolp, mini, full or all; rows outside the draw are passed over")
    rows.add_argument("--categories", help="only these: non_live, live, hallucination (commas between)")
    rows.add_argument(
        "--category-pct", action="append", metavar="CATEGORY=PERCENT", help="percent of each subset; may be repeated"
    )
    rows.add_argument("--subset-floor", type=int, metavar="ROWS", help="subsets of at most so many rows are whole")
    rows.add_argument("--subsets", help="only these subsets (commas between)")
    rows.add_argument("--limit", type=int, metavar="ROWS", help="at most so many rows, spread over the subsets")
    rows.add_argument("--shard", metavar="INDEX/COUNT", help="which part of the draw; indices are 0-based")
    judging = parser.add_argument_group("how they are judged")
    judging.add_argument("--mode", help="how functions were offered: fc or prompt; a run knows, for results fc")
    judging.add_argument(
        "--strip-think", action="store_true", default=None, help="prompt mode: cut off a leading <think>...</think>"
    )
    judging.add_argument("--on-error", help="rows without a verdict: fail (count as wrong) or exclude")
    judging.add_argument(
        "--official-errors", action="store_true", help="take stored inference errors for answers, as bfcl-eval does"
    )
    judging.add_argument("--keep-going", action="store_true", help="count the good rows of files with broken lines")
    judging.add_argument("--wheel", type=Path, help=WHEEL_HELP)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--verdicts", type=Path, metavar="FILE", help="write one JSON line a row; - prints them instead of the table"
    )
    output.add_argument("--json", action="store_true", help="print JSON for machines; a list for several models")
    output.add_argument(
        "--report", type=Path, metavar="FILE", help="write the HTML report as well, several models over each other"
    )


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``export``."""
    parser.add_argument(
        "run_dir", metavar="RUN", type=Path, help="run directory; for json, csv, markdown and so on also a JSON result"
    )
    parser.add_argument(
        "--to",
        required=True,
        choices=("bfcl-eval", "verdicts", "json", "csv", "csv-subsets", "junit", "markdown", "openmetrics"),
        help="a tree that `bfcl evaluate` reads; a JSON line a row; the result as JSON; a line a sample, or a subset,"
        " as CSV; a case a sample as JUnit; tables; OpenMetrics text for Prometheus",
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="PATH",
        help="new or empty folder for bfcl-eval, else a file; - is standard output",
    )
    parser.add_argument("--model", help="model name to write, one bfcl-eval knows; otherwise the run's (bfcl-eval)")
    parser.add_argument("--wheel", type=Path, help=WHEEL_HELP)

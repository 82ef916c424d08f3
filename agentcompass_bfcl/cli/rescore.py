"""``rescore``: judge stored outputs again, of bfcl-eval result files or of a run, and print the result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from agentcompass_bfcl.bounded import Judge
from agentcompass_bfcl.cli.output_file import STANDARD_OUTPUT, write_output
from agentcompass_bfcl.cli.stored_outputs import Source, find_sources, judging_settings
from agentcompass_bfcl.dataset import Dataset, Entry, read_dataset
from agentcompass_bfcl.errors import ConfigError, counted, one_line
from agentcompass_bfcl.json_files import json_text
from agentcompass_bfcl.official import load_official
from agentcompass_bfcl.official_results import ResultFault, StoredRow, rows_only
from agentcompass_bfcl.report.leaderboard import render_leaderboard
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.rescore import Rescored, judged_attempt, rescore
from agentcompass_bfcl.response import without_leading_think
from agentcompass_bfcl.run_dir import Attempt, in_attempt_order
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.score import Verdict
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.verdicts import VerdictRow, verdict_lines
from agentcompass_bfcl.wheel import Wheel

_MOST_LISTED = 20  # faults, with --keep-going


def run_command(namespace: argparse.Namespace) -> int:
    """Judge everything, then print. 0 when every model has a row that could be scored, and no line was broken.

    A broken line is an error, and then nothing is written; with ``--keep-going`` the other rows count.
    """
    if [namespace.verdicts, namespace.report].count(STANDARD_OUTPUT) + bool(namespace.json) > 1:
        raise ConfigError("only one of --verdicts -, --report - and --json can write to standard output")
    settings = judging_settings(namespace)
    wheel = open_pinned(settings.wheel)
    faults: list[ResultFault] = []
    with Judge(load_official(wheel), wheel.path) as judge:
        judge.start()  # it gets ready while the rows are read
        dataset = read_dataset(wheel)
        sources = _with_outputs(list(find_sources(namespace, settings, dataset)))
        if namespace.verdicts is not None and len(sources) > 1:
            raise ConfigError(f"--verdicts is for one model at a time, and {len(sources)} were given")
        attempts: list[list[Attempt]] = [[] for _ in sources]
        results = [
            _rescored(source, dataset, judge, faults, None if namespace.report is None else kept)
            for source, kept in zip(sources, attempts, strict=True)
        ]
    _report_faults(faults, keep_going=namespace.keep_going)
    if faults and not namespace.keep_going:
        return 1
    if namespace.verdicts is not None:
        write_output(namespace.verdicts, verdict_lines(results[0].verdicts))
    if namespace.report is not None:
        write_output(namespace.report, _report(sources, results, attempts, dataset, wheel))
    if STANDARD_OUTPUT not in (namespace.verdicts, namespace.report):
        print(_json(results) if namespace.json else _text(sources, results), end="")
    return 0 if all(list(map(_anything_scored, sources, results))) else 1


def _with_outputs(sources: Sequence[Source]) -> list[Source]:
    for source in sources:
        if source.ignored:
            _note(f"{source.folder}: not single-turn, ignored: {', '.join(file.name for file in source.ignored)}")
    return [source for source in sources if not source.is_empty]


def _rescored(
    source: Source, dataset: Dataset, judge: Judge, faults: list[ResultFault], kept: list[Attempt] | None
) -> Rescored:
    settings = source.settings

    def keep(row: StoredRow, judged: VerdictRow) -> None:
        if kept is not None:
            kept.append(judged_attempt(row, judged))

    def verdict(entry: Entry, output: Any) -> Verdict:
        if settings.strip_think and isinstance(output, str):
            output = without_leading_think(output)
        return judge.verdict(entry, output, settings.mode)

    result = rescore(
        rows_only(source.items, faults),
        dataset,
        verdict,
        scope=source.scope,
        facts=source.facts,
        on_error=settings.on_error,
        keep=keep,
    )
    if result.outside:
        _note(f"{source.name}: {result.outside} rows outside the draw were passed over")
    return result


def _report(
    sources: Sequence[Source],
    results: Sequence[Rescored],
    attempts: Sequence[list[Attempt]],
    dataset: Dataset,
    wheel: Wheel,
) -> str:
    """Write the HTML report of what was judged, rows that were not there among it."""
    from agentcompass_bfcl.cli.html_report import html_report
    from agentcompass_bfcl.report.html import Reported

    runs = []
    for source, result, kept in zip(sources, results, attempts, strict=True):
        missing = [judged_attempt(StoredRow(row.id, None), row) for row in result.verdicts[len(kept) :]]
        record = RunRecord(source.folder, result.document, None, is_directory=False)
        runs.append(Reported(record, in_attempt_order([*kept, *missing])))
    return html_report(runs, dataset, wheel)


def _report_faults(faults: Sequence[ResultFault], *, keep_going: bool) -> None:
    if not faults:
        return
    for fault in faults[:_MOST_LISTED] if keep_going else faults:
        _note(str(fault))
    if keep_going:
        more = f", the first {_MOST_LISTED} of them above" if len(faults) > _MOST_LISTED else ""
        _note(f"{counted(len(faults), 'fault', 'faults')}{more}; only the other rows were read")
    else:
        _note(
            f"{counted(len(faults), 'fault', 'faults')}, nothing was scored; "
            "mend the files, or use --keep-going to count the other rows"
        )


def _anything_scored(source: Source, result: Rescored) -> bool:
    if not result.document.counts.evaluated:
        _note(f"{source.name}: no row could be scored")
        return False
    return True


def _json(results: Sequence[Rescored]) -> str:
    if len(results) == 1:
        return results[0].document.to_json()
    documents = [result.document.model_dump(mode="json") for result in results]
    return json_text(documents, sort_keys=True)


def _text(sources: Sequence[Source], results: Sequence[Rescored]) -> str:
    blocks = []
    for source, result in zip(sources, results, strict=True):
        document = result.document
        board = render_leaderboard(document.tallies(), source.settings.on_error) if document.details.subsets else ""
        blocks.append(f"{render_text(document, source.folder)}\n{board}")
    return "\n\n".join(blocks)


def _note(text: str) -> None:
    print(f"agentcompass-bfcl: {one_line(text)}", file=sys.stderr)

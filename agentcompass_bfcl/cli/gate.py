"""``gate``: pass or fail a result in CI, with a reason for every check."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from agentcompass_bfcl.baseline import BUILT_IN, Baseline, baseline_toml, read_baselines
from agentcompass_bfcl.cli.output_file import write_output
from agentcompass_bfcl.errors import BfclError, GateError, one_line
from agentcompass_bfcl.gate import Check, Decision, Status, judge, not_ready, worst
from agentcompass_bfcl.not_worse import not_worse
from agentcompass_bfcl.report.decision import decision_json, decision_junit, decision_markdown, render_decision
from agentcompass_bfcl.run_record import RunRecord, read_record

EXIT_CODES = {Status.PASSED: 0, Status.ERROR: 1, Status.FAILED: 3, Status.NOT_JUDGED: 4}
_USAGE = 2
_MOST_POINTS = 100


def run_command(namespace: argparse.Namespace) -> int:
    """Decide. 0 passed, 1 error, 2 usage, 3 failed, 4 cannot be judged; of several runs the worst: 1, 4, 3, 0.

    A run that cannot be read or is damaged does not keep the others from being judged and reported.
    """
    wrong = _wrong_usage(namespace)
    if wrong is not None:
        print(f"agentcompass-bfcl: {wrong}", file=sys.stderr)
        return _USAGE
    if namespace.write_baseline is not None:
        return _write_baseline(namespace, read_record(namespace.runs[0]))
    baselines = _baselines(namespace)
    other = None if namespace.not_worse_than is None else read_record(namespace.not_worse_than)
    if other is not None:
        not_ready(other)  # a damaged yardstick is an error of the command, and not of each run
    decisions = [_decide(path, baselines, other, namespace.margin) for path in namespace.runs]
    if namespace.junit is not None:
        write_output(namespace.junit, decision_junit(decisions))
    summary = _summary_file(namespace.summary, os.environ)
    if summary is not None:
        _append(summary, decision_markdown(decisions))
    print(decision_json(decisions) if namespace.json else render_decision(decisions), end="")
    return EXIT_CODES[worst(decisions)]


def _wrong_usage(namespace: argparse.Namespace) -> str | None:
    asked = namespace.baseline_file or namespace.baseline or namespace.not_worse_than
    if namespace.write_baseline is not None:
        reports = namespace.junit or namespace.summary or namespace.json or namespace.margin is not None
        if asked or reports or len(namespace.runs) > 1:
            return "--write-baseline takes one run, decides nothing, and has nothing to report"
        return None
    if namespace.name is not None or namespace.for_model or namespace.force:
        return "--name, --for-model and --force are for --write-baseline"
    if not asked:
        return "nothing to go by: give --baseline-file, --baseline, --not-worse-than, or --write-baseline to make one"
    if namespace.baseline and not namespace.baseline_file and namespace.baseline not in BUILT_IN:
        return f"--baseline {namespace.baseline}: built in are {', '.join(BUILT_IN)}; others need --baseline-file"
    if namespace.margin is not None and (
        not namespace.not_worse_than or not namespace.margin.is_finite() or not 0 <= namespace.margin <= _MOST_POINTS
    ):
        return "--margin is for --not-worse-than, in points, 0 to 100"
    return None


def _baselines(namespace: argparse.Namespace) -> tuple[Baseline, ...] | None:
    if namespace.baseline_file is None:
        return (BUILT_IN[namespace.baseline],) if namespace.baseline else None
    baselines = read_baselines(namespace.baseline_file)
    if namespace.baseline is None:
        return baselines
    named = tuple(baseline for baseline in baselines if baseline.name == namespace.baseline)
    if not named:
        raise GateError(f"{namespace.baseline_file}: no baseline named {namespace.baseline!r}")
    return named


def _decide(
    path: Path, baselines: tuple[Baseline, ...] | None, other: RunRecord | None, margin: Decimal | None
) -> Decision:
    try:
        record = read_record(path)
        checks = () if baselines is None else judge(record, baselines)
        if other is not None:
            checks = (*checks, not_worse(record, other, margin))
        return Decision(path, record.identity, checks)
    except BfclError as error:
        print(f"agentcompass-bfcl: {one_line(str(error))}", file=sys.stderr)
        return Decision(path, {}, (Check("result", Status.ERROR, str(error)),))


def _write_baseline(namespace: argparse.Namespace, record: RunRecord) -> int:
    lacking = not_ready(record)
    if lacking is not None:
        raise GateError(f"{record.source}: {lacking.reason}")
    text = baseline_toml(record.document, name=namespace.name, for_model=namespace.for_model)
    file: Path = namespace.write_baseline
    if file.exists() and not namespace.force:
        raise GateError(f"{file} is there already; --force writes over it")
    write_output(file, text)
    return 0


def _summary_file(given: str | None, environ: Mapping[str, str]) -> Path | None:
    if given != "auto":
        return None if given is None else Path(given)
    place = environ.get("GITHUB_STEP_SUMMARY")
    return Path(place) if place else None


def _append(file: Path, text: str) -> None:
    try:
        with file.open("a", encoding="utf-8") as summary:
            summary.write(text)
    except OSError as error:
        raise GateError(f"{file}: cannot be written to ({error.strerror})") from None

"""``gate``: pass or fail a result in CI, with a reason for every check."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from agentcompass_bfcl.baseline import BUILT_IN, Baseline, baseline_toml, read_baselines
from agentcompass_bfcl.cli.output_file import write_output
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import compare
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.errors import CompareError, GateError
from agentcompass_bfcl.gate import Check, Decision, Status, judge, not_worse, worst
from agentcompass_bfcl.report.decision import decision_json, decision_junit, decision_markdown, render_decision
from agentcompass_bfcl.run_record import RunRecord, read_record
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.verification import verify

EXIT_CODES = {Status.PASSED: 0, Status.FAILED: 3, Status.NOT_JUDGED: 4}
_USAGE = 2


def run_command(namespace: argparse.Namespace) -> int:
    """Decide. 0 passed, 1 error, 2 usage, 3 failed, 4 cannot be judged; of several runs the worst."""
    wrong = _wrong_usage(namespace)
    if wrong is not None:
        print(f"agentcompass-bfcl: {wrong}", file=sys.stderr)
        return _USAGE
    records = [read_record(path) for path in namespace.runs]
    if namespace.write_baseline is not None:
        return _write_baseline(namespace, records[0])
    baselines = _baselines(namespace)
    decisions = [Decision(record, _checks(record, baselines, namespace)) for record in records]
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
        if asked or len(namespace.runs) > 1:
            return "--write-baseline takes one run, and decides nothing"
        return None
    if not asked:
        return "nothing to go by: give --baseline-file, --baseline, --not-worse-than, or --write-baseline to make one"
    if namespace.baseline and not namespace.baseline_file and namespace.baseline not in BUILT_IN:
        return f"--baseline {namespace.baseline}: built in are {', '.join(BUILT_IN)}; others need --baseline-file"
    if namespace.margin is not None and (
        not namespace.not_worse_than or not namespace.margin.is_finite() or namespace.margin < 0
    ):
        return "--margin is for --not-worse-than, in points, 0 or more"
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


def _checks(
    record: RunRecord, baselines: tuple[Baseline, ...] | None, namespace: argparse.Namespace
) -> tuple[Check, ...]:
    checks: tuple[Check, ...] = ()
    if baselines is not None:
        checks = judge(record, baselines)
    else:
        verify(record.document)
    if namespace.not_worse_than is None:
        return checks
    other = read_record(namespace.not_worse_than)
    named = clusters(read_dataset(open_pinned(namespace.wheel)).by_id.values())
    try:
        return (*checks, not_worse(compare(other, record, named), namespace.margin))
    except CompareError as error:
        return (*checks, Check("not worse", Status.NOT_JUDGED, str(error)))


def _write_baseline(namespace: argparse.Namespace, record: RunRecord) -> int:
    verify(record.document)
    if not record.shard.is_whole:
        raise GateError(f"{record.source}: shard {record.shard} alone; merge all shards first")
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

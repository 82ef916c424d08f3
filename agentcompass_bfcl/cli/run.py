"""``run``: a draw against an endpoint, in AgentCompass, and the result as a table."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from agentcompass_bfcl.cli.run_plan import RunPlan, run_plan
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import repeat_spread
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import RunFailedError, one_line
from agentcompass_bfcl.host import HostRun, require_writable, run_in_host
from agentcompass_bfcl.json_files import json_text
from agentcompass_bfcl.report.comparison import render_spread
from agentcompass_bfcl.report.comparison_document import spread_document
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.run_record import RunRecord, read_record
from agentcompass_bfcl.workers.processes import cores, run_processes
from agentcompass_bfcl.workers.progress import Progress
from agentcompass_bfcl.workers.provisional import Provisional
from agentcompass_bfcl.workers.sharded import Execute, run_sharded

_EXIT_NOTHING_SCORED = 1


def run_command(namespace: argparse.Namespace) -> int:
    """Run, then print the result. 0 only when the run finished and something could be scored.

    With ``--repeat`` a last paragraph says what changed with nothing changed; in JSON there is then one object,
    ``{"schema_version", "results", "same_build"}``.
    """
    several = namespace.repeat > 1
    codes, folders = [], []
    for number in range(max(1, namespace.repeat)):
        plan = run_plan(namespace, datetime.now(UTC), os.environ, cores(), number)
        code, run_dir = _run_and_report(plan, as_json=namespace.json, silent=several and namespace.json)
        codes.append(code)
        folders.append(run_dir)
    if several:
        _report_repeats([read_record(folder) for folder in folders], plan.dataset, as_json=namespace.json)
    return max(codes)


def _report_repeats(records: list[RunRecord], dataset: Dataset, *, as_json: bool) -> None:
    scored = [record for record in records if record.document.counts.evaluated]
    spread = repeat_spread(scored, clusters(dataset.by_id.values())) if len(scored) > 1 else None
    if as_json:
        document = {
            "schema_version": 1,
            "results": [record.document.model_dump(mode="json") for record in records],
            "same_build": None if spread is None else spread_document(spread).model_dump(mode="json"),
        }
        print(json_text(document, sort_keys=True), end="")
    elif spread is not None:
        print(f"\n{render_spread(spread)}", end="")


def run_and_report(run: HostRun, *, as_json: bool) -> int:
    """Run in this process and print what the run directory says; the host's own output goes to stderr with JSON."""
    with _host_output(as_json=as_json):
        run_dir, failure = _run(run)
    return _report(run_dir, failure, as_json=as_json)


def _run_and_report(plan: RunPlan, *, as_json: bool, silent: bool) -> tuple[int, Path]:
    require_writable(plan.whole.results_dir)
    if len(plan.shards) == 1:
        with _host_output(as_json=as_json):
            run_dir, failure = _run(plan.whole)
        return _report(run_dir, failure, as_json=as_json, silent=silent), run_dir
    merged, out, failed = run_sharded(
        plan.shards, _executor(plan), plan.dataset, out_name=plan.whole.run_name, facts=plan.facts
    )
    for note in merged.notes:
        print(f"agentcompass-bfcl: {one_line(note)}", file=sys.stderr)
    failure = RunFailedError(f"the host ended shard {', '.join(failed)} as failed", out) if failed else None
    return _report(out, failure, as_json=as_json, silent=silent), out


def _executor(plan: RunPlan) -> Execute:
    asked = plan.whole.progress
    provisional = Provisional(plan.dataset)
    progress = Progress(sys.stderr, shown=asked != "none", plain=asked == "plain", provisional=provisional)
    if plan.on_ray:
        from agentcompass_bfcl.workers.ray_cluster import run_on_ray

        return lambda runs: run_on_ray(runs, plan.ray_address, at_once=plan.at_once, progress=progress)
    return lambda runs: run_processes(runs, at_once=plan.at_once, progress=progress)


def _host_output(*, as_json: bool) -> contextlib.AbstractContextManager[object]:
    return contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()


def _report(run_dir: Path, failure: RunFailedError | None, *, as_json: bool, silent: bool = False) -> int:
    result = read_result(run_dir)
    if not silent:
        print(result.to_json() if as_json else render_text(result, run_dir), end="")
    if failure is not None:
        raise failure
    if not result.counts.evaluated:
        print("agentcompass-bfcl: no sample could be scored; see the errors above and run.log", file=sys.stderr)
        return _EXIT_NOTHING_SCORED
    return 0


def _run(run: HostRun) -> tuple[Path, RunFailedError | None]:
    try:
        return run_in_host(run), None
    except RunFailedError as error:
        if error.run_dir is None or not (error.run_dir / "metrics.json").is_file():
            raise
        return error.run_dir, error

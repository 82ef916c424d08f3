"""``run``: a draw against an endpoint, in AgentCompass, and the result as a table."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentcompass_bfcl.cli.settings import benchmark_params
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.draw import select
from agentcompass_bfcl.errors import ConfigError, RunFailedError
from agentcompass_bfcl.host import HostRun, run_in_host
from agentcompass_bfcl.identity import question_identity, short_identity
from agentcompass_bfcl.parsers import require_prompt_parsers
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.settings import RunSettings, parse_settings
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.task import Mode

_EXIT_NOTHING_SCORED = 1


def run_command(namespace: argparse.Namespace) -> int:
    """Run, then print the result. 0 only when the run finished and something could be scored."""
    return run_and_report(host_run(namespace, datetime.now(UTC), os.environ), as_json=namespace.json)


def run_and_report(run: HostRun, *, as_json: bool) -> int:
    """Run in the host and print what its run directory says; the host's own output goes to stderr with JSON."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        run_dir, failure = _run(run)
    result = read_result(run_dir)
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


def host_run(namespace: argparse.Namespace, now: datetime, environ: Mapping[str, str]) -> HostRun:
    """Turn the options into one host run, everything checked that can be checked before the first request.

    The run's name holds a digest of what is asked and of whom, so that ``--reuse`` finds this run and no other: the
    host itself reuses rows across changed parameters without a word.
    """
    params = benchmark_params(namespace)
    settings = parse_settings(params)
    if namespace.concurrency < 1 or namespace.attempts < 1:
        raise ConfigError("--concurrency and --attempts are 1 or more")
    dataset = read_dataset(open_pinned(settings.wheel))
    # The benchmark asks as well, but the host would print its refusal with a traceback.
    if settings.mode is Mode.PROMPT:
        require_prompt_parsers(entry.subset for entry in select(settings.spec, dataset))
    model_params = _model_params(namespace)
    asked = question_identity(settings, dataset, model_params)
    base_url = namespace.base_url or environ.get("OPENAI_BASE_URL", "")  # which the library would take in silence
    # The model as well: the host writes org/m and org_m as one folder.
    whom = {"model": namespace.model, "base_url": base_url, "attempts": namespace.attempts}
    digest = short_identity({**asked, **whom})
    return HostRun(
        model=namespace.model,
        base_url=base_url,
        api_key=environ.get(namespace.api_key_env, ""),
        harness=namespace.harness,
        benchmark_params=params,
        model_params=model_params,
        harness_params=_harness_params(namespace),
        concurrency=namespace.concurrency,
        results_dir=namespace.results_dir,
        run_name=str(Path(namespace.run_name) / f"{settings.draw_name}-{digest}{_shard_suffix(settings)}"),
        run_id=now.strftime("%Y%m%d-%H%M%S-%f"),
        reuse=namespace.reuse,
        attempts=namespace.attempts,
        analysis=namespace.analysis,
        progress=namespace.progress,
    )


def _shard_suffix(settings: RunSettings) -> str:
    shard = settings.shard
    return "" if shard.is_whole else f"-shard{shard.index}of{shard.count}"


def _model_params(namespace: argparse.Namespace) -> dict[str, Any]:
    try:
        params = json.loads(namespace.model_params) if namespace.model_params else {}
    except ValueError as error:
        raise ConfigError(f"--model-params is not JSON ({error})") from None
    if not isinstance(params, dict):
        raise ConfigError(f"--model-params is {namespace.model_params}; a JSON object is expected")
    for name in ("temperature", "top_p", "max_tokens", "seed"):
        value = getattr(namespace, name)
        if value is not None:
            params[name] = value
    return params


def _harness_params(namespace: argparse.Namespace) -> dict[str, Any]:
    given = {
        "request_timeout_seconds": namespace.timeout,
        "max_retries": namespace.retries,
        "retry_budget_seconds": namespace.retry_seconds,
    }
    params = {name: value for name, value in given.items() if value is not None}
    if namespace.harness != "bfcl_chat" and set(params) - {"max_retries"}:
        raise ConfigError("--timeout and --retry-seconds are for the harness bfcl_chat")
    return params

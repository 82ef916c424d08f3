"""AgentCompass as a library: make the benchmark known to it, and run it from this process."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentcompass_bfcl.errors import BfclError, ConfigError, EndpointError, RunFailedError
from agentcompass_bfcl.host_log import failures_said_once
from agentcompass_bfcl.identity import without_credentials
from agentcompass_bfcl.request_params import check_model_params
from agentcompass_bfcl.response import TransportFailure
from agentcompass_bfcl.reuse import run_to_go_on_with
from agentcompass_bfcl.settings import parse_base_url

# Codes of failures that a repeated run should not take over: ours, the stock harness's, and the host's own.
_PASSING_FAULTS = (
    "^transport_",
    "^checker_",
    "^model_failed$",
    "^model_timeout$",
    "^(evaluate|run|harness)_failed$",
    "^time_limit$",
)

_BY_DEFAULT = "of the OpenAI library (no --base-url was given)"
_BLOCK = 4096  # bytes; a full disk may still take an empty file


def register() -> None:
    """Make ``bfcl`` and ``bfcl_chat`` known to AgentCompass in this process. Call it before any run; twice is fine.

    AgentCompass finds third-party components only once their module was imported. Takes 5-10 s, its import.
    """
    # litellm, which AgentCompass imports, otherwise asks the network for a price list.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    importlib.import_module("agentcompass_bfcl.benchmark")
    importlib.import_module("agentcompass_bfcl.harness")


@dataclass(frozen=True, slots=True)
class HostRun:
    """One run as the host is asked for it. ``run_name`` must differ between runs that may not share rows.

    ``analysis`` and ``events`` are features of the host that cost time and that no score needs: its analysis of each
    attempt, and progress.jsonl with progress.json at every event instead of once a second. A display on the terminal
    needs every event as well.
    """

    model: str
    base_url: str
    api_key: str = field(repr=False)
    harness: str
    benchmark_params: Mapping[str, Any]
    model_params: Mapping[str, Any]
    harness_params: Mapping[str, Any]
    concurrency: int
    results_dir: Path
    run_name: str
    run_id: str
    reuse: bool = False
    attempts: int = 1
    analysis: bool = False
    events: bool = False
    progress: str = "auto"

    @property
    def is_shown(self) -> bool:
        """Tell whether the host is to show its progress on the terminal."""
        return self.progress == "plain" or (self.progress == "auto" and sys.stderr.isatty())


def run_in_host(run: HostRun) -> Path:
    """Run in AgentCompass and return the run directory, which holds metrics.json, summary.md and every attempt.

    Raises ``EndpointError`` at once when the endpoint serves no sample at all; what was scored stays on disk and is
    used again with ``reuse``. Raises ``RunFailedError`` when the host ends the run as failed, as it does for one
    HTTP 500 through its own harness; a result may be in the run directory all the same. Raises it as well when a file
    cannot be written or read on the way, and ``ConfigError`` when none can be written from the start.
    """
    require_writable(run.results_dir)
    register()
    with failures_said_once():
        return asyncio.run(_run(run))


def require_writable(results_dir: Path) -> None:
    """Raise ``ConfigError`` when no file can be written into a folder, which is made unless it is there.

    The host finds that out after its import of some seconds, and says it with tracebacks.
    """
    try:
        results_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=results_dir) as file:
            file.write(bytes(_BLOCK))
    except OSError as error:
        raise ConfigError(
            f"--results-dir {results_dir}: nothing can be written there ({error.strerror}); make room, or name another"
        ) from None


async def _run(run: HostRun) -> Path:
    from agentcompass.launcher import async_run_evaluation

    from agentcompass_bfcl.harness import endpoint_listener

    _refuse_what_cannot_be_sent(run)
    unusable: list[TransportFailure] = []

    def give_up(failure: TransportFailure) -> None:
        unusable.append(failure)
        evaluation.cancel()

    token = endpoint_listener.set(give_up)
    arguments = {
        "benchmark": "bfcl",
        "harness": run.harness,
        "model": run.model,
        "model_base_url": run.base_url,
        "model_api_key": run.api_key,
        "benchmark_params": dict(run.benchmark_params),
        "model_params": dict(run.model_params),
        "harness_params": dict(run.harness_params),
        "task_concurrency": run.concurrency,
        "k": run.attempts,
        "results_dir": str(run.results_dir),
        "run_name": run.run_name,
        "run_id": run.run_id,
        "enable_analysis": run.analysis,
        "progress": run.progress,
        "log_level": "WARNING",
        "file_log_level": "INFO",
    }
    if not run.events and not run.is_shown:
        from agentcompass_bfcl.host_progress import lean_reporter

        arguments["on_progress"] = lean_reporter(run.run_id, run.harness, run.model, lambda: _run_dir(run))
    previous = run_to_go_on_with(run.results_dir / run.run_name, run.harness) if run.reuse else None
    if previous is not None:
        # The host reuses failed samples as they are unless it may retry them; it allows no delay of 0.
        arguments |= {"reuse": True, "reuse_run_id": previous.name}
        arguments |= {"max_retries": 1, "retry_pattern_list": [*_PASSING_FAULTS]}
        arguments |= {"execution_params": {"retry_min_delay_seconds": 0.01, "retry_max_delay_seconds": 1.0}}
    evaluation = asyncio.create_task(async_run_evaluation(**arguments))
    try:
        result = await evaluation
    except asyncio.CancelledError:
        if not unusable:
            raise
        raise EndpointError(
            f"the endpoint {without_credentials(run.base_url) or _BY_DEFAULT} cannot be used: {unusable[0].message}; "
            "mend it and run again with --reuse to keep what was scored"
        ) from None
    except ValueError as error:
        if isinstance(error, BfclError):
            raise
        raise ConfigError(f"the host refuses the run: {' '.join(str(error).split())}") from error
    except RuntimeError as error:
        raise RunFailedError(f"the host ended the run as failed: {error}", _run_dir(run)) from error
    except OSError as error:
        raise RunFailedError(_file_trouble(error, run), _run_dir(run)) from error
    finally:
        endpoint_listener.reset(token)
    return Path(result["paths"]["metrics_json"]).parent


def _refuse_what_cannot_be_sent(run: HostRun) -> None:
    # The host would find some of this as well, and print a traceback with it.
    from agentcompass_bfcl.harness import BfclChatConfig, BfclChatHarness

    parse_base_url(run.base_url)
    check_model_params(dict(run.model_params))
    if run.harness == BfclChatHarness.id:
        BfclChatConfig.from_params(dict(run.harness_params), field_name="harness parameters")


def _file_trouble(error: OSError, run: HostRun) -> str:
    what = f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}"
    return (
        f"{run.results_dir / run.run_name}: the run was given up, as the host could not go on writing there: {what}; "
        "mend that and run again with --reuse to keep what was scored"
    )


def _run_dir(run: HostRun) -> Path | None:
    found = sorted((run.results_dir / run.run_name).glob(f"*/{run.run_id}"))
    return found[-1] if found else None


def host_configuration_files() -> list[Path]:
    """List the configuration files AgentCompass would merge, silently, into a run started in this directory."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from agentcompass.runtime.config import load_run_config

    return list(load_run_config(None).paths)

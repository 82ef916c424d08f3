"""From ``run``'s options to what the host is asked for, everything checked that can be before the first request."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agentcompass_bfcl.cli.settings import benchmark_params
from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.draw import plan, select
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.host import HostRun
from agentcompass_bfcl.identity import question_identity, short_identity, without_credentials
from agentcompass_bfcl.parsers import require_prompt_parsers
from agentcompass_bfcl.request_params import check_limits, check_model_params
from agentcompass_bfcl.settings import RunSettings, parse_base_url, parse_settings
from agentcompass_bfcl.shard import shard_plan
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.task import Mode
from agentcompass_bfcl.workers.plan import ShardRun, automatic_shards, most_at_once, split

_LONGEST_FOLDER_NAME = 255  # bytes


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run and its shards; one shard is the run itself, in this process. ``facts`` are those of all together."""

    whole: HostRun
    shards: tuple[ShardRun, ...]
    dataset: Dataset
    facts: Mapping[str, Any]
    at_once: int
    on_ray: bool
    ray_address: str | None


def run_plan(
    namespace: argparse.Namespace, now: datetime, environ: Mapping[str, str], cores: int, number: int = 0
) -> RunPlan:
    """Plan a run; ``number`` counts repeated ones, each of which has a name of its own from the second on.

    The run's name holds a digest of what is asked and of whom, so that ``--reuse`` finds this run and no other: the
    host itself reuses rows across changed parameters without a word.
    """
    params = benchmark_params(namespace)
    settings = parse_settings(params)
    if min(namespace.concurrency, namespace.attempts, namespace.repeat) < 1:
        raise ConfigError("--concurrency, --attempts and --repeat are 1 or more")
    dataset = read_dataset(open_pinned(settings.wheel))
    # The benchmark asks as well, but the host would print its refusal with a traceback.
    if settings.mode is Mode.PROMPT:
        require_prompt_parsers(entry.subset for entry in select(settings.spec, dataset))
    base_urls = _base_urls(namespace, environ)
    takes = _takes(namespace, settings, dataset)
    if len(base_urls) > len(takes):
        raise ConfigError(
            f"{len(base_urls)} --base-url for {len(takes)} shards; --shards says how many there are to be"
        )
    on_ray = _on_ray(namespace, len(takes))
    whole = _whole_run(namespace, now, environ, settings, dataset, base_urls, params, number)
    # A cluster has as many cores as it has, and grows; its tasks wait for theirs.
    at_once = most_at_once(len(takes), len(takes) if on_ray else cores, namespace.concurrency)
    known = [without_credentials(url) for url in dict.fromkeys(base_urls)]
    return RunPlan(
        whole=whole,
        shards=split(whole, takes, base_urls, at_once),
        dataset=dataset,
        facts={"concurrency": namespace.concurrency, "base_url": known[0] if len(known) == 1 else known},
        at_once=at_once,
        on_ray=on_ray,
        ray_address=namespace.ray_address or environ.get("RAY_ADDRESS"),
    )


def _base_urls(namespace: argparse.Namespace, environ: Mapping[str, str]) -> list[str]:
    # The library would take the variable in silence.
    return [parse_base_url(url) for url in namespace.base_url or [environ.get("OPENAI_BASE_URL", "")]]


def _on_ray(namespace: argparse.Namespace, shards: int) -> bool:
    on_ray = bool(namespace.executor == "ray")
    if on_ray and shards == 1:
        raise ConfigError("--executor ray runs several shards, and this run is one; give --shards 2 or more")
    if namespace.ray_address and not on_ray:
        raise ConfigError("--ray-address is for --executor ray")
    return on_ray


def _takes(namespace: argparse.Namespace, settings: RunSettings, dataset: Dataset) -> list[int]:
    """Count the rows of each shard the run is split into."""
    drawn = plan(settings.spec, dataset.totals())
    if not settings.shard.is_whole:
        if namespace.shards not in (None, 1):
            raise ConfigError("--shard is a part already; leave out --shards, or split the whole run")
        return [sum(take for _, take in shard_plan(drawn, settings.shard.index, settings.shard.count))]
    total = sum(take for _, take in drawn)
    count = namespace.shards
    if count is None:
        count = automatic_shards(total, on_cluster=namespace.executor == "ray")
    if count < 1:
        raise ConfigError("--shards is 1 or more")
    takes = [sum(take for _, take in shard_plan(drawn, index, count)) for index in range(count)]
    if not all(takes):
        raise ConfigError(f"--shards {count}: some would be empty; the largest subset of the draw has fewer rows")
    return takes


def _whole_run(
    namespace: argparse.Namespace,
    now: datetime,
    environ: Mapping[str, str],
    settings: RunSettings,
    dataset: Dataset,
    base_urls: list[str],
    params: Mapping[str, Any],
    number: int,
) -> HostRun:
    model_params, harness_params = _model_params(namespace), _harness_params(namespace)
    check_model_params(model_params)
    check_limits(harness_params)
    _check_folder_name(namespace)
    # The model as well: the host writes org/m and org_m as one folder.
    whom = {"model": namespace.model, "base_url": " ".join(base_urls), "attempts": namespace.attempts}
    digest = short_identity({**question_identity(settings, dataset, model_params), **whom})
    repeated = f"-repeat{number}" if number else ""
    return HostRun(
        model=namespace.model,
        base_url=base_urls[0],
        api_key=environ.get(namespace.api_key_env, ""),
        harness=namespace.harness,
        benchmark_params=params,
        model_params=model_params,
        harness_params=harness_params,
        concurrency=namespace.concurrency,
        results_dir=namespace.results_dir,
        run_name=str(Path(namespace.run_name) / f"{settings.draw_name}-{digest}{repeated}{_shard_suffix(settings)}"),
        run_id=now.strftime("%Y%m%d-%H%M%S-%f"),
        reuse=namespace.reuse,
        attempts=namespace.attempts,
        analysis=namespace.analysis,
        events=namespace.events,
        progress=namespace.progress,
    )


def _check_folder_name(namespace: argparse.Namespace) -> None:
    """Refuse a model whose name no folder can have; the host would find out after its import, with a traceback."""
    length = len(f"{namespace.model}_bfcl_{namespace.harness}".encode())
    if length > _LONGEST_FOLDER_NAME:
        raise ConfigError(
            f"the model's name is too long: AgentCompass makes it a folder of {length} bytes, and file systems "
            f"allow {_LONGEST_FOLDER_NAME}; let the server answer to a shorter one"
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

"""Runs inside AgentCompass that several test files look at; each is made once, when the first test asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint import Kind, Mistakes, RunningEndpoint, planned_mistake, running_endpoint
from agentcompass_bfcl.errors import EndpointError, RunFailedError
from agentcompass_bfcl.host import HostRun, register, run_in_host
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.run_dir import iter_details, read_result

SEED = 13
EVERY_MISTAKE = Mistakes(**{kind.value: 5 for kind in Kind})
NO_ANSWER = (Kind.HTTP_500, Kind.STALL)
MARKER_KEY = "marker-key-7f3a9c51e0-in-no-file"


@dataclass(frozen=True)
class Finished:
    """A run that ended, well or not, and what its endpoint counted. ``ended`` is the host's complaint, if any."""

    run_dir: Path
    stats: Mapping[str, Any]
    ended: str

    @property
    def result(self) -> ResultDocument:
        return read_result(self.run_dir)

    @property
    def attempts(self) -> dict[str, Mapping[str, Any]]:
        """Give each task's first attempt, by task id."""
        return {str(detail["task_id"]): detail["attempts"]["1"] for detail in iter_details(self.run_dir)}

    def metrics_json(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.run_dir / "metrics.json").read_bytes())
        return content


def planned(entry: Entry, mistakes: Mistakes = EVERY_MISTAKE) -> Kind | None:
    return planned_mistake(entry, mistakes, SEED)


def quick_run(base_url: str, results_dir: Path, **changes: Any) -> HostRun:
    """Describe a run of few, quick requests; keyword arguments change it."""
    run = HostRun(
        model="some-model",
        base_url=base_url,
        api_key="",
        harness="bfcl_chat",
        benchmark_params={"draw": "mini"},
        model_params={},
        harness_params={"max_retries": 0, "request_timeout_seconds": 30.0},
        concurrency=8,
        results_dir=results_dir,
        run_name="tests",
        run_id="first",
        progress="none",
    )
    return replace(run, **changes)


def finish(run: HostRun, endpoint: RunningEndpoint) -> Finished:
    """Run to the end; a run that the host calls failed is one as well."""
    ended = ""
    try:
        run_in_host(run)
    except (EndpointError, RunFailedError) as error:
        ended = str(error)
    (run_dir,) = (run.results_dir / run.run_name).glob(f"*/{run.run_id}")
    return Finished(run_dir, endpoint.stats(), ended)


class MakeEndpoint(Protocol):
    """Makes endpoints: keyword arguments are those of ``running_endpoint``."""

    def __call__(self, **options: Any) -> AbstractContextManager[RunningEndpoint]: ...


@pytest.fixture(scope="session")
def agentcompass() -> None:
    """Import AgentCompass, which takes 5-10 s, with the benchmark in it."""
    register()


@pytest.fixture(scope="session")
def lean(agentcompass: None, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Draw mini through ``bfcl_chat``, with 5 % of each kind of mistake and a key that must not be written down."""
    with running_endpoint(dataset, mistakes=EVERY_MISTAKE, seed=SEED, api_key=MARKER_KEY) as endpoint:
        run = quick_run(
            endpoint.base_url,
            tmp_path_factory.mktemp("lean"),
            api_key=MARKER_KEY,
            model_params={"temperature": 0.25, "seed": 7, "extra_body": {"top_k": 1}},
            harness_params={"max_retries": 0, "request_timeout_seconds": 6.0},
        )
        return finish(run, endpoint)


@pytest.fixture(scope="session")
def stock(agentcompass: None, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Run a third of draw mini through the host's own ``openai_chat`` against the same mistakes."""
    with running_endpoint(dataset, mistakes=EVERY_MISTAKE, seed=SEED) as endpoint:
        run = quick_run(
            endpoint.base_url,
            tmp_path_factory.mktemp("stock"),
            harness="openai_chat",
            benchmark_params={"draw": "mini", "limit": 64},
            model_params={"timeout": 3},
            harness_params={"max_retries": 1},
            concurrency=8,
        )
        return finish(run, endpoint)


@pytest.fixture(scope="session")
def perfect(agentcompass: None, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Run draw mini against an endpoint that makes no mistake."""
    with running_endpoint(dataset) as endpoint:
        return finish(quick_run(endpoint.base_url, tmp_path_factory.mktemp("perfect")), endpoint)


@pytest.fixture
def endpoint_with(dataset: Dataset) -> MakeEndpoint:
    def endpoint(**options: Any) -> AbstractContextManager[RunningEndpoint]:
        return running_endpoint(dataset, **{"seed": SEED, **options})

    return endpoint

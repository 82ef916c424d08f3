"""``demo``: the whole path in one command: a local endpoint with some mistakes, a run against it, the table."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from agentcompass_bfcl.cli.run import run_and_report
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.endpoint import parse_mistakes, running_endpoint
from agentcompass_bfcl.host import HostRun
from agentcompass_bfcl.settings import parse_settings
from agentcompass_bfcl.sources import open_pinned


def run_command(namespace: argparse.Namespace) -> int:
    """Serve, run, print."""
    settings = parse_settings({"draw": namespace.draw})
    dataset = read_dataset(open_pinned())
    with running_endpoint(dataset, mistakes=parse_mistakes(namespace.mistakes), seed=namespace.seed) as endpoint:
        run = HostRun(
            model="demo-model",
            base_url=endpoint.base_url,
            api_key="",
            harness="bfcl_chat",
            benchmark_params={"draw": settings.draw_name},
            model_params={"temperature": 0, "seed": 42},
            harness_params={"retry_budget_seconds": 2.0},
            concurrency=namespace.concurrency,
            results_dir=namespace.results_dir,
            run_name=f"demo-{settings.draw_name}",
            run_id=datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f"),
        )
        return run_and_report(run, as_json=namespace.json)

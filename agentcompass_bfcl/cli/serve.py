"""``serve``: the local endpoint until interrupted."""

from __future__ import annotations

import argparse

from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.endpoint import parse_mistakes, run_server
from agentcompass_bfcl.sources import open_pinned


def run_command(namespace: argparse.Namespace) -> int:
    """Serve on loopback and say where."""
    dataset = read_dataset(open_pinned(namespace.wheel))
    run_server(
        dataset,
        parse_mistakes(namespace.mistakes),
        namespace.seed,
        namespace.host,
        namespace.port,
        namespace.latency,
        lambda url: print(f"serving {url}; stop with Ctrl-C", flush=True),
        stall_seconds=namespace.stall_seconds,
    )
    return 0

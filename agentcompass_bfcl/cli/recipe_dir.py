"""``recipe-dir``: where the stock command line finds the benchmark."""

from __future__ import annotations

import argparse
from pathlib import Path

import agentcompass_bfcl


def run_command(namespace: argparse.Namespace) -> int:
    """Print the folder for ``agentcompass run --recipe-dir``."""
    print(Path(agentcompass_bfcl.__file__).parent / "recipe")
    return 0

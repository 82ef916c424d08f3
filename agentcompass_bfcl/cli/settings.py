"""From options to settings: shared by the commands that take a draw."""

from __future__ import annotations

import argparse
import os
from typing import Any

from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.shard_env import shard_from_environment

_OPTIONS = (
    *("draw", "categories", "subset_floor", "subsets", "limit", "shard"),
    *("mode", "on_error", "tool_choice", "strip_think"),
)


def benchmark_params(namespace: argparse.Namespace) -> dict[str, Any]:
    """Collect the given options as the benchmark's parameters; options left out stay out."""
    given = {name: getattr(namespace, name, None) for name in _OPTIONS}
    params = {name: value for name, value in given.items() if value is not None}
    if params.get("shard") == "auto":
        params["shard"] = str(shard_from_environment(os.environ))
    if getattr(namespace, "category_pct", None):
        params["category_pct"] = dict(_pair(item) for item in namespace.category_pct)
    if getattr(namespace, "wheel", None) is not None:
        params["wheel"] = str(namespace.wheel)
    return params


def _pair(item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not equals:
        raise ConfigError(f"--category-pct {item!r}: write category=percent, such as non_live=62")
    return name.strip(), value.strip()

"""Run the Berkeley Function Calling Leaderboard (BFCL v4, single-turn) in AgentCompass.

The pipeline, one module per arrow, each importing only from those before it:

    wheel, dataset -> draw -> shard -> task -> response -> score -> tally -> aggregate -> result -> run_dir, report

Public names are loaded when they are first used, so importing this package costs nothing and does not import
AgentCompass; ``MetricResult`` and ``register`` are the only two that do.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentcompass_bfcl.aggregate import Aggregate, OnError, aggregate
    from agentcompass_bfcl.draw import MINI_SAMPLES, PRESETS, DrawSpec, fingerprint, plan, total
    from agentcompass_bfcl.errors import BfclError
    from agentcompass_bfcl.host import register
    from agentcompass_bfcl.metric_result import MetricResult
    from agentcompass_bfcl.result import ResultDocument
    from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict, score_sample
    from agentcompass_bfcl.shard import Shard, shard_owns, shard_plan, shard_take
    from agentcompass_bfcl.subsets import (
        CATEGORIES,
        HALLUCINATION,
        LIVE,
        NON_LIVE,
        SIMPLE_AST,
        SINGLE_TURN_SUBSETS,
        category_of,
        reference_subset_totals,
    )
    from agentcompass_bfcl.tally import Tally, attempt_payload, tallies_from_metrics, union

__version__ = "0.1.0"

_HOME = {
    "aggregate": ("Aggregate", "OnError", "aggregate"),
    "draw": ("MINI_SAMPLES", "PRESETS", "DrawSpec", "fingerprint", "plan", "total"),
    "errors": ("BfclError",),
    "host": ("register",),
    "metric_result": ("MetricResult",),
    "result": ("ResultDocument",),
    "score": ("Hit", "Miss", "Unscored", "Verdict", "score_sample"),
    "shard": ("Shard", "shard_owns", "shard_plan", "shard_take"),
    "subsets": (
        *("CATEGORIES", "HALLUCINATION", "LIVE", "NON_LIVE", "SIMPLE_AST", "SINGLE_TURN_SUBSETS"),
        *("category_of", "reference_subset_totals"),
    ),
    "tally": ("Tally", "attempt_payload", "tallies_from_metrics", "union"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CATEGORIES",
    "HALLUCINATION",
    "LIVE",
    "MINI_SAMPLES",
    "NON_LIVE",
    "PRESETS",
    "SIMPLE_AST",
    "SINGLE_TURN_SUBSETS",
    "Aggregate",
    "BfclError",
    "DrawSpec",
    "Hit",
    "MetricResult",
    "Miss",
    "OnError",
    "ResultDocument",
    "Shard",
    "Tally",
    "Unscored",
    "Verdict",
    "aggregate",
    "attempt_payload",
    "category_of",
    "fingerprint",
    "plan",
    "reference_subset_totals",
    "register",
    "score_sample",
    "shard_owns",
    "shard_plan",
    "shard_take",
    "tallies_from_metrics",
    "total",
    "union",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """This package: ``aggregate`` is the function, whatever was imported before.

    Importing a submodule sets it as an attribute of its package, over the public name they share.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

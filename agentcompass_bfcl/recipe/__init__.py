"""A recipe folder for the stock command line: ``agentcompass run --recipe-dir "$(agentcompass-bfcl recipe-dir)" bfcl``.

Importing it makes the benchmark and its harness known; the recipe itself never matches, so it changes nothing.
"""

from __future__ import annotations

from typing import Any

from agentcompass.runtime.base import BaseRecipe

from agentcompass_bfcl.host import register

register()


class BfclRegistration(BaseRecipe):
    """Stand for the registration above: AgentCompass loads a folder only if it holds a recipe."""

    id = "bfcl_registration"

    def matches(self, req: Any, task: Any, plan: Any) -> bool:
        """Never match."""
        return False

    def apply(self, plan: Any, req: Any, task: Any) -> Any:
        """Return the plan as it is."""
        return plan


RECIPE_CLASSES = (BfclRegistration,)

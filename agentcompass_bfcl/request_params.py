"""What may be sent with a request, and the limits of one: refused before anything is sent, in one line."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from openai.resources.chat.completions import AsyncCompletions

from agentcompass_bfcl.errors import ConfigError

LIMITS: Mapping[str, float] = MappingProxyType(
    {"max_retries": 0, "retry_budget_seconds": 0, "request_timeout_seconds": 0.001}
)
"""The limits of a request, and the least that each may be."""

# Parameters the benchmark itself decides, or that would change the shape of the reply.
_RESERVED = ("messages", "model", "tools", "functions", "function_call", "stream", "stream_options", "n")


def check_model_params(params: Mapping[str, Any]) -> None:
    """Refuse model parameters the client would not take. Raises ``ConfigError`` naming the first."""
    known = set(inspect.signature(AsyncCompletions.create).parameters) - {"self"}
    for name, value in params.items():
        _refuse_reserved(name, value)
        if name not in known:
            raise ConfigError(f"model parameter {name!r} is not in the chat completions API; put it under extra_body")
        if name.startswith("extra_") and not isinstance(value, dict):
            raise ConfigError(f"model parameter {name!r} is {value!r}; an object is expected")
        for inner, inner_value in value.items() if name == "extra_body" else ():
            _refuse_reserved(inner, inner_value)
        if name == "timeout" and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
            raise ConfigError(f"model parameter {name!r} is {value!r}; a number of seconds above 0 is expected")


def _refuse_reserved(name: str, value: object) -> None:
    if name == "tool_choice":
        raise ConfigError(f"model parameter 'tool_choice' is {value!r}; set it as the benchmark's own tool_choice")
    if name in _RESERVED:
        raise ConfigError(f"model parameter {name!r} is {value!r}; the benchmark decides it, so leave it out")


def check_limits(params: Mapping[str, Any]) -> None:
    """Refuse limits that are out of range. Raises ``ConfigError`` naming the first."""
    for name, value in params.items():
        least = LIMITS.get(name)
        if least is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
            raise ConfigError(f"harness parameter {name} is {value!r}; a number of at least {least} is allowed")

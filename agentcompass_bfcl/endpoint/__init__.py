"""A small OpenAI-compatible server on loopback that answers BFCL requests, with planned mistakes: for tries and tests.

``mistakes`` plans, ``wrong_values`` and ``answers`` write what is said, ``questions`` finds the row asked about,
``application`` turns a request into a reply, ``connection`` and ``serving`` bring it onto the wire.
"""

from __future__ import annotations

from agentcompass_bfcl.endpoint.mistakes import Kind, Mistakes, parse_mistakes, planned_mistake
from agentcompass_bfcl.endpoint.serving import RunningEndpoint, run_server, running_endpoint

__all__ = [
    "Kind",
    "Mistakes",
    "RunningEndpoint",
    "parse_mistakes",
    "planned_mistake",
    "run_server",
    "running_endpoint",
]

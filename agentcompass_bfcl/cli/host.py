"""``agentcompass ...``: the host's own command line in a process that knows the benchmark."""

from __future__ import annotations

from agentcompass_bfcl.host import register


def run_host_command(arguments: list[str]) -> int:
    """Hand the arguments to AgentCompass, so that ``list``, ``run``, ``launch`` and ``summary`` know ``bfcl``."""
    register()
    from agentcompass.cli import main

    return int(main(arguments))

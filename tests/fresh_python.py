"""A Python process of its own, for what must not depend on what this one has imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import agentcompass_bfcl


def run_python(code: str, *arguments: str, cwd: Path, seconds: float = 60.0) -> str:
    """Run code in a new interpreter that can import this package, and return what it printed.

    ``BFCL_PROJECT_ROOT``, by which official code would choose where to make directories, is unset. Fails the test,
    with the process's own words, when it does not end with status 0.
    """
    environ = {name: value for name, value in os.environ.items() if name != "BFCL_PROJECT_ROOT"}
    environ["PYTHONPATH"] = str(Path(agentcompass_bfcl.__file__).parents[1])
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stderr[-4000:]}"
    return done.stdout

"""``doctor``: what a run needs, checked one by one."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from agentcompass_bfcl import __version__, release
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.errors import BfclError
from agentcompass_bfcl.official import load_official
from agentcompass_bfcl.provision import default_cache_dir, find_wheel, verify
from agentcompass_bfcl.reference import reference_calls
from agentcompass_bfcl.response import Call, Calls
from agentcompass_bfcl.score import Hit, score_sample

_LEAST_PYTHON = (3, 12)


class _CheckFailedError(BfclError):
    """A check failed; the message says how to mend it."""


def run_command(namespace: argparse.Namespace) -> int:
    """Run every check, also after one failed. 0 when all passed."""
    checks: tuple[Callable[[], str], ...] = (_python, _host, _wheel, _checker, _configuration)
    failed = 0
    for check in checks:
        name = check.__name__.strip("_")
        try:
            print(f"ok    {name:<14} {check()}")
        except BfclError as error:
            failed += 1
            print(f"FAIL  {name:<14} {error}")
    return 1 if failed else 0


def _python() -> str:
    if sys.version_info < _LEAST_PYTHON:
        raise _CheckFailedError(f"Python {sys.version.split()[0]}; 3.12 or later is needed")
    return f"Python {sys.version.split()[0]}, agentcompass-bfcl {__version__}"


def _host() -> str:
    try:
        found = version("agentcompass")
    except PackageNotFoundError:
        raise _CheckFailedError("agentcompass is not installed; pip install agentcompass") from None
    if not found.startswith("1.0."):
        raise _CheckFailedError(
            f"agentcompass {found}; this release works with 1.0.x: pip install 'agentcompass>=1.0.1,<1.1'"
        )
    if importlib.util.find_spec("bfcl_eval") is not None:
        return f"agentcompass {found}; bfcl-eval is installed beside it and not used"
    return f"agentcompass {found}"


def _wheel() -> str:
    wheel = find_wheel(None, os.environ, default_cache_dir(os.environ))
    if wheel is None:
        raise _CheckFailedError(f"{release.WHEEL_NAME} is not in the cache; run `agentcompass-bfcl provision`")
    verify(wheel)
    return f"{wheel.path}: {len(release.FILE_SHA256)} files unaltered"


def _checker() -> str:
    wheel = find_wheel(None, os.environ, default_cache_dir(os.environ))
    if wheel is None:
        raise _CheckFailedError("not without the wheel; run `agentcompass-bfcl provision`")
    entry = read_dataset(wheel).entry("simple_python_0")
    response = Calls(tuple(Call(name, arguments) for name, arguments in reference_calls(entry)))
    if score_sample(entry, response, load_official(wheel)) != Hit():
        raise _CheckFailedError(f"the official checker rejects the reference answer of {entry.id}; please report this")
    return "the official checker accepts a reference answer"


def _configuration() -> str:
    from agentcompass_bfcl.host import host_configuration_files

    files = host_configuration_files()
    if not files:
        return "no AgentCompass configuration file applies here"
    return f"AgentCompass merges these into every run started here: {', '.join(map(str, files))}"

"""Fetch the pinned wheel with pip, wherever there is one, so that the user's own index settings hold.

No index is ever named here: pip.conf and ``PIP_*`` decide where the wheel comes from, mirrors and proxies included.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentcompass_bfcl import release
from agentcompass_bfcl.errors import DatasetError

type Command = tuple[str, ...]

REQUIREMENT = f"{release.DISTRIBUTION}=={release.VERSION}"
ELSEWHERE = (
    f"or run `pip download --no-deps {REQUIREMENT}` where that works and name the file with --wheel or BFCL_WHEEL"
)

# --python-version, so that a pip of an older Python does not refuse the wheel's Requires-Python.
_DOWNLOAD = (
    *("download", "--no-deps", "--only-binary=:all:", "--python-version", "3.12"),
    *("--no-input", "--progress-bar", "off", "--disable-pip-version-check", "-vv"),  # -vv: see ``_reason``
)
# pip before 19.2 takes no dotted --python-version and then finds no wheel at all.
_OLDEST_PIP = (19, 2)
_LONGEST_REASON = 300
# What urllib3 puts around a reason: the pool and address once more, and the repr of a connection.
_NOISE = re.compile(r"HTTPS?ConnectionPool\(.*?\): Max retries exceeded with url: \S+ |<[^>]*>: ")


def fetch_with_pip(directory: Path, environ: Mapping[str, str], timeout: float) -> Path:
    """Download the pinned wheel into an empty directory and return its path, not yet verified.

    Uses the first pip that starts: this interpreter's, ``pip`` or ``pip3`` on PATH, ``uv tool run pip``, and last a
    throw-away environment made with ensurepip. All of it together may take ``timeout`` seconds. Scratch files stay
    inside ``directory``, for the caller to remove. Raises ``DatasetError`` with pip's own reason in one line.
    """
    shell = _Shell(environ, directory, timeout, time.monotonic() + timeout)
    pip = next((command for command in _pips(shell) if _starts(shell, command)), None)
    if pip is None:
        raise DatasetError(f"no usable pip, uv or ensurepip to fetch {REQUIREMENT} with; install pip, {ELSEWHERE}")
    status, output = shell.run((*pip, *_DOWNLOAD, "--dest", str(directory), REQUIREMENT))
    if status != 0:
        raise DatasetError(
            f"pip could not fetch {REQUIREMENT}: {_reason(status, output)}; check pip's index settings, {ELSEWHERE}"
        )
    return directory / release.WHEEL_NAME


@dataclass(frozen=True, slots=True)
class _Shell:
    environ: Mapping[str, str]
    scratch: Path
    timeout: float
    deadline: float

    def run(self, command: Command) -> tuple[int, str]:
        """Run a command and return its status and output; 127 when it cannot be started."""
        try:
            done = subprocess.run(
                command,
                check=False,
                env=self._environ_for(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                timeout=max(0.0, self.deadline - time.monotonic()),
            )
        except OSError as error:
            return 127, str(error)
        except subprocess.TimeoutExpired:
            raise DatasetError(
                f"fetching {REQUIREMENT} took longer than {self.timeout:g} s (in `{' '.join(command[:4])} ...`);"
                f" check the network and pip's index settings, {ELSEWHERE}"
            ) from None
        return done.returncode, done.stdout

    def _environ_for(self, command: Command) -> dict[str, str]:
        environ = dict(self.environ)
        if command[0] != sys.executable:  # another Python must not import this one's packages
            for name in ("PYTHONPATH", "PYTHONHOME"):
                environ.pop(name, None)
        # Nothing is installed and the hash is checked by the caller, so the two guards have nothing to guard.
        return environ | {"TMPDIR": str(self.scratch), "PIP_REQUIRE_VIRTUALENV": "0", "PIP_REQUIRE_HASHES": "0"}


def _pips(shell: _Shell) -> Iterator[Command]:
    path = shell.environ.get("PATH", "")
    here = (sys.executable, "-P")  # -P: a folder named pip in the working directory is not pip
    if importlib.util.find_spec("pip") is not None:
        yield (*here, "-m", "pip")
    for name in ("pip", "pip3"):
        if found := shutil.which(name, path=path):
            yield (found,)
    if uv := shutil.which("uv", path=path):
        yield (uv, "tool", "run", "pip")
    throw_away = shell.scratch / "venv"
    if shell.run((*here, "-m", "venv", str(throw_away)))[0] == 0:
        yield (str(throw_away / "bin" / "python"), "-m", "pip")


def _starts(shell: _Shell, pip: Command) -> bool:
    status, output = shell.run((*pip, "--version"))
    version = re.search(r"^pip (\d+)\.(\d+)", output, re.MULTILINE)
    return status == 0 and version is not None and (int(version[1]), int(version[2])) >= _OLDEST_PIP


def _reason(status: int, output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    errors = [error for error in errors if error != "Exception:"]  # then the exception itself is the last line
    reason = (errors or lines or [f"exit status {status}"])[-1]
    # An index that does not answer ends as "no matching distribution"; what went wrong stands only further up.
    unread = [
        fault for fault in re.findall(r"Could not fetch URL (.*) - skipping", output) if "404 Client" not in fault
    ]
    if unread:
        reason += f" (could not fetch {_NOISE.sub('', unread[-1])})"
    return reason[:_LONGEST_REASON]

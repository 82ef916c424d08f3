"""The pinned wheel and its rows, read once; and a maker of wheels that differ from it in chosen files."""

from __future__ import annotations

import hashlib
import os
import signal
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from agentcompass_bfcl import release
from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.official import Official, load_official
from agentcompass_bfcl.provision import default_cache_dir, provision
from agentcompass_bfcl.wheel import Wheel

# Slow machines are no fault of a law; in CI the same examples come every time.
settings.register_profile("laws", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("laws")

# Jobs that a shell starts in the background ignore SIGINT, and so do their children; some tests interrupt theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The runs inside AgentCompass that several files look at.
pytest_plugins = ["host_runs"]

type Edit = Callable[[bytes], bytes]


class Doctor(Protocol):
    """Writes a wheel with edited files and makes its sha256 the pinned one for the rest of the test."""

    def __call__(self, edits: Mapping[str, Edit], *, pin_files: bool) -> Path: ...


@pytest.fixture(scope="session")
def wheel() -> Wheel:
    """The real wheel, from the user's cache; the first run ever fetches it with pip."""
    return provision(None, os.environ, default_cache_dir(os.environ))


@pytest.fixture(scope="session")
def dataset(wheel: Wheel) -> Dataset:
    return read_dataset(wheel)


@pytest.fixture(scope="session")
def official(wheel: Wheel) -> Official:
    return load_official(wheel)


@pytest.fixture
def doctor(wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    def doctored(edits: Mapping[str, Edit], *, pin_files: bool) -> Path:
        path = tmp_path / "doctored" / release.WHEEL_NAME
        path.parent.mkdir()
        pinned = dict(release.FILE_SHA256)
        with zipfile.ZipFile(path, "w") as archive:
            for name in pinned:
                content = edits.get(name, bytes)(wheel.read(name))
                archive.writestr(f"bfcl_eval/{name}", content)
                if pin_files:
                    pinned[name] = hashlib.sha256(content).hexdigest()
        monkeypatch.setattr(release, "FILE_SHA256", pinned)
        monkeypatch.setattr(release, "WHEEL_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
        return path

    return doctored

"""The rows and the official code together, read once per process from the wheel that is at hand."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.official import Official, load_official
from agentcompass_bfcl.provision import default_cache_dir, provision
from agentcompass_bfcl.wheel import Wheel


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that comes from the pinned release."""

    dataset: Dataset
    official: Official


def open_pinned(wheel: Path | None = None) -> Wheel:
    """Open the given wheel, or the one of ``BFCL_WHEEL`` or the cache, fetching it when it is nowhere to be found."""
    return provision(wheel, os.environ, default_cache_dir(os.environ))


@functools.lru_cache(maxsize=4)
def load_sources(wheel: Path | None = None) -> Sources:
    """Read rows and official code (0.4 s the first time, then nothing).

    Raises ``DatasetError`` for a missing or altered wheel, ``CheckerError`` when its code cannot be loaded.
    """
    found = open_pinned(wheel)
    return Sources(read_dataset(found), load_official(found))

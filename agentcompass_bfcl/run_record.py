"""A finished run as merging, comparing and gating take it: its result, and where and when it came from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentcompass_bfcl.errors import RunDirError
from agentcompass_bfcl.json_files import LARGEST_RESULT, LARGEST_RUN_INFO
from agentcompass_bfcl.result import ResultDocument, read_document
from agentcompass_bfcl.run_dir import read_json_object, read_result
from agentcompass_bfcl.run_request import RUN_INFO, is_run_dir
from agentcompass_bfcl.shard import Shard


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One result. ``started`` is when its run says it began, in ISO 8601; None for a file that does not say."""

    source: Path
    document: ResultDocument
    started: str | None
    is_directory: bool

    @property
    def identity(self) -> Mapping[str, Any]:
        """Say what the run was: draw, data set, checker, mode, request, model and so on."""
        return self.document.extra

    @property
    def shard(self) -> Shard:
        """Give the part of its draw the run had. Raises ``ShardError`` for one that cannot be."""
        return Shard.parse(str(self.identity.get("shard", "0/1")))


def read_record(path: Path) -> RunRecord:
    """Read a run directory, or a result that was written as JSON (``run --json``, ``export --to json``).

    Raises ``RunDirError`` for a path that is neither, or a run that has not finished, and ``ResultError`` for a result
    that is not ours or is damaged.
    """
    if os.path.isdir(path):  # noqa: PTH112  # Path.is_dir may raise, as for a name that is too long
        if not is_run_dir(path):
            raise RunDirError(f"{path}: no run directory, which would hold {RUN_INFO}")
        return RunRecord(path, read_result(path), _started(path), is_directory=True)
    return RunRecord(path, read_document(read_json_object(path, LARGEST_RESULT), str(path)), None, is_directory=False)


def find_run_dirs(path: Path) -> Iterator[Path]:
    """Give a path that is a run directory or a file as it is; of any other folder, the run directories below it.

    They are looked for at most three folders down, where AgentCompass makes them, sorted by path.
    """
    if is_run_dir(path) or not os.path.isdir(path):  # noqa: PTH112  # as above
        yield path
        return
    for depth in range(1, 4):
        yield from sorted(found.parent for found in path.glob("/".join(["*"] * depth + [RUN_INFO])))


def _started(run_dir: Path) -> str | None:
    value = read_json_object(run_dir / RUN_INFO, LARGEST_RUN_INFO).get("started_at")
    return value if isinstance(value, str) else None

"""Recorded outputs of real models, with what the official evaluator said of them.

They are large and not part of this project. They are looked for in ``BFCL_REAL_OUTPUTS``, else next to the project.
``real_rows/verdicts.jsonl.gz`` holds single outputs with their official verdicts, ``real_runs/<run>/`` whole runs as
bfcl-eval's result trees with ``official_scores.json`` and the leaderboard's rows.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest


def _recordings() -> Path | None:
    named = os.environ.get("BFCL_REAL_OUTPUTS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if (folder / "real_rows").is_dir() and (folder / "real_runs").is_dir() else None


_FOLDER = _recordings()
RUNS = sorted(path.name for path in (_FOLDER / "real_runs").iterdir()) if _FOLDER else ["none"]
needs_recordings = pytest.mark.skipif(
    _FOLDER is None, reason="no recorded outputs of real models: set BFCL_REAL_OUTPUTS to their folder"
)


def folder() -> Path:
    assert _FOLDER is not None
    return _FOLDER


def run_folder(run: str) -> Path:
    return folder() / "real_runs" / run


@cache
def official_scores(run: str) -> dict[str, Any]:
    """Read ``{"model", "subsets": {subset: {"accuracy", "correct_count", "total_count", "failed": {id: type}}}}``."""
    scores: dict[str, Any] = json.loads((run_folder(run) / "official_scores.json").read_text())
    return scores


def leaderboard_row(run: str, file: str) -> dict[str, float]:
    """Read the leaderboard's percentages for the run's own model; a run's files may hold several models."""
    rows = json.loads((run_folder(run) / file).read_text())
    model = official_scores(run)["model"].replace("_", "/")
    (row,) = [row for row in rows if row["Model"].startswith(f"{model} ")]
    return {name: float(value.removesuffix("%")) for name, value in row.items() if value.endswith("%")}

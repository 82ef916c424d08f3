"""Writes result files as bfcl-eval does, and folders as AgentCompass leaves them after a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentcompass_bfcl.attempt import EXTRA_KEY, AttemptRecord
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.official_results import result_file_name
from agentcompass_bfcl.reference import reference_calls
from agentcompass_bfcl.subsets import subset_named


def perfect_output(entry: Entry) -> list[dict[str, str]]:
    return [{name: arguments} for name, arguments in reference_calls(entry)]


def result_line(sample_id: str, output: Any, **more: Any) -> bytes:
    return json.dumps({"id": sample_id, "result": output, **more}).encode() + b"\n"


def write_results(model_folder: Path, outputs: Iterable[tuple[Entry, Any]]) -> Path:
    """Append rows to the files they belong in, and return the model's folder."""
    for entry, output in outputs:
        path = result_path(model_folder, entry.subset)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(result_line(entry.id, output))
    return model_folder


def result_path(model_folder: Path, subset: str) -> Path:
    return model_folder / subset_named(subset).group / result_file_name(subset)


def write_subsets(model_folder: Path, dataset: Dataset, *subsets: str) -> Path:
    """Write whole subsets with nothing but right answers."""
    return write_results(
        model_folder, ((entry, perfect_output(entry)) for subset in subsets for entry in dataset.rows[subset])
    )


def write_run(
    run_dir: Path,
    attempts: Mapping[Entry, AttemptRecord | str],
    *,
    model: str = "some-model",
    params: Mapping[str, Any] | None = None,
    k: int = 1,
    **request: Any,
) -> Path:
    """Write a run directory as the host does; text instead of a record is the code a request failed with."""
    described = {
        "benchmark": {"id": "bfcl", "params": dict(params or {"draw": "mini"})},
        "execution": {"attempts": {"k": k, "strategy": "avg"}},
        "harness": {"id": "bfcl_chat", "params": {}},
        "model": {"id": model, "base_url": "http://127.0.0.1:8000/v1", "params": {"temperature": 0}},
        **request,
    }
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "run_info.json").write_text(json.dumps({"request": described}))
    for entry, found in attempts.items():
        folder = run_dir / "details" / "normal" / f"{entry.id}--{hashlib.sha256(entry.id.encode()).hexdigest()}"
        (folder / "attempt-1").mkdir(parents=True)
        (folder / "task.json").write_text(json.dumps({"task_id": entry.id, "category": entry.subset}))
        (folder / "attempt-1" / "result.json").write_text(json.dumps(_payload(found)))
    return run_dir


def _payload(found: AttemptRecord | str) -> dict[str, Any]:
    if isinstance(found, str):
        issue = {"severity": "error", "phase": "run", "code": found, "message": f"it failed: {found}"}
        return {"status": "run_error", "metrics": {}, "issues": [issue], "meta": {"benchmark": {}}}
    meta = {"benchmark": {EXTRA_KEY: found.to_text()}}
    if found.verdict == "unscored":
        evaluated: dict[str, Any] = {
            "severity": "error",
            "phase": "evaluate",
            "code": found.reason,
            "message": found.detail,
        }
        return {"status": "eval_error", "metrics": {}, "issues": [evaluated], "meta": meta}
    return {"status": "completed", "metrics": {"correct": found.verdict == "hit"}, "issues": [], "meta": meta}

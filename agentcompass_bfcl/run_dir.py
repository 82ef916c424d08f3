"""An AgentCompass run directory, read and never written to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentcompass_bfcl.errors import RunDirError
from agentcompass_bfcl.result import ResultDocument, read_document

_VIEWS = ("schema_version", "metrics", "counts", "details")


def read_result(run_dir: Path) -> ResultDocument:
    """Read a finished run's result from its metrics.json.

    Raises ``RunDirError`` when the directory holds no readable one, ``ResultError`` when it is not a BFCL result.
    """
    path = run_dir / "metrics.json"
    payload = _json_object(path)
    extra = payload.get("extra")
    if not isinstance(extra, Mapping) or "schema_version" not in extra:
        raise RunDirError(f"{path}: not the metrics of a BFCL run; is this the run directory of another benchmark?")
    identity = {name: value for name, value in extra.items() if name not in _VIEWS}
    return read_document({**{name: extra.get(name) for name in _VIEWS}, "extra": identity}, str(path))


def iter_details(run_dir: Path) -> Iterator[Mapping[str, Any]]:
    """Read the tasks a run has persisted so far, one file at a time, in no particular order.

    Each is the host's detail: ``{"task_id", "category", "attempts": {"1": {...}}, ...}``, its attempts filled in from
    their own files. A file that vanishes or is not yet whole is skipped: the run may still be writing.
    """
    for task_path in sorted((run_dir / "details").glob("*/*/task.json")):
        task = _json_if_whole(task_path)
        if task is None:
            continue
        attempts = {}
        for result_path in sorted(task_path.parent.glob("attempt-*/result.json")):
            attempt = _json_if_whole(result_path)
            if attempt is not None:
                attempts[result_path.parent.name.removeprefix("attempt-")] = attempt
        yield {**task, "attempts": attempts}


def _json_object(path: Path) -> dict[str, Any]:
    try:
        payload = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RunDirError(f"{path}: no such file; the run has not finished, or this is no run directory") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunDirError(f"{path}: cannot be read ({error})") from None
    if not isinstance(payload, dict):
        raise RunDirError(f"{path}: not a JSON object")
    return payload


def _json_if_whole(path: Path) -> dict[str, Any] | None:
    try:
        return _json_object(path)
    except RunDirError:
        return None

"""A merged run as a directory of its own, which AgentCompass's viewer and every command here open like any other."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import BfclError, MergeError, counted
from agentcompass_bfcl.json_files import LARGEST_RUN_INFO, fault_in
from agentcompass_bfcl.merge import Merged, merge
from agentcompass_bfcl.run_dir import FINISHED_STATES, read_json_object
from agentcompass_bfcl.run_record import RunRecord, find_run_dirs, read_record
from agentcompass_bfcl.run_request import RUN_INFO, is_run_dir, read_request


def merge_runs(
    paths: Sequence[Path],
    out: Path,
    dataset: Dataset,
    *,
    allow_errors: bool = False,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> Merged:
    """Merge run directories into the new run directory ``out``; the shards are only read.

    ``out`` appears whole or not at all. Raises ``MergeError`` as ``merge`` does, for a shard that cannot be read, and
    for an ``out`` that holds something.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise MergeError(f"{out} holds something already; give a new or an empty folder")
    merged = merge_paths(paths, dataset, allow_errors=allow_errors, facts=facts)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            whole = Path(scratch) / "run"
            whole.mkdir()
            _write(whole, out, merged)
            whole.replace(out)
    except shutil.Error as error:
        source, _, what = error.args[0][0]
        raise MergeError(f"{source}: cannot be copied ({what})") from None
    except OSError as error:
        raise MergeError(f"{out}: cannot be written ({error.strerror}: {error.filename})") from None
    return merged


def merge_paths(
    paths: Iterable[Path],
    dataset: Dataset,
    *,
    allow_errors: bool = False,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> Merged:
    """Merge run directories and results in files, without writing anything.

    A folder that is no run directory stands for those below it. A run that has no result is passed over, with a note,
    where another run of its shard has one. Raises ``MergeError`` for everything that cannot be read, at once.
    """
    records: list[RunRecord] = []
    unreadable: list[tuple[str | None, str]] = []  # which shard, where that can be told, and what is wrong
    for path in paths:
        found = list(find_run_dirs(path))
        if not found:
            unreadable.append((None, f"{path}: no run directory in it"))
        for place in found:
            try:
                records.append(read_record(place))
            except BfclError as error:
                unreadable.append((_shard(place), str(error)))
    shards = {str(record.identity.get("shard")) for record in records}
    notes = [f"{text}; passed over for another run of its shard" for shard, text in unreadable if shard in shards]
    faults = [f"shard {shard or 'unknown'}: torn: {text}" for shard, text in unreadable if shard not in shards]
    if faults:
        raise MergeError(f"{counted(len(faults), 'fault', 'faults')}: {'; '.join(faults)}", tuple(faults))
    merged = merge(records, dataset, allow_errors=allow_errors, facts=facts)
    return Merged(merged.document, merged.parts, (*notes, *merged.notes))


def _shard(place: Path) -> str | None:
    """Tell which shard a run without a result was to be; None when even that cannot be read."""
    try:
        return str(read_request(place).settings.shard) if is_run_dir(place) else None
    except BfclError:
        return None


def _write(folder: Path, out: Path, merged: Merged) -> None:
    # The host's report and its summary, which need the host: imported here, so that reading shards does not.
    from agentcompass.runtime.results.render import render_summary_markdown

    from agentcompass_bfcl.merged_report import merged_report

    report = merged_report(merged.parts, merged.document)
    _copy_tasks([part.source for part in merged.parts], folder)
    infos = [read_json_object(part.source / RUN_INFO, LARGEST_RUN_INFO) for part in merged.parts]
    info = _run_info(infos, out, merged.document.extra)
    _dump(folder / RUN_INFO, info)
    _dump(folder / "metrics.json", report.model_dump(mode="json"))
    _dump(folder / "params.json", _without_shard(read_json_object(merged.parts[0].source / "params.json"), out))
    _dump(folder / "progress.json", _progress(merged, info, out))
    summary = render_summary_markdown(str(merged.document.extra.get("model")), "BFCL", report)
    (folder / "summary.md").write_text(summary, encoding="utf-8")


def _copy_tasks(run_dirs: Iterable[Path], folder: Path) -> None:
    for run_dir in run_dirs:
        for kind in FINISHED_STATES:
            tasks = run_dir / "details" / kind
            if link := next((place for place in (tasks.parent, tasks) if place.is_symlink()), None):
                raise MergeError(f"{link}: a link, where a run has a folder of its own; nothing outside is copied")
            for task in sorted(tasks.glob("*")):
                if task.is_dir() and not task.is_symlink():
                    shutil.copytree(task, folder / "details" / kind / task.name, symlinks=True)


def _run_info(infos: Sequence[Mapping[str, Any]], out: Path, identity: Mapping[str, Any]) -> dict[str, Any]:
    plans: dict[str, Any] = {}
    for info in infos:
        plans |= _mapping(info.get("resolved_execution_plans"))
    started = [info["started_at"] for info in infos if isinstance(info.get("started_at"), str)]
    finished = [info["finished_at"] for info in infos if isinstance(info.get("finished_at"), str)]
    return {
        **infos[0],
        "run_id": out.name,
        "request": _as_asked(_without_shard(_mapping(infos[0].get("request")), out), identity),
        "resolved_execution_plans": plans,
        **({"started_at": min(started)} if started else {}),
        **({"finished_at": max(finished)} if finished else {}),
    }


def _without_shard(request: Mapping[str, Any], out: Path) -> dict[str, Any]:
    benchmark = _mapping(request.get("benchmark"))
    params = {name: value for name, value in _mapping(benchmark.get("params")).items() if name != "shard"}
    output = {**_mapping(request.get("output")), "run_id": out.name}
    if "run_name" in output and len(out.parents) > 1:
        output["run_name"] = out.parent.parent.name
    return {**request, "benchmark": {**benchmark, "params": params}, "output": output}


def _as_asked(request: dict[str, Any], identity: Mapping[str, Any]) -> dict[str, Any]:
    """Write what the whole run was asked with where all shards agree on it, for the host's ``summary`` to repeat."""
    concurrency, base_url = identity.get("concurrency"), identity.get("base_url")
    if isinstance(concurrency, int):
        request["execution"] = {**_mapping(request.get("execution")), "task_concurrency": concurrency}
    if isinstance(base_url, str):
        request["model"] = {**_mapping(request.get("model")), "base_url": base_url}
    return request


def _progress(merged: Merged, info: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Give the host's final progress of a run of so many tasks; its viewer reads the status there."""
    progress = read_json_object(merged.parts[0].source / "progress.json")
    total = merged.document.counts.total
    tasks = len(info["resolved_execution_plans"]) or total
    return {
        **progress,
        "run_id": out.name,
        "total_tasks": tasks,
        "finished_tasks": tasks,
        "completed_tasks": tasks,
    }


def _mapping(value: object) -> Mapping[str, Any]:
    """Take what is no mapping for an empty one: the shards' files may hold anything."""
    return value if isinstance(value, Mapping) else {}


def _dump(path: Path, value: Mapping[str, Any]) -> None:
    if (fault := fault_in(value)) is not None:
        raise MergeError(f"{path.name} cannot be made of those of the shards ({fault})")
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")

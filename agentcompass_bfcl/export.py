"""Write a run in forms that others read: a result tree that bfcl-eval evaluates as it is, and verdict rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.collect import NO_VERDICT
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.drawn_rows import only_attempts
from agentcompass_bfcl.errors import ExportError
from agentcompass_bfcl.official_results import result_file_name
from agentcompass_bfcl.run_dir import Attempt
from agentcompass_bfcl.run_request import read_request
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict
from agentcompass_bfcl.score_files import score_file_name, score_records
from agentcompass_bfcl.subsets import subset_named
from agentcompass_bfcl.verdicts import VerdictRow

type Json = Any  # a parsed JSON value

_LONGEST_NAME = 255  # bytes; the most that common file systems take


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written. ``left_out`` counts the samples without a verdict by reason; they are in no file."""

    folder: Path
    rows: int
    left_out: Mapping[str, int]


def export_bfcl_eval(run_dir: Path, out_dir: Path, dataset: Dataset, *, model: str | None = None) -> Exported:
    """Write ``result/<model>/...`` and ``score/<model>/...`` below a folder that is new or empty.

    bfcl-eval evaluates only models it knows, by the folder's name: ``model`` is the one to write, by default the
    run's own. Samples without a verdict are left out, since upstream takes the text of a failed request for an
    answer, a right one on irrelevance rows, and dies of an output its checker raises on; it evaluates the others with
    ``--partial-eval``. Raises ``ExportError`` for a folder that holds something, a name no folder can have, or a run
    without any verdict, and ``RunDirError`` for a run that cannot be read or has several attempts per sample.
    """
    name = folder_name(read_request(run_dir).model if model is None else model)
    judged, left_out = _by_subset(only_attempts(run_dir, dataset), dataset)
    if not judged:
        raise ExportError(f"{run_dir}: no sample of this run has a verdict; there is nothing to write")
    try:
        _require_empty(out_dir)
        for subset, rows in judged.items():
            group = subset_named(subset).group
            _write(out_dir / "result" / name / group / result_file_name(subset), (_result(*row) for row in rows))
            _write(out_dir / "score" / name / group / score_file_name(subset), score_records(name, rows))
    except OSError as error:
        raise ExportError(f"{out_dir}: cannot be written to ({error.strerror})") from None
    return Exported(
        folder=out_dir / "result" / name,
        rows=sum(map(len, judged.values())),
        left_out=dict(sorted(left_out.items())),
    )


def export_verdicts(run_dir: Path, dataset: Dataset) -> tuple[VerdictRow, ...]:
    """Give a run's own verdicts, one for each row it had to score.

    A failed request is unscored, with the code it failed with, and so is a row that was never run. Raises as
    ``only_attempts``.
    """
    attempts = only_attempts(run_dir, dataset)
    return tuple(VerdictRow(attempt.sample_id, attempt.subset, _verdict(attempt)) for attempt in attempts)


def folder_name(model: str) -> str:
    """Name a model's folder as upstream does, "/" as "_". Raises ``ExportError`` for what can be no folder's name."""
    name = model.replace("/", "_")
    if name in ("", ".", "..") or not name.isprintable() or len(name.encode()) > _LONGEST_NAME:
        raise ExportError(f"the model name {model[:80]!a} can be no folder's name; give another with --model")
    return name


def _by_subset(
    attempts: Iterable[Attempt], dataset: Dataset
) -> tuple[dict[str, list[tuple[Entry, AttemptRecord]]], Counter[str]]:
    judged: dict[str, list[tuple[Entry, AttemptRecord]]] = {}
    left_out: Counter[str] = Counter()
    for attempt in attempts:
        if attempt.record is None or attempt.verdict == "unscored":
            left_out[attempt.error_code or NO_VERDICT] += 1
        else:
            entry = dataset.entry(attempt.sample_id)
            judged.setdefault(entry.subset, []).append((entry, attempt.record))
    for rows in judged.values():
        rows.sort(key=lambda row: row[0].row)
    return judged, left_out


def _verdict(attempt: Attempt) -> Verdict:
    record = attempt.record
    if record is None or attempt.verdict == "unscored":
        return Unscored(attempt.error_code or NO_VERDICT, attempt.problem)
    return Hit() if record.verdict == "hit" else Miss(record.error_type or "", record.detail)


def _result(entry: Entry, record: AttemptRecord) -> dict[str, Json]:
    facts = {
        "input_token_count": record.prompt_tokens,
        "output_token_count": record.completion_tokens,
        "latency": None if record.latency_ms is None else record.latency_ms / 1000,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    return {"id": entry.id, "result": record.output, **known}


def _require_empty(out_dir: Path) -> None:
    if out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise ExportError(f"{out_dir} holds something already; give a new or an empty folder")


def _write(path: Path, records: Iterable[Mapping[str, Json]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="ascii") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)

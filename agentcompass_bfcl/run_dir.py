"""An AgentCompass run directory, read and never written to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentcompass_bfcl.attempt import AttemptRecord, read_attempt_record
from agentcompass_bfcl.collect import NO_VERDICT, first_issue_code
from agentcompass_bfcl.errors import RunDirError, shortened
from agentcompass_bfcl.json_files import LARGEST_ATTEMPT, LARGEST_RESULT, read_json
from agentcompass_bfcl.result import ResultDocument, read_report_extra

_MOST_DIGITS = 9  # of an attempt's number, in the name of its folder

FINISHED_STATES = ("normal", "error", "fatal")
"""The folders below ``details`` that hold tasks which are over."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One persisted attempt. ``record`` is None where no reply came; then ``problem`` says why."""

    sample_id: str
    subset: str
    number: int
    record: AttemptRecord | None
    error_code: str | None
    problem: str

    @property
    def verdict(self) -> str:
        """Name the verdict: hit, miss or unscored."""
        return "unscored" if self.record is None or self.error_code is not None else self.record.verdict

    @property
    def kind(self) -> str:
        """Name upstream's error type of a miss, or the code of an error; empty for a hit."""
        if self.error_code is not None:
            return self.error_code
        return NO_VERDICT if self.record is None else self.record.error_type or ""


def read_result(run_dir: Path) -> ResultDocument:
    """Read a finished run's result from its metrics.json.

    Raises ``RunDirError`` when the directory holds no readable one, ``ResultError`` when it is not a BFCL result.
    """
    path = run_dir / "metrics.json"
    payload = read_json_object(path, LARGEST_RESULT)
    extra = payload.get("extra")
    if not isinstance(extra, Mapping) or "schema_version" not in extra:
        raise RunDirError(f"{path}: not the metrics of a BFCL run; is this the run directory of another benchmark?")
    return read_report_extra(extra, str(path))


def iter_details(run_dir: Path) -> Iterator[Mapping[str, Any]]:
    """Read the tasks a run has persisted so far, one file at a time, in no particular order.

    Each is the host's detail: ``{"task_id", "category", "attempts": {"1": {...}}, ...}``, its attempts filled in from
    their own files. A file that vanishes, is not yet whole or cannot be one is skipped: the run may still be writing.
    """
    for task_path in sorted((run_dir / "details").glob("*/*/task.json")):
        task = _json_if_whole(task_path)
        if task is None:
            continue
        attempts = {}
        for result_path in sorted(task_path.parent.glob("attempt-*/result.json")):
            number = result_path.parent.name.removeprefix("attempt-")
            attempt = _json_if_whole(result_path) if _is_number(number) else None
            if attempt is not None:
                attempts[number] = attempt
        yield {**task, "attempts": attempts}


def read_attempts(run_dir: Path) -> list[Attempt]:
    """Read every persisted attempt, sorted by subset, place in the data set and attempt number.

    Raises ``RunDirError`` when the directory holds none, or an attempt record is unreadable.
    """
    attempts = [attempt for detail in iter_details(run_dir) for attempt in _attempts(detail)]
    if not attempts:
        if (run_dir / "run_info.json").is_file():
            raise RunDirError(f"{run_dir}: no attempt of a run in it; the run ended before any sample was stored")
        raise RunDirError(f"{run_dir}: no attempt of a run in it; give the run directory, which holds run_info.json")
    return in_attempt_order(attempts)


def in_attempt_order(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Sort attempts by subset, place in the data set and attempt number."""
    return sorted(attempts, key=lambda attempt: (attempt.subset, _place(attempt.sample_id), attempt.number))


def _attempts(detail: Mapping[str, Any]) -> Iterator[Attempt]:
    sample_id = str(detail.get("task_id"))
    for number, payload in detail["attempts"].items():
        completed, issues = payload.get("status") == "completed", _serious_issues(payload)
        try:
            record = read_attempt_record(payload)
        except (RunDirError, ValueError) as error:
            raise RunDirError(f"task {shortened(sample_id)}, attempt {number}: {error}") from None
        yield Attempt(
            sample_id=sample_id,
            subset=str(detail.get("category")),
            number=int(number),
            record=record,
            error_code=None if completed else first_issue_code({**payload, "issues": issues}),
            problem="; ".join(str(issue.get("message")) for issue in issues),
        )


def _serious_issues(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List an attempt's issues that are more than warnings, as far as they are such as the host writes."""
    issues = payload.get("issues")
    found = [issue for issue in issues if isinstance(issue, Mapping)] if isinstance(issues, list) else []
    return [issue for issue in found if "code" in issue and issue.get("severity") != "warning"]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _place(sample_id: str) -> tuple[int, str, str]:
    # Digits are compared as text, by length first: int() refuses more than some thousand of them.
    row = sample_id.rpartition("_")[2].partition("-")[0]
    digits = row.lstrip("0") if row.isascii() and row.isdigit() else ""
    return len(digits), digits, sample_id


def read_json_object(path: Path, largest: int = LARGEST_ATTEMPT) -> dict[str, Any]:
    """Read a file that holds one JSON object. Raises ``RunDirError`` for any other, and one that is too large."""
    try:
        payload = read_json(path, largest)
    except FileNotFoundError:
        raise RunDirError(f"{path}: no such file; the run has not finished, or this is no run directory") from None
    except OSError as error:
        raise RunDirError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise RunDirError(f"{path}: cannot be read ({error})") from None
    if not isinstance(payload, dict):
        raise RunDirError(f"{path}: not a JSON object")
    return payload


def _json_if_whole(path: Path) -> dict[str, Any] | None:
    try:
        return read_json_object(path)
    except RunDirError:
        return None

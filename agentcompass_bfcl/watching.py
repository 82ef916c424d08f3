"""A run while it goes on: provisional counts from the files as they grow, and what looks wrong early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentcompass_bfcl.attempt import read_attempt_record
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import RunDirError
from agentcompass_bfcl.run_dir import FINISHED_STATES, read_json_object
from agentcompass_bfcl.run_request import RunRequest, read_request
from agentcompass_bfcl.subsets import SUBSET_BY_NAME, Rule, subset_named
from agentcompass_bfcl.tally import Outcome, Tally, attempt_outcome, count
from agentcompass_bfcl.task import Mode

FIRST_ROWS = 20
"""So many rows without a hit, or without a call, are no accident."""

_LATEST = 50
_RISEN = 2
_MANY_ERRORS = 0.1
_MANY_TRUNCATED = 0.1


@dataclass(frozen=True, slots=True)
class Finished:
    """One attempt that is over, and when its file was written; of its reply only whether it came and what it was."""

    subset: str
    outcome: Outcome
    written: float
    replied: bool
    called: bool
    truncated: bool


@dataclass(slots=True)
class Watched:
    """One run directory, and what was read of it so far; nothing is ever written there, and no file is held open."""

    run_dir: Path
    request: RunRequest
    expected: Mapping[str, int]
    finished: dict[tuple[str, str], Finished] = field(default_factory=dict)
    _over: dict[str, int] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Tell whether the run has its result."""
        return (self.run_dir / "metrics.json").is_file()

    def look(self) -> None:
        """Read what was finished since the last time; a file that is not whole yet is left for the next."""
        for kind in FINISHED_STATES:
            folder = self.run_dir / "details" / kind
            for task in _names(folder):
                if self._over.get(task, 0) < self.request.k:
                    self._look_at(folder / task)

    def _look_at(self, task: Path) -> None:
        for path in task.glob("attempt-*/result.json"):
            # Without the kind: the host moves a task to another folder when a later attempt fails.
            attempt = (task.name, path.parent.name)
            found = None if attempt in self.finished else _finished(path)
            if found is not None:
                self.finished[attempt] = found
                self._over[task.name] = self._over.get(task.name, 0) + 1


def open_watched(run_dir: Path, dataset: Dataset) -> Watched:
    """Begin to watch a run directory. Raises ``RunDirError`` as long as it does not say what it is a run of."""
    request = read_request(run_dir)
    expected: dict[str, int] = {}
    for entry in request.expected(dataset):
        expected[entry.subset] = expected.get(entry.subset, 0) + request.k
    return Watched(run_dir, request, expected)


def tallies(watched: Sequence[Watched]) -> dict[str, Tally]:
    """Count what is finished in all of them together, by subset."""
    return count((found.subset, found.outcome) for run in watched for found in run.finished.values())


def totals(watched: Sequence[Watched]) -> dict[str, int]:
    """Count what there is to finish, by subset."""
    summed: dict[str, int] = {}
    for run in watched:
        for subset, expected in run.expected.items():
            summed[subset] = summed.get(subset, 0) + expected
    return dict(sorted(summed.items()))


def warnings(watched: Sequence[Watched]) -> dict[str, str]:
    """Say what looks wrong so far, by what it is about, in the order of how much it spoils."""
    finished = sorted((found for run in watched for found in run.finished.values()), key=lambda found: found.written)
    repeated = any(run.request.k > 1 for run in watched)
    native = all(run.request.settings.mode is Mode.FC for run in watched)
    said = {
        "calls": _no_call(finished) if native else "",
        "errors": _rising_errors(finished),
        "truncated": _truncated(finished),
    }
    for subset, tally in tallies(watched).items():
        if not tally.hits and len(_rows_with_verdict(watched, subset)) >= FIRST_ROWS:
            said[subset] = f"{subset}: no hit in {tally.n} {'attempts' if repeated else 'rows'}"
    return {about: text for about, text in said.items() if text}


def _rows_with_verdict(watched: Sequence[Watched], subset: str) -> set[str]:
    return {
        task
        for run in watched
        for (task, _), found in run.finished.items()
        if found.subset == subset and found.outcome is not Outcome.ERROR
    }


def _no_call(finished: Sequence[Finished]) -> str:
    asked = [found for found in finished if found.replied and subset_named(found.subset).rule is Rule.AST]
    first = asked[:FIRST_ROWS]
    if len(first) < FIRST_ROWS or any(found.called for found in first):
        return ""
    return f"no tool call in the first {FIRST_ROWS} replies that were asked for one: does the server parse tool calls?"


def _rising_errors(finished: Sequence[Finished]) -> str:
    if len(finished) < 2 * _LATEST:
        return ""
    earlier, latest = finished[:-_LATEST], finished[-_LATEST:]
    before, now = (sum(found.outcome is Outcome.ERROR for found in part) for part in (earlier, latest))
    if now / _LATEST < _MANY_ERRORS or now / _LATEST < _RISEN * before / len(earlier):
        return ""
    return f"errors are rising: {now} of the last {_LATEST} rows, {before} of the {len(earlier)} before"


def _truncated(finished: Sequence[Finished]) -> str:
    replies = [found for found in finished if found.replied]
    cut = sum(found.truncated for found in replies)
    if len(replies) < FIRST_ROWS or cut / len(replies) < _MANY_TRUNCATED:
        return ""
    return f"{cut} of {len(replies)} replies cut off at the token limit: is max_tokens too small?"


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:  # not there yet
        return []


def _finished(path: Path) -> Finished | None:
    try:
        payload, task = read_json_object(path), read_json_object(path.parent.parent / "task.json")
        subset = str(task.get("category"))
        if subset not in SUBSET_BY_NAME:
            return None
        record = read_attempt_record(payload)
        return Finished(
            subset,
            attempt_outcome(payload),
            path.stat().st_mtime,
            replied=record is not None,
            called=record is not None and isinstance(record.output, list) and bool(record.output),
            truncated=record is not None and record.truncated,
        )
    except (RunDirError, OSError):  # not whole yet, or just moved
        return None

"""Every row a run had to score, with what came of it: also those it never got to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from agentcompass_bfcl.collect import NOT_RUN
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import RunDirError
from agentcompass_bfcl.run_dir import Attempt, in_attempt_order, read_attempts
from agentcompass_bfcl.run_request import read_request, require_single_attempt


def drawn_attempts(run_dir: Path, dataset: Dataset) -> list[Attempt]:
    """Read a run's attempts, and add one of kind ``not_run`` for each row that was drawn and never run.

    Sorted as ``read_attempts`` does. Raises ``RunDirError`` for a directory that cannot be read or holds no attempt.
    """
    attempts = read_attempts(run_dir)
    ran = {attempt.sample_id for attempt in attempts}
    missing = [
        Attempt(entry.id, entry.subset, 1, None, NOT_RUN, "drawn and never run")
        for entry in read_request(run_dir).expected(dataset)
        if entry.id not in ran
    ]
    return in_attempt_order([*attempts, *missing])


def only_attempts(run_dir: Path, dataset: Dataset) -> list[Attempt]:
    """Give the one attempt of every drawn row, ``not_run`` where there is none.

    Raises ``RunDirError`` for a run of several attempts, or a sample that is there twice.
    """
    require_single_attempt(read_request(run_dir))
    attempts = drawn_attempts(run_dir, dataset)
    (most, times), *_ = Counter(attempt.sample_id for attempt in attempts).most_common(1)
    if times > 1:
        raise RunDirError(f"{run_dir}: sample {most} is there {times} times; is the run still going on?")
    return attempts

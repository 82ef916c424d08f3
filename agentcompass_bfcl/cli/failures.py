"""``failures``: a run's misses and errors, with their kinds counted."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from tabulate import tabulate

from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.drawn_rows import drawn_attempts
from agentcompass_bfcl.errors import one_line, shortened
from agentcompass_bfcl.json_files import json_text
from agentcompass_bfcl.run_dir import Attempt
from agentcompass_bfcl.sources import open_pinned

_LONGEST_DETAIL = 100


def run_command(namespace: argparse.Namespace) -> int:
    """List what is no hit. 0 also when there is nothing to list: an empty list is an answer."""
    dataset = read_dataset(open_pinned(namespace.wheel))
    failed = [attempt for attempt in drawn_attempts(namespace.run_dir, dataset) if attempt.verdict != "hit"]
    shown = [attempt for attempt in failed if _wanted(attempt, namespace)]
    counts = Counter(attempt.kind for attempt in shown)
    if namespace.json:
        document = {"counts": dict(sorted(counts.items())), "failures": [_as_json(attempt) for attempt in shown]}
        print(json_text(document), end="")
        return 0
    if not shown:
        print("nothing to list: no miss and no error here")
        return 0
    rows = [[_cell(attempt.sample_id), attempt.verdict, _cell(attempt.kind), _detail(attempt)] for attempt in shown]
    print(tabulate(rows, headers=["sample", "verdict", "type", "detail"], disable_numparse=True))
    print()
    kinds = [[_cell(kind), str(number)] for kind, number in counts.most_common()]
    print(tabulate(kinds, headers=["type", "rows"], colalign=("left", "right"), disable_numparse=True))
    return 0


def _wanted(attempt: Attempt, namespace: argparse.Namespace) -> bool:
    in_subset = not namespace.subset or attempt.subset in namespace.subset
    return in_subset and (not namespace.type or attempt.kind in namespace.type)


def _as_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "id": attempt.sample_id,
        "subset": attempt.subset,
        "attempt": attempt.number,
        "verdict": attempt.verdict,
        "type": attempt.kind,
        "detail": attempt.record.detail if attempt.record is not None and not attempt.problem else attempt.problem,
    }


def _cell(text: str) -> str:
    return shortened(one_line(text))


def _detail(attempt: Attempt) -> str:
    text = one_line(str(_as_json(attempt)["detail"]))
    return text if len(text) <= _LONGEST_DETAIL else f"{text[: _LONGEST_DETAIL - 3]}..."

"""Verdicts row by row, as JSON lines: the form in which two judges of the same outputs can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """The verdict on one stored output."""

    id: str
    subset: str
    verdict: Verdict


def verdict_lines(rows: Iterable[VerdictRow]) -> str:
    """Write ``{"id", "subset", "verdict", "error_type", "reason"}`` a line, in the order given.

    ``verdict`` is hit, miss or unscored. ``error_type``, of a miss, is upstream's word; ``reason`` says why a row is
    unscored; each is null elsewhere.
    """
    return "".join(f"{json.dumps(_record(row))}\n" for row in rows)


def _record(row: VerdictRow) -> dict[str, str | None]:
    record: dict[str, str | None] = {"id": row.id, "subset": row.subset}
    match row.verdict:
        case Hit():
            return {**record, "verdict": "hit", "error_type": None, "reason": None}
        case Miss(error_type):
            return {**record, "verdict": "miss", "error_type": error_type, "reason": None}
        case Unscored(reason):
            return {**record, "verdict": "unscored", "error_type": None, "reason": reason}

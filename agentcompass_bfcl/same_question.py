"""May two runs be compared at all? They were asked the same, or somebody says which difference does not matter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from agentcompass_bfcl.errors import CompareError, shortened
from agentcompass_bfcl.identity import QUESTION_KEYS, differences
from agentcompass_bfcl.run_record import RunRecord

# What may differ without making the comparison meaningless, and is worth a word.
_NOTED = ("harness", "concurrency", "scope", "source")


def require_same_question(first: RunRecord, second: RunRecord, allow: Collection[str]) -> tuple[str, ...]:
    """Require that two runs were asked and are judged alike, and had the same part of their draw.

    Gives what differs all the same, a line each: the question's facts in ``allow``, and how it was put, such as the
    harness and the versions. Models and endpoints differ on purpose. Raises ``CompareError`` with both values.
    """
    notes = []
    for key, (before, after) in differences(first.identity, second.identity, QUESTION_KEYS).items():
        said = f"{key} is {shortened(before)} in {first.source} and {shortened(after)} in {second.source}"
        if key not in allow:
            raise CompareError(f"not the same question: {said}; --allow {key} compares them all the same")
        rule = f"; {before} counts for both" if key == "on_error" else ""
        notes.append(f"allowed to differ: {said}{rule}")
    if first.shard != second.shard:
        raise CompareError(
            f"shard {first.shard} ({first.source}) and shard {second.shard} ({second.source}): merge first"
        )
    before, after = _noted(first), _noted(second)
    found = differences(before, after, {**before, **after})
    return (*notes, *(f"{key}: {shortened(one)}, then {shortened(other)}" for key, (one, other) in found.items()))


def _noted(record: RunRecord) -> dict[str, Any]:
    versions = record.identity.get("versions")
    named = versions.items() if isinstance(versions, Mapping) else ()
    return {key: record.identity.get(key) for key in _NOTED} | {f"version of {name}": held for name, held in named}

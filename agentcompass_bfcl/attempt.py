"""What is kept of one attempt beside the host's own record: the verdict and the facts reports need, as JSON text.

Text, because the host redacts nested records by key name (``token``, ``*_key``, ``auth``), and function arguments use
such names; it leaves text alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from agentcompass_bfcl.errors import RunDirError
from agentcompass_bfcl.json_files import DEEPEST, too_deep
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict

EXTRA_KEY = "bfcl"


class AttemptRecord(BaseModel):
    """One attempt. ``output`` is what an official result file would hold; ``latency_ms`` covers the request alone.

    ``malformed_call`` is there, and true, only on a right abstention that held a call which cannot be decoded.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    verdict: Literal["hit", "miss", "unscored"]
    error_type: str | None = None
    reason: str | None = None
    detail: str = ""
    output: Any = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_ms: FiniteFloat | None = None
    malformed_call: bool | None = None

    @property
    def truncated(self) -> bool:
        """Tell whether the reply was cut off at the token limit; it is scored as it stands."""
        return self.finish_reason == "length"

    def to_text(self) -> str:
        """Write as JSON in ASCII: a reply may hold half a surrogate pair, which no UTF-8 file can."""
        return json.dumps(self.model_dump(exclude_none=True))


def attempt_record(verdict: Verdict, output: Any, raw_result: Mapping[str, Any], latency_ms: object) -> AttemptRecord:
    """Gather one attempt's record from its verdict and the harness's raw result."""
    usage = raw_result.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    stop_reason = raw_result.get("stop_reason")
    facts = {
        "output": output,
        "finish_reason": stop_reason if isinstance(stop_reason, str) else None,
        "prompt_tokens": _count(usage.get("prompt_tokens")),
        "completion_tokens": _count(usage.get("completion_tokens")),
        "latency_ms": float(latency_ms) if isinstance(latency_ms, int | float) else None,
    }
    match verdict:
        case Hit(malformed_call):
            return AttemptRecord(verdict="hit", malformed_call=malformed_call or None, **facts)
        case Miss(error_type, detail):
            return AttemptRecord(verdict="miss", error_type=error_type, detail=detail, **facts)
        case Unscored(reason, detail):
            return AttemptRecord(verdict="unscored", reason=reason, detail=detail, **facts)


def read_attempt_record(payload: Mapping[str, Any]) -> AttemptRecord | None:
    """Read the record of a persisted attempt; None when it has none, as after a failed request.

    Raises ``RunDirError`` when there is one that cannot be read.
    """
    meta = payload.get("meta")
    benchmark = meta.get("benchmark") if isinstance(meta, Mapping) else None
    text = benchmark.get(EXTRA_KEY) if isinstance(benchmark, Mapping) else None
    if text is None:
        return None
    try:
        record = AttemptRecord.model_validate(json.loads(text))
    except ValidationError as error:  # itself a ValueError, as is a whole number of more than 4,300 digits
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the record"
        raise RunDirError(f"unreadable attempt record: {place}: {first['msg']}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise RunDirError(f"unreadable attempt record: Invalid JSON ({error})") from None
    if too_deep(record.output):  # Python's JSON reader takes more levels than its writer
        raise RunDirError(f"unreadable attempt record: output: nested deeper than {DEEPEST} levels")
    return record


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

"""May this result pass? A reason for every check, and the answers: yes, no, cannot be judged, result damaged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentcompass_bfcl.baseline import Baseline, Bound
from agentcompass_bfcl.draw import DrawSpec, fingerprint
from agentcompass_bfcl.errors import BfclError, ResultError, shortened
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.verification import verify

_LONGEST_VALUE = 160
_MOST_DIGITS = 9  # of a number of rows; int() refuses more than some thousand


class Status(StrEnum):
    """The answer to a check, and to all of them; from the best to the worst."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not judged"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Measured:
    """A value and its bound. ``slack`` is how far inside the bound the value is, noise allowed for; below 0 outside."""

    value: Decimal
    bound: Bound
    slack: Decimal


@dataclass(frozen=True, slots=True)
class Check:
    """One answer with its reason. ``name`` is a metric, or what else was asked; ``baseline`` names who asked."""

    name: str
    status: Status
    reason: str
    baseline: str | None = None
    measured: Measured | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The checks of one run; ``identity`` is empty for one that cannot be read."""

    source: Path
    identity: Mapping[str, Any]
    checks: tuple[Check, ...]

    @property
    def status(self) -> Status:
        """Give the worst answer; without a single check nothing was judged."""
        return _worst(check.status for check in self.checks)


def worst(decisions: Iterable[Decision]) -> Status:
    """Give the worst answer of several runs."""
    return _worst(decision.status for decision in decisions)


def _worst(answers: Iterable[Status]) -> Status:
    order = list(Status)
    return max(answers, key=order.index, default=Status.NOT_JUDGED)


def judge(record: RunRecord, baselines: Sequence[Baseline]) -> tuple[Check, ...]:
    """Check a run against every baseline that is about it.

    Raises ``ResultError`` for a result that does not agree with itself: it must not pass whatever it says.
    """
    document = record.document
    lacking = not_ready(record)
    if lacking is not None:
        return (lacking,)
    applying = [baseline for baseline in baselines if _is_about(baseline, document)]
    if applying:
        return tuple(check for baseline in applying for check in _checks(baseline, document))
    extra = document.extra
    part = ", narrowed to some of its rows," if _is_narrowed(document) else ""
    known = "; ".join(f"{baseline.label}: {_about(baseline)}" for baseline in baselines) or "none"
    reason = f"no baseline is about draw {extra.get('draw')}{part} of model {extra.get('model')} ({known})"
    return (Check("baseline", Status.NOT_JUDGED, reason),)


def not_ready(record: RunRecord) -> Check | None:
    """Say why a run cannot be judged by anybody, if so: a lone shard, or nothing that was scored.

    Raises ``ResultError`` for a result that does not agree with itself, or whose rows are not those of its fingerprint.
    """
    try:
        verify(record.document)
        _verify_rows(record.document)
        shard = record.shard
    except BfclError as error:  # impossible counts and shards among them
        raise ResultError(f"{record.source}: {error}") from None
    if not shard.is_whole:
        return Check("shard", Status.NOT_JUDGED, f"shard {shard} alone; merge all shards first")
    if not record.document.counts.evaluated:
        return Check("counts.evaluated", Status.NOT_JUDGED, "no sample could be scored")
    return None


def values(document: ResultDocument) -> dict[str, Decimal]:
    """Give everything a bound may be on; what the result does not have is missing, not 0."""
    found: dict[str, float | int | None] = dict(document.metrics)
    found |= {f"category.{name}": score for name, score in document.details.categories.items()}
    found |= {f"subset.{name}.accuracy": subset.accuracy for name, subset in document.details.subsets.items()}
    found |= {f"counts.{name}": count for name, count in document.counts.model_dump().items()}
    found["truncated"] = document.details.truncated
    found["malformed_abstentions"] = document.details.malformed_abstentions
    # The shortest decimal that means the number, as it is shown: 83.64 and not the binary fraction nearest to it.
    return {name: Decimal(repr(value)) for name, value in found.items() if value is not None}


def bounded(name: str, value: Decimal, bound: Bound, baseline: str | None = None) -> Check:
    """Check one value: ``min <= value + noise`` and ``value - noise <= max``, exactly."""
    room = [value + bound.noise - bound.min] if bound.min is not None else []
    room += [bound.max - (value - bound.noise)] if bound.max is not None else []
    slack = min(room)
    status = Status.FAILED if slack < 0 else Status.PASSED
    by = "" if bound.is_pin and status is Status.PASSED else f" by {_digits(abs(slack))}"
    answer = "passes" if status is Status.PASSED else "fails"
    reason = f"{_digits(value)}, {_wanted(bound)}: {answer}{by}"
    return Check(name, status, reason, baseline, Measured(value, bound, slack))


def _verify_rows(document: ResultDocument) -> None:
    said = document.extra.get("fingerprint")
    if not isinstance(said, str):
        return
    if document.details.rows:
        held = fingerprint(DrawSpec(), (row.id for row in document.rows()))
        if held.split(";")[:2] != said.split(";")[:2]:  # the digest and the number of rows; the rest is the draw's rule
            raise ResultError(f"fingerprint is {said[:_LONGEST_VALUE]}, and the rows give {held}; was it edited?")
        return
    rows = next((part[2:] for part in said.split(";") if part.startswith("n=")), "")
    if rows.isascii() and rows.isdigit() and (len(rows) > _MOST_DIGITS or document.counts.total < int(rows)):
        raise ResultError(f"counts.total is {document.counts.total}, and the fingerprint is of {shortened(rows)} rows")


def _is_narrowed(document: ResultDocument) -> bool:
    whole = document.extra.get("draw_fingerprint")
    return whole is not None and whole != document.extra.get("fingerprint")


def _is_about(baseline: Baseline, document: ResultDocument) -> bool:
    if baseline.fingerprint is None and _is_narrowed(document):
        return False  # the host was asked for some sample ids only: the draw's name, and not its rows
    extra = document.extra
    wanted = {"draw": baseline.draw, "fingerprint": baseline.fingerprint, "model": baseline.model}
    return all(value is None or extra.get(name) == value for name, value in wanted.items())


def _about(baseline: Baseline) -> str:
    wanted = {"draw": baseline.draw, "model": baseline.model, "fingerprint": baseline.fingerprint}
    return ", ".join(f"{name} {value}" for name, value in wanted.items() if value is not None)


def _checks(baseline: Baseline, document: ResultDocument) -> Iterator[Check]:
    yield from _conditions("", baseline.conditions, document.extra, baseline.label)
    if not baseline.metrics:
        yield Check("bounds", Status.NOT_JUDGED, "the baseline has no bound at all", baseline.label)
    present = values(document)
    for name, bound in baseline.metrics.items():
        value = present.get(name)
        if value is None:
            yield Check(name, Status.NOT_JUDGED, f"the result does not have it; {_wanted(bound)}", baseline.label)
        else:
            yield bounded(name, value, bound, baseline.label)


def _conditions(prefix: str, wanted: Mapping[str, Any], identity: Mapping[str, Any], baseline: str) -> Iterator[Check]:
    for key, value in wanted.items():
        name, actual = f"{prefix}{key}", identity.get(key)
        if isinstance(value, Mapping) and value and isinstance(actual, Mapping):
            yield from _conditions(f"{name}.", value, actual, baseline)
        elif _comparable(value) == _comparable(actual):
            yield Check(name, Status.PASSED, f"is {_shown(actual)}", baseline)
        else:
            reason = f"is {_shown(actual)}, and the baseline holds for {_shown(value)}"
            yield Check(name, Status.NOT_JUDGED, reason, baseline)


def _comparable(value: Any) -> Any:
    """Make equal what means the same: 0 and 0.0, null and absent; and keep true and 1 apart, which Python does not."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, int | float):
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {key: _comparable(item) for key, item in value.items() if item is not None}
    return [_comparable(item) for item in value] if isinstance(value, list | tuple) else value


def _shown(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=_for_json))


def _for_json(value: object) -> float | str:
    return float(value) if isinstance(value, Decimal) else str(value)  # what else TOML has are dates and times


def _wanted(bound: Bound) -> str:
    if bound.is_pin and bound.min is not None:
        return f"exactly {_digits(bound.min)} wanted"
    least = [] if bound.min is None else [f"at least {_digits(bound.min)}"]
    most = [] if bound.max is None else [f"at most {_digits(bound.max)}"]
    noise = f"noise {_digits(bound.noise)}" if bound.noise else "no noise"
    return f"{' and '.join(least + most)} wanted, {noise}"


def _digits(number: Decimal) -> str:
    return f"{number.normalize():f}"

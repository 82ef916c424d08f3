"""May this result pass? A decision with a reason for every check, and three answers: yes, no, and cannot be judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from agentcompass_bfcl.baseline import ONE_SIDED_95, Baseline, Bound
from agentcompass_bfcl.compare import Comparison
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.verification import verify


class Status(StrEnum):
    """The answer to a check, and to all of them."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Check:
    """One answer with its reason. ``name`` is a metric, or what else was asked."""

    name: str
    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The checks of one run. It is not judged when one of them could not be, and failed when one of them did."""

    record: RunRecord
    checks: tuple[Check, ...]

    @property
    def status(self) -> Status:
        """Give the worst answer; without a single check nothing was judged."""
        answers = {check.status for check in self.checks}
        for worst in (Status.NOT_JUDGED, Status.FAILED):
            if worst in answers:
                return worst
        return Status.PASSED if answers else Status.NOT_JUDGED


def judge(record: RunRecord, baselines: Sequence[Baseline]) -> tuple[Check, ...]:
    """Check a run against every baseline that is about it.

    Raises ``ResultError`` for a result that does not agree with itself: it must not pass whatever it says.
    """
    document = record.document
    verify(document)
    lacking = _not_ready(record)
    if lacking is not None:
        return (lacking,)
    applying = [baseline for baseline in baselines if _is_about(baseline, document)]
    if not applying:
        known = "; ".join(f"{baseline.label}: {_about(baseline)}" for baseline in baselines) or "none"
        reason = (
            f"no baseline is about draw {document.extra.get('draw')} of model {document.extra.get('model')} ({known})"
        )
        return (Check("baseline", Status.NOT_JUDGED, reason),)
    return tuple(check for baseline in applying for check in _checks(baseline, document))


def not_worse(comparison: Comparison, margin: Decimal | None) -> Check:
    """Check that the second run of a comparison is not worse than the first, on overall, row by row.

    Without a margin it fails only when it is shown to be worse: when difference + 1.645 paired standard errors is
    below 0 (one-sided, 95 %). With a margin, in points, it passes only when it is shown to be at most that much
    worse: difference - 1.645 standard errors >= -margin.
    """
    name, change = "not worse", comparison.changes["overall"]
    error = change.standard_error
    if error is None:
        return Check(name, Status.NOT_JUDGED, "the paired standard error is undefined")
    points, bar = float(change.difference) * 100, ONE_SIDED_95 * error * 100
    against = f"{points:+.2f} points against {comparison.first.source}, 1.645 paired standard errors are {bar:.2f}"
    if margin is None:
        worse = points + bar < 0
        said = "shown to be worse" if worse else "not shown to be worse"
    else:
        worse = points - bar < -float(margin)
        said = f"{'not ' if worse else ''}shown to be at most {margin} points worse"
    return Check(name, Status.FAILED if worse else Status.PASSED, f"{said}: {against}")


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


def _not_ready(record: RunRecord) -> Check | None:
    if not record.shard.is_whole:
        return Check("shard", Status.NOT_JUDGED, f"shard {record.shard} alone; merge all shards first")
    if not record.document.counts.evaluated:
        return Check("counts.evaluated", Status.NOT_JUDGED, "no sample could be scored")
    return None


def _is_about(baseline: Baseline, document: ResultDocument) -> bool:
    extra = document.extra
    wanted = {"draw": baseline.draw, "fingerprint": baseline.fingerprint, "model": baseline.model}
    return all(value is None or extra.get(name) == value for name, value in wanted.items())


def _about(baseline: Baseline) -> str:
    wanted = {"draw": baseline.draw, "model": baseline.model, "fingerprint": baseline.fingerprint}
    return ", ".join(f"{name} {value}" for name, value in wanted.items() if value is not None)


def _checks(baseline: Baseline, document: ResultDocument) -> Iterator[Check]:
    yield from _conditions("", baseline.conditions, document.extra)
    if not baseline.metrics:
        yield Check(baseline.label, Status.NOT_JUDGED, "the baseline has no bound at all")
    present = values(document)
    for name, bound in baseline.metrics.items():
        value = present.get(name)
        if value is None:
            yield Check(name, Status.NOT_JUDGED, "the result does not have it")
        else:
            yield _bounded(name, value, bound)


def _conditions(prefix: str, wanted: Mapping[str, Any], identity: Mapping[str, Any]) -> Iterator[Check]:
    for key, value in wanted.items():
        name, actual = f"{prefix}{key}", identity.get(key)
        if isinstance(value, Mapping) and isinstance(actual, Mapping):
            yield from _conditions(f"{name}.", value, actual)
        elif _plain(value) == _plain(actual):
            yield Check(name, Status.PASSED, f"is {_plain(actual)}")
        else:
            yield Check(name, Status.NOT_JUDGED, f"is {_plain(actual)}, and the baseline holds for {_plain(value)}")


def _plain(value: Any) -> Any:
    """Make numbers equal that mean the same: 0 and 0.0, whoever wrote them."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        number = value if isinstance(value, Decimal) else Decimal(repr(value))
        return int(number) if number.is_finite() and number == number.to_integral_value() else number
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _bounded(name: str, value: Decimal, bound: Bound) -> Check:
    failures = []
    if bound.min is not None and value + bound.noise < bound.min:
        failures.append(f"{bound.min - value - bound.noise} below")
    if bound.max is not None and value - bound.noise > bound.max:
        failures.append(f"{value - bound.noise - bound.max} above")
    said = f"{value}, {_wanted(bound)}"
    if failures:
        return Check(name, Status.FAILED, f"{said}: {', '.join(failures)}")
    return Check(name, Status.PASSED, said)


def _wanted(bound: Bound) -> str:
    if bound.is_pin:
        return f"exactly {bound.min} wanted"
    parts = [
        f"at least {bound.min}" if bound.min is not None else "",
        f"at most {bound.max}" if bound.max is not None else "",
    ]
    noise = f", noise {bound.noise}" if bound.noise else ""
    return f"{' and '.join(part for part in parts if part)} wanted{noise}"


def worst(decisions: Iterable[Decision]) -> Status:
    """Give the worst answer of several runs."""
    answers = [decision.status for decision in decisions]
    return next((status for status in (Status.NOT_JUDGED, Status.FAILED) if status in answers), Status.PASSED)

"""A gate's decision as machines read it: a fixed schema, with the numbers behind each reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat

from agentcompass_bfcl.gate import Check, Decision, Status, worst

SCHEMA_VERSION: Final = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CheckDocument(_Part):
    """One check. The numbers are null where no bound was held against a value; ``slack`` below 0 is what is lacking."""

    baseline: str | None
    name: str
    status: Status
    reason: str
    value: FiniteFloat | None
    min: FiniteFloat | None
    max: FiniteFloat | None
    noise: FiniteFloat | None
    slack: FiniteFloat | None


class RunDocument(_Part):
    """One run's checks. ``model`` and ``draw`` are null for a run that cannot be read."""

    source: str
    model: str | None
    draw: str | None
    status: Status
    checks: list[CheckDocument]


class DecisionDocument(_Part):
    """The decision on all runs; ``status`` is the worst of theirs."""

    schema_version: Literal[1] = SCHEMA_VERSION
    status: Status
    runs: list[RunDocument]


def decision_document(decisions: Sequence[Decision]) -> DecisionDocument:
    """Put decisions into the schema."""
    return DecisionDocument(status=worst(decisions), runs=[_run(decision) for decision in decisions])


def _run(decision: Decision) -> RunDocument:
    model, draw = (decision.identity.get(key) for key in ("model", "draw"))
    return RunDocument(
        source=str(decision.source),
        model=None if model is None else str(model),
        draw=None if draw is None else str(draw),
        status=decision.status,
        checks=[_check(check) for check in decision.checks],
    )


def _check(check: Check) -> CheckDocument:
    measured = check.measured
    bound = None if measured is None else measured.bound
    return CheckDocument(
        baseline=check.baseline,
        name=check.name,
        status=check.status,
        reason=check.reason,
        value=None if measured is None else float(measured.value),
        min=None if bound is None or bound.min is None else float(bound.min),
        max=None if bound is None or bound.max is None else float(bound.max),
        noise=None if bound is None else float(bound.noise),
        slack=None if measured is None else float(measured.slack),
    )

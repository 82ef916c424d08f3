"""Is a run not worse than another one of the same rows? Paired and one-sided, from the two results alone.

With the difference d of overall (this run minus the other) and its paired standard error se, at 95 %:

    without a margin    fails when d + 1.645 se < 0: only a run that is shown to be worse fails, an equal one passes
    with a margin M     passes when d - 1.645 se >= -M: the run has to be shown to be at most M points worse

The margin turns the burden of proof round: where few rows, or rows that flip a lot, show nothing, the first rule passes
and the second fails. With M = 0 only a run that is shown to be better passes, or one without a flip. A margin wider
than the loss lets a run pass that is shown to be worse, though not by more than that.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import sqrt

from agentcompass_bfcl.aggregate import OVERALL, OnError
from agentcompass_bfcl.baseline import ONE_SIDED_95
from agentcompass_bfcl.errors import CompareError
from agentcompass_bfcl.gate import Check, Status, not_ready
from agentcompass_bfcl.identity import QUESTION_KEYS, differences
from agentcompass_bfcl.paired_rows import difference_strata, pair_rows
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.uncertainty import node_mean, node_variance

NOT_WORSE = "not worse"
_LONGEST_VALUE = 160
_SQUARE = Fraction(repr(ONE_SIDED_95)) ** 2


def not_worse(record: RunRecord, other: RunRecord, margin: Decimal | None) -> Check:
    """Check that a run is not worse than another on overall, row by row; ``margin`` is in points, 0 or more.

    Not judged: a lone shard, a run with nothing scored, other questions or rows, results that do not say what came of
    each row, and a single row, which has no standard error. Raises ``ResultError`` for a result that is damaged.
    """
    obstacle = _obstacle(record, other)
    if obstacle is not None:
        return Check(NOT_WORSE, Status.NOT_JUDGED, obstacle)
    try:
        rows = pair_rows(other, record)
    except CompareError as error:
        return Check(NOT_WORSE, Status.NOT_JUDGED, str(error))
    strata = difference_strata(rows, OnError(str(record.identity["on_error"])))
    difference, variance = node_mean(OVERALL, strata), node_variance(OVERALL, strata)
    if difference is None:
        return Check(NOT_WORSE, Status.NOT_JUDGED, f"no row has a verdict here and in {other.source}")
    if variance is None:
        return Check(NOT_WORSE, Status.NOT_JUDGED, "a single row has no paired standard error")
    if margin is None:
        # d < 0 and d^2 > 1.645^2 var: as exact as d + 1.645 se < 0 is not, for want of an exact root.
        fails = difference < 0 and difference**2 > _SQUARE * variance
        said = "shown to be worse" if fails else "not shown to be worse"
    else:
        room = difference + Fraction(margin) / 100
        fails = room < 0 or room**2 < _SQUARE * variance
        said = f"{'not ' if fails else ''}shown to be at most {margin} points worse"
    points, bar = float(difference) * 100, ONE_SIDED_95 * sqrt(variance) * 100
    edge = points + bar if margin is None else points - bar + float(margin)
    reason = (
        f"{said}: {points:+.2f} points against {other.source}, 1.645 paired standard errors are {bar:.2f}:"
        f" {'fails' if fails else 'passes'} by {abs(edge):.2f}"
    )
    return Check(NOT_WORSE, Status.FAILED if fails else Status.PASSED, reason)


def _obstacle(record: RunRecord, other: RunRecord) -> str | None:
    for side in (record, other):
        lacking = not_ready(side)
        if lacking is not None:
            return f"{side.source}: {lacking.reason}"
        if not side.document.details.rows:
            return f"{side.source}: the result does not say what came of each row"
    for key, pair in differences(record.identity, other.identity, QUESTION_KEYS).items():
        here, there = (str(value)[:_LONGEST_VALUE] for value in pair)
        return f"not the same question: {key} is {here} here and {there} in {other.source}"
    return None

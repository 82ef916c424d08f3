"""Two runs of the same rows, row by row: what changed, how sure that is, and what could have been seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from agentcompass_bfcl.aggregate import OVERALL, WEIGHTS, Combine, Node, OnError, inner_nodes
from agentcompass_bfcl.errors import CompareError
from agentcompass_bfcl.paired_rows import PairedRow, difference_strata, own_strata, pair_rows
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.same_question import require_same_question
from agentcompass_bfcl.subsets import CATEGORIES
from agentcompass_bfcl.uncertainty import Z95, Strata, mcnemar, node_mean, node_variance

_SIGNIFICANT = Fraction(1, 20)
_POWER_80 = NormalDist().inv_cdf(0.8)


class Finding(StrEnum):
    """What may be concluded of overall. Doubtful: of interval and exact test one shows a difference, one does not."""

    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "no difference shown"
    DOUBTFUL = "doubtful"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class Change:
    """A score's change from the first run to the second, as a fraction, with the paired variance of it.

    A variance is None where it is undefined: a single row, or a single cluster; the clustered one also where rows are
    of no known cluster.
    """

    name: str
    difference: Fraction
    variance: Fraction | None
    clustered_variance: Fraction | None

    @property
    def standard_error(self) -> float | None:
        """Give the paired standard error, a fraction."""
        return None if self.variance is None else sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Give the 95 % interval of the difference: 1.96 paired standard errors either way, as fractions."""
        error = self.standard_error
        return None if error is None else (float(self.difference) - Z95 * error, float(self.difference) + Z95 * error)

    @property
    def detectable(self) -> float | None:
        """Give the least true difference such rows show with 80 % power, a fraction.

        None also where the standard error is 0, as every row changed alike, or none: that tells nothing of it.
        """
        return (Z95 + _POWER_80) * self.standard_error if self.standard_error else None


@dataclass(frozen=True, slots=True)
class SubsetFlips:
    """How many rows of a subset have more hits than before, fewer, and as many; its rows in all are their sum."""

    gained: int
    lost: int
    same: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The change from ``first`` to ``second``. ``p`` is McNemar's, None where rows count several attempts.

    ``rows`` were compared and ``left_out`` have no verdict in both runs; ``changed_rows`` of them all came out
    otherwise in any way, as an error instead of a miss for example, which is no flip.
    """

    first: RunRecord
    second: RunRecord
    changes: Mapping[str, Change]
    gained: tuple[PairedRow, ...]
    lost: tuple[PairedRow, ...]
    subsets: Mapping[str, SubsetFlips]
    rows: int
    left_out: int
    changed_rows: int
    p: Fraction | None
    unpaired_variance: Fraction | None
    notes: tuple[str, ...]

    @property
    def changed_share(self) -> Fraction:
        """Give the share of rows whose outcome changed in any way, errors included."""
        return Fraction(self.changed_rows, self.rows + self.left_out)

    @property
    def finding(self) -> Finding:
        """Say what may be concluded of overall: a difference is shown when its interval and the exact test say so."""
        overall = self.changes["overall"]
        if overall.interval is None:
            return Finding.UNDEFINED
        by_interval = overall.interval[0] > 0 or overall.interval[1] < 0
        by_test = by_interval if self.p is None else self.p < _SIGNIFICANT
        if by_interval != by_test:
            return Finding.DOUBTFUL
        if not by_interval:
            return Finding.NOT_SHOWN
        return Finding.BETTER if overall.difference > 0 else Finding.WORSE


@dataclass(frozen=True, slots=True)
class Largest:
    """The most that was seen of each, as fractions; ``normalized`` is None where the draw has none."""

    changed_share: Fraction
    overall: Fraction
    normalized: Fraction | None


@dataclass(frozen=True, slots=True)
class RepeatSpread:
    """How much ``runs`` runs of one build differ with nothing changed, any two of them compared."""

    runs: int
    pairs: tuple[Comparison, ...]

    @property
    def between_any(self) -> Largest:
        """Give the largest differences between any two."""
        return _largest(self.pairs)

    @property
    def from_first(self) -> Largest:
        """Give the largest differences from the first: what another run's difference from it is to be held against."""
        return _largest(self.pairs[: self.runs - 1])


def compare(
    first: RunRecord, second: RunRecord, clusters: Mapping[str, str], *, allow: Collection[str] = ()
) -> Comparison:
    """Compare two runs of the same rows; ``clusters`` names each row's cluster by id.

    Differences are those of the rows themselves, so what both runs find hard cancels out. Under the policy
    ``exclude`` rows without a verdict in either run are left out. Raises ``CompareError`` when the runs were not
    asked the same, unless the facts that differ are all in ``allow``, do not have the same rows, or a result does not
    say what came of them or does not agree with itself.
    """
    notes = require_same_question(first, second, allow)
    policy = OnError(str(first.identity["on_error"]))
    rows = pair_rows(first, second)
    counted = tuple(row for row in rows if row.counted(policy))
    if not counted:
        raise CompareError(f"{first.source}, {second.source}: no row has a verdict in both")
    named, note = _known_clusters(counted, clusters)
    plain = difference_strata(counted, policy)
    gained, lost = (tuple(row for row in counted if sign * row.gain(policy) > 0) for sign in (1, -1))
    return Comparison(
        first=first,
        second=second,
        changes=_changes(plain, None if named is None else difference_strata(counted, policy, named)),
        gained=gained,
        lost=lost,
        subsets=_subset_flips(counted, gained, lost),
        rows=len(counted),
        left_out=len(rows) - len(counted),
        changed_rows=sum(row.changed for row in rows),
        p=mcnemar(len(gained), len(lost)) if all(len(row.before) == 1 for row in rows) else None,
        unpaired_variance=_unpaired_variance(counted, policy),
        notes=(*notes, *note),
    )


def repeat_spread(
    records: Sequence[RunRecord], clusters: Mapping[str, str], *, allow: Collection[str] = ()
) -> RepeatSpread:
    """Measure how much two or more runs of one build differ. Raises ``CompareError`` as ``compare``."""
    if len(records) < 2:
        raise CompareError("what changes with nothing changed takes two runs at least")
    pairs = tuple(
        compare(first, second, clusters, allow=allow)
        for place, first in enumerate(records)
        for second in records[place + 1 :]
    )
    return RepeatSpread(len(records), pairs)


def _largest(pairs: Iterable[Comparison]) -> Largest:
    found = list(pairs)
    normalized = [abs(pair.changes["normalized"].difference) for pair in found if "normalized" in pair.changes]
    return Largest(
        changed_share=max(pair.changed_share for pair in found),
        overall=max(abs(pair.changes["overall"].difference) for pair in found),
        normalized=max(normalized, default=None),
    )


def _known_clusters(
    rows: Iterable[PairedRow], clusters: Mapping[str, str]
) -> tuple[dict[str, str] | None, tuple[str, ...]]:
    unknown = [row.id for row in rows if row.id not in clusters]
    if not unknown:
        return dict(clusters), ()
    note = f"no clustered errors: {len(unknown)} ids are not in the pinned data set, such as {unknown[0][:80]!a}"
    return None, (note,)


def _changes(plain: Strata, clustered: Strata | None) -> dict[str, Change]:
    nodes = {node.name: node for node in inner_nodes(WEIGHTS)}
    wanted = [OVERALL, WEIGHTS, *(nodes[name] for name in CATEGORIES)]
    wanted += [Node(name, Combine.POOLED, (name,)) for name in plain]
    changes = {}
    for node in wanted:
        difference = node_mean(node, plain)
        if difference is not None:
            of_clusters = None if clustered is None else node_variance(node, clustered)
            changes[node.name] = Change(node.name, difference, node_variance(node, plain), of_clusters)
    return changes


def _unpaired_variance(rows: Iterable[PairedRow], on_error: OnError) -> Fraction | None:
    """Give the variance overall would have if the runs were of different rows: the sum of both runs' own."""
    own = [node_variance(OVERALL, strata) for strata in own_strata(rows, on_error)]
    known = [variance for variance in own if variance is not None]
    return sum(known, Fraction(0)) if len(known) == len(own) else None


def _subset_flips(
    rows: Iterable[PairedRow], gained: Iterable[PairedRow], lost: Iterable[PairedRow]
) -> dict[str, SubsetFlips]:
    every, up, down = (Counter(row.subset for row in group) for group in (rows, gained, lost))
    return {name: SubsetFlips(up[name], down[name], every[name] - up[name] - down[name]) for name in sorted(every)}

"""The rows of two runs side by side, as they count in each run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.errors import BfclError, CompareError
from agentcompass_bfcl.rows import Row
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.tally import Outcome
from agentcompass_bfcl.uncertainty import Cluster, Strata, group
from agentcompass_bfcl.verification import counts_once, verify


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A row and what counts of it: as many outcomes in one run as in the other, one where a row counts once."""

    id: str
    subset: str
    before: tuple[Outcome, ...]
    after: tuple[Outcome, ...]

    def counted(self, on_error: OnError) -> list[tuple[int, int]]:
        """Give ``(1 or 0 before, 1 or 0 after)`` of each attempt that has a verdict in both runs.

        Under the policy ``fail`` an error is a 0, and every attempt is there.
        """
        return [
            (int(before is Outcome.HIT), int(after is Outcome.HIT))
            for before, after in zip(self.before, self.after, strict=True)
            if on_error is OnError.FAIL or Outcome.ERROR not in (before, after)
        ]

    def gain(self, on_error: OnError) -> int:
        """Count how many hits more there are after than before, of the attempts that count."""
        return sum(after - before for before, after in self.counted(on_error))

    @property
    def changed(self) -> bool:
        """Tell whether anything came out otherwise. Attempts are alike, so that their order is no change."""
        return sorted(self.before) != sorted(self.after)


def pair_rows(first: RunRecord, second: RunRecord) -> tuple[PairedRow, ...]:
    """Put the rows of two runs side by side, in the order of the draws: by subset, then by number.

    Raises ``CompareError`` for a result without rows or one that does not agree with itself, and where the rows, or
    how often each counts, are not the same.
    """
    before, after = _counted_rows(first), _counted_rows(second)
    if alone := sorted(before.keys() ^ after.keys()):
        where = first if alone[0] in before else second
        count = "1 row is" if len(alone) == 1 else f"{len(alone)} rows are"
        raise CompareError(f"{count} in one of the runs only, such as {alone[0][:80]!a} in {where.source}")
    for name, row in before.items():
        counts = len(row.outcomes), len(after[name].outcomes)
        if counts[0] != counts[1]:
            raise CompareError(
                f"row {name[:80]!a} counts {counts[0]} times in {first.source} and {counts[1]} times in"
                f" {second.source}; attempts are compared one by one: run both with the same --attempts"
            )
    rows = (PairedRow(row.id, row.subset, row.outcomes, after[name].outcomes) for name, row in before.items())
    return tuple(sorted(rows, key=_place))


def difference_strata(
    rows: Iterable[PairedRow], on_error: OnError, clusters: dict[str, str] | None = None
) -> dict[str, tuple[Cluster, ...]]:
    """Group the differences, hits after minus hits before, by subset and cluster; without ``clusters`` by row."""
    return group(
        (row.subset, row.id if clusters is None else clusters[row.id], after - before)
        for row in rows
        for before, after in row.counted(on_error)
    )


def own_strata(rows: Iterable[PairedRow], on_error: OnError) -> tuple[Strata, Strata]:
    """Group the hits of each run alone, of the attempts that are compared."""
    counted = [(row, pair) for row in rows for pair in row.counted(on_error)]
    before, after = (group((row.subset, row.id, pair[side]) for row, pair in counted) for side in (0, 1))
    return before, after


def _counted_rows(record: RunRecord) -> dict[str, Row]:
    try:
        rows = record.document.rows()
        verify(record.document)
    except BfclError as error:
        raise CompareError(
            f"{record.source}: {error}; `agentcompass-bfcl rescore RUN --json` of the run it is of gives one that"
            " can be compared"
        ) from None
    once = counts_once(record.document)
    return {row.id: Row(row.id, row.subset, (row.best,) if once else row.outcomes) for row in rows}


def _place(row: PairedRow) -> tuple[str, list[tuple[int, str]], str]:
    # Digits are compared as text, by length first: int() refuses more than some thousand of them.
    numbers = [digits.lstrip("0") for digits in re.findall("[0-9]+", row.id.removeprefix(row.subset))]
    return row.subset, [(len(digits), digits) for digits in numbers], row.id

"""What came of every row of a run, compact enough to travel inside a result.

Tallies say how many; rows say which. With them shards can be put together without losing or inventing one, runs
compared row by row, and standard errors computed over groups of rows, all from the result alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from agentcompass_bfcl.errors import TallyError
from agentcompass_bfcl.subsets import SUBSET_BY_NAME
from agentcompass_bfcl.tally import Outcome, Tally, count

_MOST_ATTEMPTS = 1_000

_LETTER = MappingProxyType({Outcome.HIT: "h", Outcome.MISS: "m", Outcome.ERROR: "e"})
_OUTCOME = MappingProxyType({letter: outcome for outcome, letter in _LETTER.items()})


@dataclass(frozen=True, slots=True)
class Row:
    """One drawn row and the outcome of each attempt at it, in order; a row has at least one."""

    id: str
    subset: str
    outcomes: tuple[Outcome, ...]

    @property
    def best(self) -> Outcome:
        """Give the row's outcome where any hit counts: a hit, else a miss, else an error."""
        return next(wanted for wanted in (Outcome.HIT, Outcome.MISS, Outcome.ERROR) if wanted in self.outcomes)


def tally_rows(rows: Iterable[Row], *, any_of: bool = False) -> dict[str, Tally]:
    """Count rows by subset: every attempt as a sample of its own (avg@k), or with ``any_of`` a row once (pass@k)."""
    return count((row.subset, outcome) for row in rows for outcome in ((row.best,) if any_of else row.outcomes))


def encode_rows(rows: Iterable[Row]) -> dict[str, str]:
    """Write rows as ``{subset: "<id without the subset>:<letters> ..."}``, in the order given.

    A letter an attempt: h a hit, m a miss, e an error. ``multiple_7`` with a miss and a hit is ``7:mh``. Raises
    ``TallyError`` for a row that would not read back as itself: an id that does not begin with its subset or holds a
    blank or a colon, or no attempt.
    """
    written: dict[str, list[str]] = {}
    for row in rows:
        letters = "".join(_LETTER[outcome] for outcome in row.outcomes)
        token = f"{row.id.removeprefix(f'{row.subset}_')}:{letters}"
        if token.split() != [token] or not letters or _row(row.subset, token) != row:
            raise TallyError(f"row {row.id[:80]!a} of subset {row.subset[:80]!a} cannot be written: {token[:80]!a}")
        written.setdefault(row.subset, []).append(token)
    return {subset: " ".join(tokens) for subset, tokens in sorted(written.items())}


def decode_rows(written: Mapping[str, str]) -> tuple[Row, ...]:
    """Read rows back, subsets sorted. Raises ``TallyError`` for anything else, and for a row that stands twice."""
    rows: dict[str, Row] = {}
    for subset, text in sorted(written.items()):
        if subset not in SUBSET_BY_NAME:
            raise TallyError(f"rows of an unknown subset {subset[:80]!a}")
        tokens = text.split()
        if len(tokens) > SUBSET_BY_NAME[subset].rows:
            raise TallyError(f"{len(tokens)} rows of {subset}, which has {SUBSET_BY_NAME[subset].rows}")
        for token in tokens:
            row = _row(subset, token)
            if row.id in rows:
                raise TallyError(f"row {row.id} stands twice")
            rows[row.id] = row
    return tuple(rows.values())


def attempts_of(rows: Sequence[Row]) -> int:
    """Count the attempts of the row that had most; 0 without rows."""
    return max((len(row.outcomes) for row in rows), default=0)


def _row(subset: str, token: str) -> Row:
    rest, _, letters = token.partition(":")
    if not rest or not letters or set(letters) - set(_OUTCOME):
        raise TallyError(f"subset {subset}: {token[:80]!a} is no row; <number>:<h, m or e an attempt> is expected")
    if len(letters) > _MOST_ATTEMPTS:
        raise TallyError(f"row {subset}_{rest[:80]} has {len(letters)} attempts; {_MOST_ATTEMPTS} at most can be")
    return Row(f"{subset}_{rest}", subset, tuple(_OUTCOME[letter] for letter in letters))

"""Which part of a draw one worker runs: row i of each subset's drawn rows belongs to shard i modulo count.

Striping gives every shard a proportional slice of every subset, and membership depends on a row's position alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.draw import Plan
from agentcompass_bfcl.errors import ShardError, shortened

_MOST_DIGITS = 9  # int() refuses more than some thousand


def shard_take(take: int, index: int, count: int) -> int:
    """Count the rows shard ``index`` of ``count`` gets of ``take`` drawn rows; 0 when the shard does not exist."""
    if count < 1 or not 0 <= index < count:
        return 0
    return max(0, -(-(take - index) // count))


def shard_owns(row: int, index: int, count: int) -> bool:
    """Tell whether drawn row ``row`` (0-based within its subset) belongs to shard ``index`` of ``count``."""
    return count >= 1 and 0 <= index < count and row >= 0 and row % count == index


def shard_plan(plan: Sequence[tuple[str, int]], index: int, count: int) -> Plan:
    """Count one shard's rows of each subset, without empty subsets."""
    takes = ((name, shard_take(take, index, count)) for name, take in plan)
    return [(name, take) for name, take in takes if take > 0]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` (0-based) of ``count``; ``0/1`` is the whole. Raises ``ShardError`` when there is no such part."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ShardError(f"shard {self.index}/{self.count}: the count must be 1 or more")
        if not 0 <= self.index < self.count:
            raise ShardError(
                f"shard {self.index}/{self.count}: indices are 0-based, so 0 to {self.count - 1} of {self.count} exist"
            )

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``index/count``, such as ``0/4`` for the first of four."""
        index, slash, count = text.strip().partition("/")
        if not slash or not _is_number(index) or not _is_number(count):
            raise ShardError(f"shard {shortened(repr(text))}: write index/count with a 0-based index, such as 0/4")
        return cls(int(index), int(count))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def is_whole(self) -> bool:
        """Tell whether this is all of the draw."""
        return self.count == 1

    def owns(self, row: int) -> bool:
        """Tell whether the drawn row (0-based within its subset) is in this shard."""
        return shard_owns(row, self.index, self.count)

    def plan(self, plan: Sequence[tuple[str, int]]) -> Plan:
        """Count this shard's rows of each subset."""
        return shard_plan(plan, self.index, self.count)

    def take(self, drawn: Iterable[Entry]) -> tuple[Entry, ...]:
        """Pick this shard's rows. A draw takes a subset's first rows, so a row's number is its place in the draw."""
        return tuple(entry for entry in drawn if self.owns(entry.row))

"""Which mistake the endpoint makes on which row: shares in percent, spread over the rows by a hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.endpoint.wrong_values import has_argument_to_spoil
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.subsets import Rule, subset_named

type Percent = Fraction | int


class Kind(StrEnum):
    """A mistake that decides a row. All but the last two are wrong answers; those two are no answer at all."""

    WRONG_VALUE = "wrong_value"
    WRONG_FUNCTION = "wrong_function"
    MISSING_CALL = "missing_call"
    EXTRA_CALL = "extra_call"
    MALFORMED_ARGUMENTS = "malformed_arguments"
    HTTP_500 = "http_500"
    STALL = "stall"


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Shares of the rows in percent, exact; what is left over is answered right.

    ``flaky_500`` is a share of its own and decides no row: the first request for such a row fails with 500 or 429 and
    ``Retry-After: 0``, later ones get the row's answer. Raises ``ConfigError`` for a share outside 0 to 100 and for
    deciding shares that add up to more than 100.
    """

    wrong_value: Percent = 0
    wrong_function: Percent = 0
    missing_call: Percent = 0
    extra_call: Percent = 0
    malformed_arguments: Percent = 0
    http_500: Percent = 0
    stall: Percent = 0
    flaky_500: Percent = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 <= getattr(self, field.name) <= 100:
                raise ConfigError(f"{field.name}={getattr(self, field.name)}: a share is a percentage from 0 to 100")
        total = sum(self.share(kind) for kind in Kind)
        if total > 100:
            raise ConfigError(f"the shares of mistakes add up to {total} %, more than all rows; lower some of them")

    def share(self, kind: Kind) -> Percent:
        """Give one kind's share in percent."""
        share: Percent = getattr(self, kind.value)
        return share


NO_MISTAKES = Mistakes()


def parse_mistakes(text: str) -> Mistakes:
    """Read shares such as ``wrong_value=2.5,http_500=1/3``, exactly; empty text means no mistakes.

    A number alone is the share of each kind that decides a row.

    Raises ``ConfigError`` that names the part at fault.
    """
    if "=" not in text and text.strip():
        return Mistakes(**{kind.value: _percentage(text.strip(), text, "5, the share of every kind") for kind in Kind})
    known = [field.name for field in fields(Mistakes)]
    shares: dict[str, Fraction] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, percent = (piece.strip() for piece in part.partition("="))
        if name not in known:
            raise ConfigError(f"unknown mistake {name!r}; known: {', '.join(known)}")
        if name in shares:
            raise ConfigError(f"{part!r}: {name} is given twice")
        shares[name] = _percentage(percent, part, f"{name}=2.5")
    return Mistakes(**shares)


def _percentage(text: str, part: str, example: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ConfigError(f"{part!r}: expected a percentage such as {example}") from None


def planned_mistake(entry: Entry, mistakes: Mistakes, seed: int) -> Kind | None:
    """Plan the mistake of a row, or None for a right answer.

    The plan follows from the seed and the row's id alone, so that it is the same in any order, at any concurrency and
    on every repetition. A kind that is no mistake on this row is replaced by one that is.
    """
    point = _point(seed, "mistake", entry.id)
    bound: Percent = 0
    for kind in Kind:
        bound += mistakes.share(kind)
        if point < bound:
            return real_mistake(entry, kind)
    return None


def is_flaky(entry: Entry, mistakes: Mistakes, seed: int) -> bool:
    """Tell whether the first request for a row fails, though the row will be answered."""
    return _point(seed, "flaky", entry.id) < mistakes.flaky_500


def real_mistake(entry: Entry, kind: Kind) -> Kind:
    """Replace a kind that would be no mistake on this row by the nearest one that is.

    Where no call is wanted, only a call is wrong: upstream takes malformed arguments there for a right abstention.
    Where any call is right, only the lack of one is wrong. A call without arguments has no value to get wrong.
    """
    if kind in (Kind.HTTP_500, Kind.STALL):
        return kind
    match subset_named(entry.subset).rule:
        case Rule.IRRELEVANCE:
            return Kind.EXTRA_CALL
        case Rule.RELEVANCE:
            return Kind.MISSING_CALL
        case Rule.AST:
            spoilable = kind is not Kind.WRONG_VALUE or has_argument_to_spoil(entry)
            return kind if spoilable else Kind.WRONG_FUNCTION


def _point(seed: int, purpose: str, sample_id: str) -> Fraction:
    """Place a row on the line from 0 to 100, evenly."""
    digest = hashlib.sha256(f"{seed}:{purpose}:{sample_id}".encode()).digest()
    return Fraction(100 * int.from_bytes(digest), 2**256)

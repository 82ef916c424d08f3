"""Which rows a run is about: a draw by fixed rules and no random numbers, and its fingerprint.

A score depends on the mix of subsets, so it is comparable only with scores of the same draw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.errors import DrawError
from agentcompass_bfcl.subsets import CATEGORIES, category_of, subset_named

type Plan = list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class DrawSpec:
    """The rule of a draw.

    ``categories`` selects by category; empty means every single-turn subset, ``live_relevance`` included.
    ``category_pct`` takes that percentage (0 exclusive to 100) of each subset of a category, at least one row; a
    category without one is taken whole. A subset of at most ``subset_floor`` rows is taken whole as well.
    ``subsets`` narrows the selection further, and ``limit`` caps the number of rows, one row of every subset in turn,
    so that a smoke run still touches each of them. Order and repetition of names mean nothing: equal rules are equal.

    Raises ``DrawError`` for unknown names and values out of range.
    """

    categories: tuple[str, ...] = ()
    category_pct: Mapping[str, float] = field(default_factory=dict)
    subset_floor: int | None = None
    subsets: tuple[str, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        for field_name in ("categories", "category_pct"):
            for category in getattr(self, field_name):
                if category not in CATEGORIES:
                    raise DrawError(f"{field_name}: unknown category {category!r}; known: {', '.join(CATEGORIES)}")
        for category, percent in self.category_pct.items():
            if not 0 < percent <= 100:
                raise DrawError(
                    f"category_pct.{category} is {percent:g}; a percentage above 0 and up to 100 is allowed"
                )
        percentages = {name: float(percent) for name, percent in sorted(self.category_pct.items())}
        object.__setattr__(self, "categories", tuple(name for name in CATEGORIES if name in self.categories))
        object.__setattr__(self, "category_pct", MappingProxyType(percentages))
        object.__setattr__(self, "subsets", tuple(sorted(set(self.subsets))))
        for name in self.subsets:
            if not self._in_categories(subset_named(name).name):
                raise DrawError(f"subset {name!r} is in none of the chosen categories {', '.join(self.categories)}")
        if self.subset_floor is not None and self.subset_floor < 0:
            raise DrawError(f"subset_floor is {self.subset_floor}; 0 or more is allowed")
        if self.limit is not None and self.limit < 1:
            raise DrawError(f"limit is {self.limit}; 1 or more is allowed")

    def __reduce__(self) -> tuple[type[DrawSpec], tuple[object, ...]]:
        # A mapping proxy can neither be pickled nor copied, and specs travel to worker processes.
        return DrawSpec, (self.categories, dict(self.category_pct), self.subset_floor, self.subsets, self.limit)

    def _in_categories(self, subset: str) -> bool:
        return not self.categories or category_of(subset) in self.categories

    def includes(self, subset: str) -> bool:
        """Tell whether a subset is selected."""
        return self._in_categories(subset) and (not self.subsets or subset in self.subsets)

    def take(self, subset: str, available: int) -> int:
        """Count the rows taken from a subset of ``available`` rows, before any ``limit``.

        The product is a float and is cut, not rounded: everyone who publishes scores on these draws counts so.
        """
        if available <= 0 or not self.includes(subset):
            return 0
        percent = self.category_pct.get(category_of(subset) or "")
        if percent is None or (self.subset_floor is not None and available <= self.subset_floor):
            return available
        return max(1, int(available * percent / 100))


def _preset(non_live: float, live: float, hallucination: float, floor: int) -> DrawSpec:
    return DrawSpec(CATEGORIES, {"non_live": non_live, "live": live, "hallucination": hallucination}, floor)


PRESETS: Mapping[str, DrawSpec] = MappingProxyType(
    {
        "golden": _preset(62, 10, 10, 25),
        "echolp": _preset(46, 23, 12, 25),
        "mini": _preset(12.5, 2, 2, 5),
        "full": DrawSpec(CATEGORIES),
    }
)
# The sizes of the presets on the pinned release; a draw of another size is not the one others publish scores on.
PRESET_SAMPLES: Mapping[str, int] = MappingProxyType({"golden": 995, "echolp": 1004, "mini": 192, "full": 3625})
MINI_SAMPLES = PRESET_SAMPLES["mini"]


def plan(spec: DrawSpec, totals: Mapping[str, int]) -> Plan:
    """Count the rows of each subset: ``[(subset, take)]``, sorted by subset and without empty ones."""
    takes = {name: spec.take(name, totals[name]) for name in sorted(totals)}
    return [(name, take) for name, take in _limited(takes, spec.limit).items() if take > 0]


def _limited(takes: Mapping[str, int], limit: int | None) -> dict[str, int]:
    if limit is None or sum(takes.values()) <= limit:
        return dict(takes)
    given = dict.fromkeys(takes, 0)
    while (remaining := limit - sum(given.values())) > 0:
        open_subsets = [name for name in takes if given[name] < takes[name]]
        for name in open_subsets[:remaining]:
            given[name] += 1
    return given


def total(plan: Sequence[tuple[str, int]]) -> int:
    """Add up the rows of a plan."""
    return sum(take for _, take in plan)


def select(spec: DrawSpec, dataset: Dataset) -> tuple[Entry, ...]:
    """Draw: the first rows of each subset, subsets in sorted order. Raises ``DrawError`` when nothing is drawn."""
    drawn = tuple(entry for name, take in plan(spec, dataset.totals()) for entry in dataset.rows[name][:take])
    if not drawn:
        raise DrawError("the draw selects no row; widen its categories or subsets")
    return drawn


def fingerprint(spec: DrawSpec, sample_ids: Iterable[str]) -> str:
    """Identify the rows of a draw, or of one shard of it.

    sha256 over the ids in issue order, each followed by a newline, then their number and the rule:
    ``draw-sha256:<hex>;n=<N>;category_sample_pct=<category>:<percent>,...;subset_floor=<floor or none>``. This is the
    form MLPerf edge-agentic tools record; ``subsets`` and ``limit`` are appended where they are used.
    """
    digest, count = hashlib.sha256(), 0
    for sample_id in sample_ids:
        digest.update(sample_id.encode() + b"\n")
        count += 1
    percentages = ",".join(f"{category}:{_plain(percent)}" for category, percent in spec.category_pct.items())
    floor = "none" if spec.subset_floor is None else str(spec.subset_floor)
    parts = [f"draw-sha256:{digest.hexdigest()}", f"n={count}", f"category_sample_pct={percentages}"]
    parts.append(f"subset_floor={floor}")
    if spec.subsets:
        parts.append(f"subsets={','.join(sorted(spec.subsets))}")
    if spec.limit is not None:
        parts.append(f"limit={spec.limit}")
    return ";".join(parts)


def _plain(percent: float) -> str:
    return str(int(percent)) if percent == int(percent) else repr(float(percent))

"""Which rows stored outputs have to cover, so that one that is missing is an error and not a smaller score."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import DrawSpec, fingerprint, select
from agentcompass_bfcl.errors import ShardError
from agentcompass_bfcl.identity import spec_json
from agentcompass_bfcl.settings import BASE_DRAWS, CUSTOM, RunSettings
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS


@dataclass(frozen=True, slots=True)
class WholeSubsets:
    """Every row of these subsets."""

    names: tuple[str, ...]

    @property
    def spec(self) -> DrawSpec:
        """Write the subsets as a draw: a named one where they are just that, so that their results compare."""
        chosen = set(self.names)
        named = (spec for spec in BASE_DRAWS.values() if not spec.category_pct and _subsets_of(spec) == chosen)
        return next(named, DrawSpec(subsets=self.names))


@dataclass(frozen=True, slots=True)
class Drawn:
    """The rows of a draw, or of a shard of it, narrowed to ``sample_ids`` if there are any."""

    spec: DrawSpec
    shard: Shard = field(default_factory=Shard)
    sample_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RowsPresent:
    """Whichever rows there are: nothing can be missing."""


type Scope = WholeSubsets | Drawn | RowsPresent


def expected_rows(scope: Scope, dataset: Dataset) -> tuple[Entry, ...] | None:
    """List the rows a scope asks for, in issue order; None when it takes what there is.

    Raises ``DrawError`` and ``ShardError`` for a scope without rows.
    """
    match scope:
        case RowsPresent():
            return None
        case WholeSubsets():
            return select(scope.spec, dataset)
        case Drawn(spec, shard, sample_ids):
            wanted = None if sample_ids is None else set(sample_ids)
            entries = shard.take(select(spec, dataset))
            entries = tuple(entry for entry in entries if wanted is None or entry.id in wanted)
            if not entries:
                raise ShardError(f"shard {shard} of this draw is empty; use fewer shards")
            return entries


def present_rows(ids: Collection[str], dataset: Dataset) -> tuple[Entry, ...]:
    """List the rows with these ids in issue order."""
    return tuple(entry for name in sorted(dataset.rows) for entry in dataset.rows[name] if entry.id in ids)


def scope_identity(scope: Scope, entries: Sequence[Entry], dataset: Dataset) -> dict[str, Any]:
    """Say which rows a result is about, in the words a run uses for its draw; ``entries`` are these rows."""
    ids = [entry.id for entry in entries]
    if isinstance(scope, RowsPresent):
        print_of = fingerprint(DrawSpec(), ids)
        rows: dict[str, Any] = {"draw": CUSTOM, "spec": None, "draw_fingerprint": print_of, "fingerprint": print_of}
        return {"scope": "rows present", **rows, "shard": str(Shard())}
    return {
        "scope": "whole subsets" if isinstance(scope, WholeSubsets) else "draw",
        "draw": RunSettings(spec=scope.spec).draw_name,
        "spec": spec_json(scope.spec),
        "draw_fingerprint": fingerprint(scope.spec, (entry.id for entry in select(scope.spec, dataset))),
        "fingerprint": fingerprint(scope.spec, ids),
        "shard": str(scope.shard if isinstance(scope, Drawn) else Shard()),
    }


def _subsets_of(spec: DrawSpec) -> set[str]:
    return {name for name in SINGLE_TURN_SUBSETS if spec.includes(name)}

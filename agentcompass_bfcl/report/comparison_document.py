"""A comparison as JSON: differences and errors in percentage points, null where undefined, and every flip."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from agentcompass_bfcl.compare import Change, Comparison, Finding, RepeatSpread
from agentcompass_bfcl.json_files import json_text
from agentcompass_bfcl.paired_rows import PairedRow
from agentcompass_bfcl.report.comparison import NO_MCNEMAR, conclusion
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.tally import Outcome

SCHEMA_VERSION: Final = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Side(_Part):
    """One of the runs. Scores are in percent, None where nothing was scored."""

    source: str
    model: str | None
    overall_accuracy: FiniteFloat | None
    normalized_single_turn_score: FiniteFloat | None


class ChangeOf(_Part):
    """A score's change with its paired errors. ``detectable_difference`` is what would be shown with 80 % power."""

    difference: FiniteFloat
    standard_error: FiniteFloat | None
    interval: tuple[FiniteFloat, FiniteFloat] | None
    clustered_standard_error: FiniteFloat | None
    detectable_difference: FiniteFloat | None


class Flip(_Part):
    """A row with more or fewer hits than before, and its outcomes, one an attempt."""

    id: str
    subset: str
    before: list[Outcome]
    after: list[Outcome]


class FlipCounts(_Part):
    """A subset's rows by what became of their hits."""

    gained: int = Field(ge=0)
    lost: int = Field(ge=0)
    same: int = Field(ge=0)


class AgainstRepeats(_Part):
    """A run's difference from the first against the largest one of the first's own build; None without the score."""

    overall_within: bool
    normalized_within: bool | None
    more_rows_changed: bool


class Compared(_Part):
    """A further run against the first. ``no_mcnemar`` says why there is no p; ``left_out`` rows have no verdict."""

    second: Side
    finding: Finding
    conclusion: str
    changes: dict[str, ChangeOf]
    mcnemar_p: FiniteFloat | None
    no_mcnemar: str | None
    unpaired_standard_error: FiniteFloat | None
    rows: int = Field(ge=1)
    left_out: int = Field(ge=0)
    changed_rows: int = Field(ge=0)
    changed_rows_percent: FiniteFloat
    gained: list[Flip]
    lost: list[Flip]
    subsets: dict[str, FlipCounts]
    against_same_build: AgainstRepeats | None
    notes: list[str]


class RepeatedPair(_Part):
    """Two runs of one build."""

    first: str
    second: str
    overall: ChangeOf
    normalized: ChangeOf | None
    changed_rows: int = Field(ge=0)
    changed_rows_percent: FiniteFloat
    notes: list[str]


class SpreadDocument(_Part):
    """How much runs of one build differ: the most between any two, in percent of the rows and in points."""

    schema_version: Literal[1] = SCHEMA_VERSION
    runs: int = Field(ge=2)
    changed_rows_percent: FiniteFloat
    overall_points: FiniteFloat
    normalized_points: FiniteFloat | None
    pairs: list[RepeatedPair]


class ComparisonDocument(_Part):
    """What ``compare --json`` writes."""

    schema_version: Literal[1] = SCHEMA_VERSION
    first: Side
    comparisons: list[Compared] = Field(min_length=1)
    same_build: SpreadDocument | None


def comparison_document(comparisons: Sequence[Comparison], spread: RepeatSpread | None = None) -> ComparisonDocument:
    """Build the document of one or more comparisons with the same first run, of which ``spread`` has repeats."""
    return ComparisonDocument(
        first=_side(comparisons[0].first),
        comparisons=[_compared(comparison, spread) for comparison in comparisons],
        same_build=None if spread is None else spread_document(spread),
    )


def spread_document(spread: RepeatSpread) -> SpreadDocument:
    """Build the document of repeated runs of one build."""
    most = spread.between_any
    return SpreadDocument(
        runs=spread.runs,
        changed_rows_percent=_points(most.changed_share),
        overall_points=_points(most.overall),
        normalized_points=None if most.normalized is None else _points(most.normalized),
        pairs=[_repeated(pair) for pair in spread.pairs],
    )


def to_json(document: ComparisonDocument | SpreadDocument) -> str:
    """Write canonically: sorted keys, two blanks, a newline at the end."""
    return json_text(document.model_dump(mode="json"), sort_keys=True)


def _compared(comparison: Comparison, spread: RepeatSpread | None) -> Compared:
    unpaired = comparison.unpaired_variance
    return Compared(
        second=_side(comparison.second),
        finding=comparison.finding,
        conclusion=conclusion(comparison).replace("\n", " "),
        changes={name: _change(change) for name, change in comparison.changes.items()},
        mcnemar_p=None if comparison.p is None else float(comparison.p),
        no_mcnemar=NO_MCNEMAR if comparison.p is None else None,
        unpaired_standard_error=None if unpaired is None else _points(sqrt(unpaired)),
        rows=comparison.rows,
        left_out=comparison.left_out,
        changed_rows=comparison.changed_rows,
        changed_rows_percent=_points(comparison.changed_share),
        gained=[_flip(row) for row in comparison.gained],
        lost=[_flip(row) for row in comparison.lost],
        subsets={
            name: FlipCounts(gained=found.gained, lost=found.lost, same=found.same)
            for name, found in comparison.subsets.items()
        },
        against_same_build=None if spread is None else _against(comparison, spread),
        notes=[_text(note) for note in comparison.notes],
    )


def _against(comparison: Comparison, spread: RepeatSpread) -> AgainstRepeats:
    most, normalized = spread.from_first, comparison.changes.get("normalized")
    return AgainstRepeats(
        overall_within=abs(comparison.changes["overall"].difference) <= most.overall,
        normalized_within=(
            None if most.normalized is None or normalized is None else abs(normalized.difference) <= most.normalized
        ),
        more_rows_changed=comparison.changed_share > most.changed_share,
    )


def _repeated(pair: Comparison) -> RepeatedPair:
    normalized = pair.changes.get("normalized")
    return RepeatedPair(
        first=_text(pair.first.source),
        second=_text(pair.second.source),
        overall=_change(pair.changes["overall"]),
        normalized=None if normalized is None else _change(normalized),
        changed_rows=pair.changed_rows,
        changed_rows_percent=_points(pair.changed_share),
        notes=[_text(note) for note in pair.notes],
    )


def _side(record: RunRecord) -> Side:
    model = record.identity.get("model")
    return Side(
        source=_text(record.source),
        model=None if model is None else _text(model),
        overall_accuracy=record.document.metrics.get("overall_accuracy"),
        normalized_single_turn_score=record.document.metrics.get("normalized_single_turn_score"),
    )


def _change(change: Change) -> ChangeOf:
    error, interval, clustered = change.standard_error, change.interval, change.clustered_variance
    return ChangeOf(
        difference=_points(change.difference),
        standard_error=None if error is None else _points(error),
        interval=None if interval is None else (_points(interval[0]), _points(interval[1])),
        clustered_standard_error=None if clustered is None else _points(sqrt(clustered)),
        detectable_difference=None if change.detectable is None else _points(change.detectable),
    )


def _flip(row: PairedRow) -> Flip:
    return Flip(id=row.id, subset=row.subset, before=list(row.before), after=list(row.after))


def _points(value: Fraction | float) -> float:
    return round(float(value) * 100, 4)


def _text(value: object) -> str:
    # A path or a model's name may hold half a surrogate pair, which UTF-8 has no bytes for.
    return str(value).encode("utf-8", "replace").decode()

"""A result as a document: what a run, a merge or a rescoring says, readable without AgentCompass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from agentcompass_bfcl.aggregate import WEIGHTS, Aggregate, Node, OnError, aggregate, inner_nodes
from agentcompass_bfcl.errors import ResultError, TallyError, shortened
from agentcompass_bfcl.json_files import fault_in, json_text
from agentcompass_bfcl.leaderboard import leaderboard
from agentcompass_bfcl.rows import Row, decode_rows, encode_rows
from agentcompass_bfcl.statistics import Statistics, build_statistics
from agentcompass_bfcl.subsets import SUBSET_BY_NAME, category_of
from agentcompass_bfcl.tally import Tally, tallies_from_metrics, tallies_to_metrics

SCHEMA_VERSION: Final = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Counts(_Part):
    """Samples: ``total`` = ``evaluated`` + ``error``. With k attempts each attempt is counted, as in the tallies."""

    total: int = Field(ge=0)
    evaluated: int = Field(ge=0)
    error: int = Field(ge=0)


class SubsetResult(_Part):
    """One subset. ``accuracy`` is in percent under the error policy; None where nothing counts."""

    category: str | None
    hits: int = Field(ge=0)
    n: int = Field(ge=0)
    errors: int = Field(ge=0)
    accuracy: FiniteFloat | None


class Scores(_Part):
    """Both headline scores in percent, None where nothing was scored, and the categories that are present."""

    overall_accuracy: FiniteFloat | None
    normalized_single_turn_score: FiniteFloat | None
    categories: dict[str, FiniteFloat]


class WeightNode(_Part):
    """A node of the weight tree: how its value comes from its children, which are nodes or subsets."""

    combine: str
    children: list[str]


class Details(_Part):
    """Everything behind the scores. ``scores`` has both error policies, so that nobody has to guess.

    ``leaderboard`` holds the official leaderboard's own columns; its "Overall" is no number here, see ``leaderboard``.
    ``malformed_abstentions`` counts hits on irrelevance rows that held a call nobody can decode: upstream credits them,
    a stricter rule would not. ``rows`` says what came of every row, in the form of ``rows.encode_rows``; it and
    ``statistics`` are empty in a result that was made from tallies alone.
    """

    subsets: dict[str, SubsetResult]
    categories: dict[str, FiniteFloat]
    scores: dict[str, Scores]
    weights: dict[str, WeightNode]
    absent: list[str]
    miss_types: dict[str, int]
    error_types: dict[str, int]
    truncated: int = Field(ge=0)
    malformed_abstentions: int = Field(default=0, ge=0)
    leaderboard: dict[str, Any]
    statistics: Statistics | None = None
    rows: dict[str, str] = Field(default_factory=dict)


class ResultDocument(_Part):
    """A result with its identity. ``metrics`` is flat and finite; scores are left out where nothing was scored.

    ``extra`` carries the identity of the run: draw, fingerprint, shard, dataset, checker, mode, request parameters,
    error policy, model, versions.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    metrics: dict[str, int | FiniteFloat]
    counts: Counts
    details: Details
    extra: dict[str, Any]

    def tallies(self) -> dict[str, Tally]:
        """Read the tallies back. Raises ``ResultError`` when the document holds none."""
        tallies = tallies_from_metrics(self.metrics)
        if tallies is None:
            raise ResultError("the result has no tallies (subset.<name>.hits and .n); it cannot be aggregated")
        return tallies

    def rows(self) -> tuple[Row, ...]:
        """Read the rows back. Raises ``ResultError`` when the document holds none, or none that can be read."""
        if not self.details.rows:
            raise ResultError("the result does not say what came of each row (details.rows)")
        try:
            return decode_rows(self.details.rows)
        except TallyError as error:
            raise ResultError(f"details.rows: {error}") from None

    def to_json(self) -> str:
        """Write canonically: sorted keys, two blanks, a newline at the end. Same result, same bytes."""
        return json_text(self.model_dump(mode="json"), sort_keys=True)


def build_document(
    tallies: Mapping[str, Tally],
    *,
    on_error: OnError,
    identity: Mapping[str, Any],
    miss_types: Mapping[str, int],
    error_types: Mapping[str, int],
    truncated: int = 0,
    malformed_abstentions: int = 0,
    rows: Sequence[Row] = (),
    clusters: Mapping[str, str] = MappingProxyType({}),
    any_of: bool = False,
) -> ResultDocument:
    """Put tallies and identity together into a result.

    ``rows`` are what the tallies were counted from, in issue order, and ``clusters`` names each one's cluster by id;
    with ``any_of`` each was counted once. Without rows the result has no error bars. Raises ``TallyError`` for a row
    whose id is not of its subset, or that has no attempt.
    """
    by_policy = {policy: aggregate(tallies, policy) for policy in OnError}
    chosen = by_policy[on_error]
    scores = {
        "overall_accuracy": chosen.overall_accuracy,
        "normalized_single_turn_score": chosen.normalized_single_turn_score,
    }
    evaluated, error = (sum(getattr(tally, name) for tally in tallies.values()) for name in ("n", "errors"))
    shown = chosen.subset_scores if evaluated else {}
    present = {name: value for name, value in scores.items() if value is not None} if evaluated else {}
    return ResultDocument(
        metrics={**present, "samples": evaluated + error, **tallies_to_metrics(tallies)},
        counts=Counts(total=evaluated + error, evaluated=evaluated, error=error),
        details=Details(
            subsets={name: _subset_result(name, tally, shown.get(name)) for name, tally in sorted(tallies.items())},
            categories=dict(chosen.category_scores) if evaluated else {},
            scores={policy.value: _scores(found, evaluated) for policy, found in by_policy.items()},
            weights={node.name: _weight_node(node) for node in inner_nodes(WEIGHTS)},
            absent=list(chosen.absent),
            miss_types=dict(sorted(miss_types.items())),
            error_types=dict(sorted(error_types.items())),
            truncated=truncated,
            malformed_abstentions=malformed_abstentions,
            leaderboard=leaderboard(tallies, on_error).to_json(),
            statistics=(
                build_statistics(rows, clusters, on_error=on_error, any_of=any_of) if rows and evaluated else None
            ),
            rows=encode_rows(rows),
        ),
        extra=dict(identity),
    )


def read_document(payload: object, source: str) -> ResultDocument:
    """Check a parsed JSON object against the schema. Raises ``ResultError`` naming ``source`` and the first fault."""
    if (fault := fault_in(payload)) is not None:
        raise ResultError(f"{source}: not a result of this package: {fault}")
    try:
        return ResultDocument.model_validate(payload)
    except ValidationError as error:
        first = error.errors()[0]
        place = shortened(".".join(str(part) for part in first["loc"])) or "the document"
        raise ResultError(f"{source}: not a result of this package: {place}: {first['msg']}") from None


def read_report_extra(extra: Mapping[str, Any], source: str) -> ResultDocument:
    """Read the result out of the host's report, which keeps its parts and its identity side by side in ``extra``.

    Raises as ``read_document``.
    """
    parts = [name for name in ResultDocument.model_fields if name != "extra"]
    identity = {name: value for name, value in extra.items() if name not in parts}
    return read_document({**{name: extra.get(name) for name in parts}, "extra": identity}, source)


def _scores(found: Aggregate, evaluated: int) -> Scores:
    # All rows failed: the failing policy would call that 0, but a run with nothing scored has no score.
    return Scores(
        overall_accuracy=found.overall_accuracy if evaluated else None,
        normalized_single_turn_score=found.normalized_single_turn_score if evaluated else None,
        categories=dict(found.category_scores) if evaluated else {},
    )


def _subset_result(name: str, tally: Tally, accuracy: float | None) -> SubsetResult:
    category = category_of(name) if name in SUBSET_BY_NAME else None
    return SubsetResult(
        category=category,
        hits=tally.hits,
        n=tally.n,
        errors=tally.errors,
        accuracy=accuracy,
    )


def _weight_node(node: Node) -> WeightNode:
    names = [child if isinstance(child, str) else child.name for child in node.children]
    return WeightNode(combine=node.combine.value, children=names)

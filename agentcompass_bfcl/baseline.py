"""Baselines: which bounds a result has to keep, for which draw and under which conditions; read from TOML."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agentcompass_bfcl.errors import GateError, shortened
from agentcompass_bfcl.json_files import LARGEST_BASELINE, fault_in, read_limited
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.settings import CUSTOM
from agentcompass_bfcl.statistics import Estimate
from agentcompass_bfcl.subsets import CATEGORIES, SINGLE_TURN_SUBSETS

ONE_SIDED_95 = 1.6448536269514722
"""The 95 % point of the standard normal distribution."""

METRICS = frozenset(
    {
        *("overall_accuracy", "normalized_single_turn_score", "samples", "truncated", "malformed_abstentions"),
        *("counts.total", "counts.evaluated", "counts.error"),
        *(f"category.{name}" for name in CATEGORIES),
        *(f"subset.{name}.{part}" for name in SINGLE_TURN_SUBSETS for part in ("hits", "n", "errors", "accuracy")),
    }
)
"""What a bound may be on; scores and accuracies are in percent."""

CONDITIONS = frozenset(
    {
        "mode",
        "harness",
        "concurrency",
        "tool_choice",
        "strip_think",
        "on_error",
        "dataset",
        "checker",
        "attempts",
        "request",
    }
)

# Python's TOML reader takes a time that grows with the square of a key's dots, and nested tables as deep.
_MOST_DOTS = 500

# So few digits that adding two never rounds, in Decimal's 28: bounds hold exactly.
type _Number = Annotated[Decimal, Field(max_digits=24, decimal_places=12)]


class Bound(BaseModel):
    """Passes when ``min <= value + noise`` and ``value - noise <= max``; equal ``min`` and ``max`` are a pin."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    min: _Number | None = None
    max: _Number | None = None
    noise: Annotated[_Number, Field(ge=0)] = Decimal(0)

    @model_validator(mode="after")
    def _can_be_meant(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("neither min nor max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        if self.is_pin and self.noise:
            raise ValueError(f"min and max are both {self.min}, an exact pin; noise {self.noise} would switch it off")
        return self

    @property
    def is_pin(self) -> bool:
        """Tell whether only one value passes."""
        return self.min is not None and self.min == self.max


class Baseline(BaseModel):
    """Bounds for results of one draw. ``conditions`` are facts of a run's identity that have to be exactly so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str | None = None
    draw: str | None = None
    fingerprint: str | None = None
    model: str | None = None
    conditions: dict[str, Any] = Field(default_factory=dict)
    metrics: dict[str, Bound] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_be_meant(self) -> Self:
        if self.draw is None and self.fingerprint is None:
            raise ValueError("neither draw nor fingerprint: scores of different draws are not comparable")
        if self.draw == CUSTOM and self.fingerprint is None:
            raise ValueError(f"draw {CUSTOM!r} may be any rows; give the fingerprint of those that are meant")
        for kind, names, known in (("metric", self.metrics, METRICS), ("condition", self.conditions, CONDITIONS)):
            if unknown := sorted(set(names) - known):
                raise ValueError(
                    f"unknown {kind} {shortened(repr(unknown[0]))}; known: {', '.join(sorted(known)[:12])}, ..."
                )
        return self

    @property
    def label(self) -> str:
        """Name the baseline for people."""
        return self.name or f"draw {self.draw or 'of a fingerprint'}"


_GOLDEN = (
    "draw-sha256:31225ad1c4ee7087aee9cbf5245e53710d1f2bf20074f3310a985d868dd96d28;n=995;"
    "category_sample_pct=hallucination:10,live:10,non_live:62;subset_floor=25"
)
# MLPerf edge-agentic accepts 97 % of its reference's 86.23 overall and 87.96 normalized.
BUILT_IN: Mapping[str, Baseline] = MappingProxyType(
    {
        "mlperf-edge-agentic": Baseline(
            name="mlperf-edge-agentic",
            draw="golden",
            fingerprint=_GOLDEN,
            conditions={"mode": "fc", "concurrency": 1, "request": {"temperature": 0, "seed": 42}},
            metrics={
                "overall_accuracy": Bound(min=Decimal("83.64")),
                "normalized_single_turn_score": Bound(min=Decimal("85.32")),
                "samples": Bound(min=Decimal(995)),
            },
        )
    }
)


def read_baselines(path: Path) -> tuple[Baseline, ...]:
    """Read ``[[baseline]]`` tables. Raises ``GateError`` naming file and place for anything a gate cannot mean."""
    try:
        text = read_limited(path, LARGEST_BASELINE).decode("utf-8")
        if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
            raise GateError(f"{path}: a line of more than {_MOST_DOTS} dots; no baseline needs such names")
        content = tomllib.loads(text, parse_float=_decimal)
    except OSError as error:
        raise GateError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # TOML that is none, and bytes that are not UTF-8
        raise GateError(f"{path}: not TOML ({error})") from None
    tables = content.pop("baseline", None)
    if content or not isinstance(tables, list) or not tables:
        other = f", and not {shortened(repr(sorted(content)[0]))}" if content else ""
        raise GateError(f"{path}: [[baseline]] tables are expected{other}")
    if (fault := fault_in(tables)) is not None:
        raise GateError(f"{path}: baseline.{fault}")
    return tuple(_baseline(table, f"{path}: baseline {number}") for number, table in enumerate(tables, 1))


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        raise ValueError(f"{text[:80]} is no number that can be held") from None


def _baseline(table: Any, place: str) -> Baseline:
    metrics = table.get("metrics") if isinstance(table, dict) else None
    if isinstance(metrics, dict):
        named = list(_dotted("", metrics))
        if twice := sorted(name for name, times in Counter(name for name, _ in named).items() if times > 1):
            raise GateError(f"{place}, metrics.{twice[0]}: stands twice")
        table = {**table, "metrics": dict(named)}
    try:
        return Baseline.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = shortened(".".join(str(part) for part in first["loc"]))
        raise GateError(
            f"{place}{f', {where}' if where else ''}: {first['msg'].removeprefix('Value error, ')}"
        ) from None


def _dotted(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name bounds by their metric: ``[baseline.metrics.category.live]`` is a table in a table to TOML."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values()):
            yield from _dotted(f"{name}.", value)
        else:
            yield name, value


def baseline_toml(document: ResultDocument, *, name: str | None = None, for_model: bool = False) -> str:
    """Write a baseline that a result like this one passes.

    Each score's ``min`` is the result's value, and its noise 1.645 standard errors, rounded up. How often an equally
    good build falls below by chance depends on how alike the two do on each row: one time in eight where not at all
    (the difference of two runs varies by 1.41 standard errors), one in twenty at a correlation of a half, less above.
    That is for one score; with several, any may. The number of samples is pinned. Raises ``GateError`` for a result
    that says no score, and for an identity that TOML cannot hold.
    """
    if "overall_accuracy" not in document.metrics:
        raise GateError("the result has no scores to make a baseline of")
    extra = document.extra
    known = {key: extra[key] for key in ("draw", "fingerprint") if extra.get(key) is not None}
    if for_model:
        if extra.get("model") is None:
            raise GateError("the result does not say its model, so that there is no baseline for it alone")
        known["model"] = extra["model"]
    conditions = {key: extra[key] for key in ("mode", "request") if extra.get(key) is not None}
    head = known if name is None else {"name": name, **known}
    lines = ["[[baseline]]", *(f"{key} = {_toml(value)}" for key, value in head.items())]
    lines += ["", "[baseline.conditions]", *(f"{key} = {_toml(value)}" for key, value in conditions.items())]
    for metric, score, estimate in _scores(document):
        lines += ["", *_bound_lines(metric, score, None if estimate is None else estimate.standard_error)]
    samples = document.metrics["samples"]
    lines += ["", "[baseline.metrics.samples]", f"min = {samples}", f"max = {samples}"]
    return "\n".join(lines) + "\n"


def _scores(document: ResultDocument) -> Iterator[tuple[str, int | float, Estimate | None]]:
    statistics = document.details.statistics  # None in a result made from tallies alone
    overall, normalized = (None, None) if statistics is None else (statistics.overall, statistics.normalized)
    yield "overall_accuracy", document.metrics["overall_accuracy"], overall
    if "normalized_single_turn_score" in document.metrics:
        yield "normalized_single_turn_score", document.metrics["normalized_single_turn_score"], normalized
    for category, score in document.details.categories.items():
        yield f"category.{category}", score, None if statistics is None else statistics.categories.get(category)


def _bound_lines(metric: str, score: float, error: float | None) -> list[str]:
    lines = [f"[baseline.metrics.{_toml(metric) if '.' in metric else metric}]", f"min = {score!r}"]
    if error is None:
        return [*lines, "# no noise: the standard error is undefined"]
    noise = (Decimal(repr(ONE_SIDED_95)) * Decimal(repr(error))).quantize(Decimal("0.01"), ROUND_CEILING)
    return [*lines, f"noise = {noise}  # 1.645 standard errors of {error} (one-sided 95 %), rounded up"]


def _toml(value: Any) -> str:
    """Write a value of a run's identity as TOML; what is null there is left out of tables."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) and not math.isnan(value):
        return repr(value)
    if isinstance(value, Mapping):
        items = (f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items() if item is not None)
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise GateError(f"{value!a} has no place in a baseline: TOML has no null, half letters or equal nan")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

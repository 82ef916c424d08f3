"""What a user may set for a run, checked: every refusal names the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.draw import PRESETS, DrawSpec
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.task import Mode

CUSTOM = "custom"
# ``all`` is the empty selection: every single-turn subset whole, live_relevance included.
BASE_DRAWS: Mapping[str, DrawSpec] = {**PRESETS, "all": DrawSpec()}


class ToolChoice(StrEnum):
    """What may be sent as ``tool_choice``; the official generator sends none."""

    AUTO = "auto"
    REQUIRED = "required"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The benchmark's side of a run: which rows, which part of them, how they are asked and how errors count."""

    spec: DrawSpec = PRESETS["golden"]
    shard: Shard = field(default_factory=Shard)
    mode: Mode = Mode.FC
    on_error: OnError = OnError.FAIL
    tool_choice: ToolChoice | None = None
    strip_think: bool = False
    wheel: Path | None = None

    @property
    def draw_name(self) -> str:
        """Name the preset this draw equals, whichever way it was written, or ``custom``."""
        return next((name for name, spec in BASE_DRAWS.items() if spec == self.spec), CUSTOM)


def parse_settings(params: Mapping[str, Any]) -> RunSettings:
    """Read settings as they come from a command line, YAML or JSON; None and whatever is empty mean "not set".

    ``draw`` names the base; ``categories``, ``category_pct``, ``subset_floor``, ``subsets`` and ``limit`` change parts
    of it. Raises ``ConfigError``, of which ``DrawError`` and ``ShardError`` are kinds.
    """
    given = {name: value for name, value in params.items() if _is_set(value)}
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(FIELDS))}")
    settings = RunSettings(
        spec=_spec(given),
        shard=_shard(given.get("shard", "0/1")),
        mode=_choice("mode", given.get("mode", Mode.FC.value), Mode),
        on_error=_choice("on_error", given.get("on_error", OnError.FAIL.value), OnError),
        tool_choice=_choice("tool_choice", given["tool_choice"], ToolChoice) if "tool_choice" in given else None,
        strip_think=_flag("strip_think", given.get("strip_think", False)),
        wheel=Path(_text("wheel", given["wheel"])) if "wheel" in given else None,
    )
    _refuse_what_the_mode_would_ignore(settings)
    return settings


def parse_base_url(value: str) -> str:
    """Check an endpoint's address; empty stands for the default of the OpenAI library. Raises ``ConfigError``."""
    try:
        parts = urlsplit(value)
        usable = not value or (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0)
    except ValueError:  # brackets or a port that are none
        usable = False
    if not usable:
        raise ConfigError(f"base_url is {value!r}; an address such as http://127.0.0.1:8000/v1 is expected")
    return value


# The settings by name, each with the sentence AgentCompass shows for it.
FIELDS: Mapping[str, str] = {
    "draw": f"Which rows: {', '.join(BASE_DRAWS)}.",
    "categories": "Only these categories: non_live, live, hallucination. Empty: what the draw selects.",
    "category_pct": "Percent of each subset to take, by category, such as {'non_live': 62}. Others are whole.",
    "subset_floor": "Subsets of at most this many rows are taken whole.",
    "subsets": "Only these subsets.",
    "limit": "At most this many rows in all, spread over the subsets; for smoke runs.",
    "shard": "Which part of the draw, index/count with a 0-based index. 0/1 is the whole.",
    "mode": "How functions are offered: fc (as tools) or prompt (in the official system prompt, answered by text).",
    "on_error": "What a sample without a verdict does to the score: fail (counts as wrong) or exclude.",
    "tool_choice": "tool_choice to send: auto, required or none. Not sent unless set, as officially.",
    "strip_think": "Prompt mode: cut off a leading <think>...</think> block before scoring; false unless set.",
    "wheel": "Path of the pinned bfcl-eval wheel, instead of the cache folder.",
}


def _is_set(value: Any) -> bool:
    # AgentCompass leaves empty lists and mappings out of what it persists, so they must not mean anything of their own.
    return value is not None and value not in ("", [], (), {})


def _spec(given: Mapping[str, Any]) -> DrawSpec:
    name = given.get("draw", "golden")
    if not isinstance(name, str) or name not in BASE_DRAWS:
        raise ConfigError(f"draw is {name!r}; allowed: {', '.join(BASE_DRAWS)}")
    changes: dict[str, Any] = {}
    if "categories" in given:
        changes["categories"] = _names("categories", given["categories"])
    if "category_pct" in given:
        changes["category_pct"] = _percentages(given["category_pct"])
    if "subset_floor" in given:
        changes["subset_floor"] = _whole("subset_floor", given["subset_floor"], least=0)
    if "subsets" in given:
        changes["subsets"] = _names("subsets", given["subsets"])
    if "limit" in given:
        changes["limit"] = _whole("limit", given["limit"], least=1)
    return replace(BASE_DRAWS[name], **changes)


def _shard(value: Any) -> Shard:
    return value if isinstance(value, Shard) else Shard.parse(_text("shard", value))


def _choice[E: StrEnum](name: str, value: Any, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(f"{name} is {value!r}; allowed: {', '.join(kind)}") from None


def _refuse_what_the_mode_would_ignore(settings: RunSettings) -> None:
    if settings.strip_think and settings.mode is not Mode.PROMPT:
        raise ConfigError(f"strip_think is True; allowed with mode prompt only, and mode is {settings.mode.value}")
    if settings.tool_choice is not None and settings.mode is Mode.PROMPT:
        raise ConfigError(
            f"tool_choice is {settings.tool_choice.value!r}; allowed with mode fc only, and mode is prompt"
        )


def _flag(name: str, value: Any) -> bool:
    flag = value if isinstance(value, bool) else _FLAGS.get(value.strip().lower()) if isinstance(value, str) else None
    if flag is None:
        raise ConfigError(f"{name} is {value!r}; allowed: true, false")
    return flag


_FLAGS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False, "1": True, "0": False}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str | Path):
        raise ConfigError(f"{name} is {value!r}; text is expected")
    return str(value)


def _names(name: str, value: Any) -> tuple[str, ...]:
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items) or not any(items):
        raise ConfigError(f"{name} is {value!r}; a list of names, or names with commas between, is expected")
    return tuple(item for item in items if item)


def _percentages(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"category_pct is {value!r}; a mapping such as {{'non_live': 62}} is expected")
    return {str(category): _percentage(f"category_pct.{category}", percent) for category, percent in value.items()}


def _percentage(name: str, value: Any) -> float:
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise ConfigError(f"{name} is {value!r}; a percentage above 0 and up to 100 is expected")
    return number


def _whole(name: str, value: Any, *, least: int) -> int:
    try:
        number = int(value) if not isinstance(value, bool) and float(value) == int(value) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number < least:
        raise ConfigError(f"{name} is {value!r}; a whole number of at least {least} is expected")
    return number

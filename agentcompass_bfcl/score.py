"""The verdict on one sample: the official rule, by official code, one row at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.official import Official, decode_function_calls
from agentcompass_bfcl.response import Response, official_output
from agentcompass_bfcl.sources import load_sources
from agentcompass_bfcl.subsets import Rule, subset_named

type Json = Any  # a parsed JSON value

_LONGEST_DETAIL = 2_000


@dataclass(frozen=True, slots=True)
class Hit:
    """The official rule accepts the output."""


@dataclass(frozen=True, slots=True)
class Miss:
    """The official rule rejects the output; ``error_type`` is upstream's word for why."""

    error_type: str
    detail: str


@dataclass(frozen=True, slots=True)
class Unscored:
    """There is no verdict: the official checker broke on this one output. Neither a hit nor a miss."""

    reason: str
    detail: str


type Verdict = Hit | Miss | Unscored


def score_sample(entry: Entry, response: Response, official: Official | None = None) -> Verdict:
    """Judge one reply in function-calling mode; without ``official``, by the code of the wheel that is at hand.

    Whatever the official checker raises for this output becomes ``Unscored``: upstream's own command line dies whole
    when one row raises.
    """
    return score_output(entry, official_output(response), official or load_sources().official)


def score_output(entry: Entry, output: Json, official: Official) -> Verdict:
    """Judge a stored function-calling output, as an official result file holds it: calls, text, or anything else."""
    try:
        decoded, failure = decode_function_calls(output), ""
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        decoded, failure = None, f"{type(error).__name__}: {error}"
    rule = subset_named(entry.subset).rule
    if rule is Rule.AST:
        return _judge_calls(entry, decoded, failure, official)
    abstained = decoded is None or official.holds_no_call(decoded)
    if rule is Rule.IRRELEVANCE:
        return Hit() if abstained else Miss("irrelevance_error:decoder_success", "a call where none fits")
    return Miss("relevance_error:decoder_failed", failure or "no call where one is wanted") if abstained else Hit()


def _judge_calls(entry: Entry, decoded: list[dict[str, Json]] | None, failure: str, official: Official) -> Verdict:
    if decoded is None:
        return Miss("ast_decoder:decoder_failed", _shortened(failure))
    if not official.is_call_list(decoded):
        return Miss("ast_decoder:decoder_wrong_output_format", "arguments are not a JSON object")
    try:
        verdict = official.check_calls(
            entry.functions(),
            decoded,
            entry.reference_answers(),
            subset_named(entry.subset).language,
            entry.subset,
            dots_became_underscores=True,
        )
    except Exception as error:  # noqa: BLE001 - the one boundary: upstream raises anything, and one row must not end a run
        return Unscored("checker_raised", _shortened(f"{type(error).__name__}: {error}"))
    if verdict["valid"]:
        return Hit()
    return Miss(str(verdict["error_type"]), _shortened(_joined(verdict["error"])))


def _joined(errors: Json) -> str:
    return " ".join(str(error) for error in errors) if isinstance(errors, list) else str(errors)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}..."

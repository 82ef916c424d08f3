"""The verdict on one sample: the official rule, by official code, one row at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.errors import BfclError
from agentcompass_bfcl.official import Official, decode_function_calls
from agentcompass_bfcl.response import Response, official_output
from agentcompass_bfcl.sources import load_sources
from agentcompass_bfcl.subsets import Rule, subset_named
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value

_LONGEST_DETAIL = 2_000


@dataclass(frozen=True, slots=True)
class Hit:
    """The official rule accepts the output.

    ``malformed_call`` marks an abstention, right by that rule, that held a call which cannot be decoded: the model
    did call. It is a remark beside the verdict and does not count when verdicts are compared.
    """

    malformed_call: bool = field(default=False, compare=False)


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


def score_sample(entry: Entry, response: Response, official: Official | None = None, mode: Mode = Mode.FC) -> Verdict:
    """Judge one reply; without ``official``, by the code of the wheel that is at hand.

    Whatever the official checker raises for this output becomes ``Unscored``: upstream's own command line dies whole
    when one row raises. Raises ``ConfigError`` for a Java or JavaScript row in prompt mode without its parsers.
    """
    return score_output(entry, official_output(response, mode), official or load_sources().official, mode)


def score_output(entry: Entry, output: Json, official: Official, mode: Mode = Mode.FC) -> Verdict:
    """Judge a stored output, as an official result file holds it: calls, text, or anything else.

    Raises as ``score_sample``.
    """
    decoded, failure = decode_output(entry, output, official, mode)
    rule = subset_named(entry.subset).rule
    if rule is Rule.AST:
        return _judge_calls(entry, decoded, failure, official, mode)
    abstained = failure is not None or official.holds_no_call(decoded)
    if rule is Rule.IRRELEVANCE:
        if not abstained:
            return Miss("irrelevance_error:decoder_success", "a call where none fits")
        undecoded = failure is not None or not official.is_call_list(decoded)
        return Hit(malformed_call=undecoded and _tries_to_call(entry, output, mode))
    if not abstained:
        return Hit()
    return Miss("relevance_error:decoder_failed", _shortened(failure or "no call where one is wanted"))


def decode_output(entry: Entry, output: Json, official: Official, mode: Mode = Mode.FC) -> tuple[Json, str | None]:
    """Decode an output as its verdict does: what it decodes to, or None and why it cannot be.

    Only an output that a verdict was reached on is sure to be decoded soon. Raises as ``score_sample``.
    """
    return _decoded_calls(output) if mode is Mode.FC else _decoded_text(entry, output, official)


def _tries_to_call(entry: Entry, output: Json, mode: Mode) -> bool:
    """Tell whether an output that cannot be decoded was meant as a call.

    Natively, when calls came at all; in text, when an offered function's name is followed by a parenthesis.
    """
    if mode is Mode.FC:
        return isinstance(output, list) and bool(output)
    names = {str(function.get("name")) for function in entry.functions()}
    return isinstance(output, str) and any(f"{name}(" in output for name in names)


def _decoded_calls(output: Json) -> tuple[Json, str | None]:
    """Decode native calls, or say why they cannot be decoded."""
    try:
        return decode_function_calls(output), None
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        return None, f"{type(error).__name__}: {error}"


def _decoded_text(entry: Entry, output: Json, official: Official) -> tuple[Json, str | None]:
    """Decode text, or say why it cannot be decoded."""
    try:
        return official.decode_prompt(output, subset_named(entry.subset).language), None
    except BfclError:
        raise
    except Exception as error:  # noqa: BLE001 - upstream's rule: a text its decoder raises on, in any way, is no call
        return None, f"{type(error).__name__}: {error}"


def _judge_calls(entry: Entry, decoded: Json, failure: str | None, official: Official, mode: Mode) -> Verdict:
    if failure is not None:
        return Miss("ast_decoder:decoder_failed", _shortened(failure))
    if not official.is_call_list(decoded):
        wrong = "arguments are not a JSON object" if mode is Mode.FC else "not a list of calls"
        return Miss("ast_decoder:decoder_wrong_output_format", wrong)
    try:
        verdict = official.check_calls(
            entry.functions(),
            decoded,
            entry.reference_answers(),
            subset_named(entry.subset).language,
            entry.subset,
            dots_became_underscores=mode is Mode.FC,
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

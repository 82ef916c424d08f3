"""What the endpoint says: the reference answer of a row, or that answer with a planned mistake in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.endpoint.mistakes import Kind
from agentcompass_bfcl.endpoint.wrong_values import with_wrong_value
from agentcompass_bfcl.reference import ReferenceCall, calls_as_text, right_calls
from agentcompass_bfcl.subsets import Language
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value

ABSTENTION = "None of the given functions fits this request."
NO_SUCH_FUNCTION = "no_such_function"
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """An assistant message: calls, ``(tool name, arguments text)``, or text when there is no call."""

    calls: tuple[tuple[str, str], ...] = ()
    text: str = ""


def answer(entry: Entry, kind: Kind | None, mode: Mode = Mode.FC) -> Answer:
    """Answer a row right (None) or with a wrong answer of a kind that ``real_mistake`` allows for the row.

    In prompt mode the calls are text. Raises ``ValueError`` for a kind that is no answer (http_500, stall).
    """
    calls, malformed = _said_calls(entry, kind), kind is Kind.MALFORMED_ARGUMENTS
    if not calls:
        return Answer(text=ABSTENTION)
    if mode is Mode.PROMPT:
        text = calls_as_text(calls)
        return Answer(text=f"{text.removesuffix(')]')}]" if malformed else text)
    (name, arguments), *others = (call.written() for call in calls)
    return Answer(((name, arguments.removesuffix("}") if malformed else arguments), *others))


def _said_calls(entry: Entry, kind: Kind | None) -> tuple[ReferenceCall, ...]:
    calls = right_calls(entry)
    match kind:
        case None | Kind.MALFORMED_ARGUMENTS:
            return calls
        case Kind.WRONG_VALUE:
            return with_wrong_value(entry)
        case Kind.WRONG_FUNCTION:
            return (replace(calls[0], name=NO_SUCH_FUNCTION), *calls[1:])
        case Kind.MISSING_CALL:
            return calls[:-1]
        case Kind.EXTRA_CALL:
            return (*calls, calls[-1] if calls else _unwanted_call(entry))
        case _:
            raise ValueError(f"{kind} is not an answer")


def completion(said: Answer, sample_id: str, model: str, prompt_characters: int) -> dict[str, Json]:
    """Wrap an answer as a chat completion object.

    There is no clock in it: the same request gets the same bytes. Token counts are estimates from text lengths.
    """
    calls = [
        {"id": f"call_{position}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for position, (name, arguments) in enumerate(said.calls)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls} if calls else _text_message(said.text)
    prompt = _tokens(prompt_characters)
    generated = _tokens(len(said.text) + sum(len(name) + len(arguments) for name, arguments in said.calls))
    return {
        "id": f"chatcmpl-{sample_id}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated},
    }


def _unwanted_call(entry: Entry) -> ReferenceCall:
    functions = entry.functions()
    return ReferenceCall(functions[0]["name"] if functions else NO_SUCH_FUNCTION, (), Language.PYTHON)


def _text_message(text: str) -> dict[str, Json]:
    return {"role": "assistant", "content": text}


def _tokens(characters: int) -> int:
    return max(1, round(characters / _CHARACTERS_PER_TOKEN))

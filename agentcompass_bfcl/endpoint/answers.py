"""What the endpoint says: the reference answer of a row, or that answer with a planned mistake in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.endpoint.mistakes import Kind
from agentcompass_bfcl.endpoint.wrong_values import with_wrong_value
from agentcompass_bfcl.reference import reference_calls, tool_name

type Json = Any  # a parsed JSON value

ABSTENTION = "None of the given functions fits this request."
NO_SUCH_FUNCTION = "no_such_function"
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """An assistant message: calls, ``(tool name, arguments text)``, or text when there is no call."""

    calls: tuple[tuple[str, str], ...] = ()
    text: str = ""


def answer(entry: Entry, kind: Kind | None) -> Answer:
    """Answer a row right (None) or with a wrong answer of a kind that ``real_mistake`` allows for the row.

    Raises ``ValueError`` for a kind that is no answer (http_500, stall).
    """
    calls = reference_calls(entry)
    match kind:
        case None:
            return Answer(calls) if calls else Answer(text=ABSTENTION)
        case Kind.WRONG_VALUE:
            return Answer(tuple(call.written() for call in with_wrong_value(entry)))
        case Kind.WRONG_FUNCTION:
            return Answer(((NO_SUCH_FUNCTION, calls[0][1]), *calls[1:]))
        case Kind.MISSING_CALL:
            return Answer(calls[:-1]) if len(calls) > 1 else Answer(text=ABSTENTION)
        case Kind.EXTRA_CALL:
            return Answer((*calls, calls[-1] if calls else _unwanted_call(entry)))
        case Kind.MALFORMED_ARGUMENTS:
            name, arguments = calls[0]
            return Answer(((name, arguments.removesuffix("}")), *calls[1:]))
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


def _unwanted_call(entry: Entry) -> tuple[str, str]:
    functions = entry.functions()
    return (tool_name(functions[0]["name"]) if functions else NO_SUCH_FUNCTION, "{}")


def _text_message(text: str) -> dict[str, Json]:
    return {"role": "assistant", "content": text}


def _tokens(characters: int) -> int:
    return max(1, round(characters / _CHARACTERS_PER_TOKEN))

"""What a model is asked: messages and tools exactly as the official generator sends them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.official import Official

type Json = Any  # a parsed JSON value


LEAN_HARNESS = "bfcl_chat"
"""The harness that takes a sample's tools as JSON text, in ``TOOLS_TEXT`` of the prepared task's metadata.

The host copies, redacts and writes a prepared task several times a sample. Text passes through that untouched; a list
of schemas is walked every time, and comes out altered where a parameter is called ``token`` or ``password``.
"""

TOOLS_TEXT = "tools_text"


class Mode(StrEnum):
    """How functions are offered.

    ``fc``: as tools of the chat completions API, answered by native tool calls. ``prompt``: in a system message,
    answered by text such as ``[f(x=1), g(y='a')]``.
    """

    FC = "fc"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The part of a chat completions request that the benchmark decides.

    ``tools`` is empty in prompt mode, and for the four rows that document no function; then no ``tools`` key may be
    sent, as upstream.
    """

    messages: list[dict[str, Json]]
    tools: list[dict[str, Json]]


def chat_request(entry: Entry, official: Official, mode: Mode = Mode.FC) -> ChatRequest:
    """Build a row's request. Fresh objects on every call: harnesses write into what they are given."""
    if mode is Mode.PROMPT:
        messages = official.prompt_messages(entry.messages(), entry.functions(), entry.id)
        return ChatRequest(messages=messages, tools=[])
    return ChatRequest(messages=entry.messages(), tools=official.tools(entry.functions(), entry.id))

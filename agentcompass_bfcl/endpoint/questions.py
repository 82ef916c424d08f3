"""Which row a request asks about: its id where the client sends one, otherwise its messages and function names."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.reference import tool_name

type Json = Any  # a parsed JSON value
type _Conversation = tuple[tuple[str, str], ...]

ID_HEADER = "x-client-request-id"
_ID_PREFIX = "bfcl-"


class Questions:
    """An index of the rows by what a request shows of them."""

    def __init__(self, dataset: Dataset) -> None:
        self._by_id = dataset.by_id
        self._by_messages: defaultdict[_Conversation, list[Entry]] = defaultdict(list)
        self._by_question: defaultdict[_Conversation, list[Entry]] = defaultdict(list)
        for entry in dataset.by_id.values():
            conversation = _conversation(entry.messages())
            self._by_messages[conversation].append(entry)
            self._by_question[_split(conversation)[1]].append(entry)

    def find(self, request_id: str | None, messages: Json, tool_names: Sequence[str]) -> Entry | None:
        """Find the row asked about, or None.

        ``request_id`` is the value of ``ID_HEADER``; only values that start with ``bfcl-`` name a row. 22 pairs
        and a triple of rows share messages and tool names, four pairs with contradicting answers: without an id the
        first such row in the data set answers for all. In prompt mode, where there are no tools, a system message
        names the functions, and a row's own system message stands at its end.
        """
        if request_id is not None and request_id.startswith(_ID_PREFIX):
            return self._by_id.get(request_id.removeprefix(_ID_PREFIX))
        conversation, names = _conversation(messages), list(tool_names)
        candidates = self._by_messages.get(conversation, [])
        if not candidates and not names:
            prompt, question = _split(conversation)
            candidates, names = _ending(self._by_question.get(question, []), prompt), _documented_names(prompt)
        if len(candidates) > 1:
            candidates = [entry for entry in candidates if _tool_names(entry) == names]
        return candidates[0] if candidates else None


def is_prompted(entry: Entry, messages: Json, tool_names: Sequence[str]) -> bool:
    """Tell whether a request asks a row in prompt mode: there are no tools, though there are functions to offer.

    For the few rows without functions, a system message that is not the row's own decides.
    """
    asked, own = _split(_conversation(messages))[0], _split(_conversation(entry.messages()))[0]
    return not tool_names and (bool(entry.functions()) or asked != own)


def _split(conversation: _Conversation) -> tuple[str, _Conversation]:
    """Part a leading system message from the question; "" when there is none."""
    if conversation and conversation[0][0] == "system":
        return conversation[0][1], conversation[1:]
    return "", conversation


def _ending(entries: Sequence[Entry], prompt: str) -> list[Entry]:
    """Choose the rows whose own system message ends a prompt; without any, those that have none."""
    own = [(entry, _split(_conversation(entry.messages()))[0]) for entry in entries]
    ended = [entry for entry, message in own if message and prompt.endswith(message)]
    return ended or [entry for entry, message in own if not message]


def _documented_names(prompt: str) -> list[str]:
    """Read the functions a prompt documents, a JSON list that begins a line, and name the tools they would be."""
    start = prompt.find("\n[") + 1
    try:
        functions, _ = json.JSONDecoder().raw_decode(prompt, start)
        return [tool_name(function["name"]) for function in functions]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return []


def _tool_names(entry: Entry) -> list[str]:
    return [tool_name(function["name"]) for function in entry.functions()]


def _conversation(messages: Json) -> _Conversation:
    """Reduce messages to what identifies a row; any JSON value is accepted, since a client may send anything."""
    if not isinstance(messages, list):
        return ()
    return tuple(
        (str(message.get("role")), _text(message.get("content"))) for message in messages if isinstance(message, dict)
    )


def _text(content: Json) -> str:
    """Give the text of a message's content, which may also come as ``[{"type": "text", "text": ...}]``."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)

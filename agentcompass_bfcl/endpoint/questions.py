"""Which row a request asks about: its id where the client sends one, otherwise its messages and tool names."""

from __future__ import annotations

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
        for entry in dataset.by_id.values():
            self._by_messages[_conversation(entry.messages())].append(entry)

    def find(self, request_id: str | None, messages: Json, tool_names: Sequence[str]) -> Entry | None:
        """Find the row asked about, or None.

        ``request_id`` is the value of ``ID_HEADER``; only values that start with ``bfcl-`` name a row. 22 pairs
        and a triple of rows share messages and tool names, four pairs with contradicting answers: without an id the
        first such row in the data set answers for all.
        """
        if request_id is not None and request_id.startswith(_ID_PREFIX):
            return self._by_id.get(request_id.removeprefix(_ID_PREFIX))
        candidates = self._by_messages.get(_conversation(messages), [])
        if len(candidates) > 1:
            candidates = [entry for entry in candidates if _tool_names(entry) == list(tool_names)]
        return candidates[0] if candidates else None


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

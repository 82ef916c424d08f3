"""What the endpoint of the fault campaign does to a request instead of answering it right."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from agentcompass_bfcl.endpoint.answers import ABSTENTION
from benchmarks.fault_endpoint import Exchange, Reaction, answers_right, message_bytes

type Json = Any  # a parsed JSON value

_JSON = "application/json"
_FOREVER = 3600.0
_HEADS_START = 0.2
_GZIP = 31  # zlib's word for it


def sends(
    content: Callable[[Exchange], bytes],
    *,
    status: int = 200,
    content_type: str = _JSON,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Reaction:
    """Send a whole response whose body is made from the exchange."""

    async def reaction(exchange: Exchange) -> None:
        exchange.writer.write(message_bytes(status, content(exchange), content_type, headers))

    return reaction


def refuses(status: int, headers: Mapping[str, str] = MappingProxyType({})) -> Reaction:
    """Refuse with an error body that repeats the key, as some servers do."""

    def body(exchange: Exchange) -> bytes:
        return json.dumps({"error": {"message": f"refused; the key was {exchange.sent_key}"}}).encode()

    return sends(body, status=status, headers=headers)


def html(status: int) -> Reaction:
    """Send a proxy's page, which repeats the key."""

    def body(exchange: Exchange) -> bytes:
        return f"<html><body>Bearer {exchange.sent_key}: try later</body></html>".encode()

    return sends(body, status=status, content_type="text/html")


def rewrites(change: Callable[[dict[str, Json]], Json], content_type: str = _JSON) -> Reaction:
    """Send the right completion after a change; ``change`` may write into what it gets."""
    return sends(lambda exchange: json.dumps(change(exchange.right)).encode(), content_type=content_type)


def rewrites_message(message: Mapping[str, Json], finish_reason: str) -> Reaction:
    """Send the right completion with another message in it."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return rewrites(lambda right: {**right, "choices": [choice]})


def once(fault: Reaction) -> Reaction:
    """Meet only the first request for a row so; the next is answered right."""

    async def reaction(exchange: Exchange) -> None:
        await (fault if exchange.number == 1 else answers_right)(exchange)

    return reaction


def amid_answers(fault: Reaction) -> Reaction:
    """Wait until something was answered right: the first reply of all decides whether an endpoint can be used."""

    async def reaction(exchange: Exchange) -> None:
        if not exchange.answered.is_set():
            await exchange.answered.wait()
            await asyncio.sleep(_HEADS_START)  # that answer is still on its way
        await fault(exchange)

    return reaction


async def stalls(exchange: Exchange) -> None:
    """Say nothing."""
    await asyncio.sleep(_FOREVER)


async def stalls_in_body(exchange: Exchange) -> None:
    """Send the headers and half the body, and no more."""
    _write_half(exchange)
    await exchange.writer.drain()
    await asyncio.sleep(_FOREVER)


async def resets_mid_body(exchange: Exchange) -> None:
    """Send the headers and half the body, and reset the connection."""
    _write_half(exchange)
    await exchange.writer.drain()
    linger_for_no_time = struct.pack("ii", 1, 0)
    exchange.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_no_time)
    exchange.writer.close()


async def hangs_up(exchange: Exchange) -> None:
    """Close the connection without a word."""
    exchange.writer.close()


def drips(seconds: float, pieces: int) -> Reaction:
    """Send the right answer in pieces over so many seconds; no single read waits long."""

    async def reaction(exchange: Exchange) -> None:
        content = message_bytes(200, json.dumps(exchange.right).encode(), _JSON)
        size = max(1, len(content) // pieces)
        for start in range(0, len(content), size):
            exchange.writer.write(content[start : start + size])
            await exchange.writer.drain()
            await asyncio.sleep(seconds / pieces)

    return reaction


def never_ends(status: int) -> Reaction:
    """Send a body that goes on for as long as it is taken."""

    async def reaction(exchange: Exchange) -> None:
        exchange.writer.write(f"HTTP/1.1 {status} Whatever\r\ncontent-type: {_JSON}\r\n\r\n".encode())
        while True:
            exchange.writer.write(b" " * 65536)
            await exchange.writer.drain()

    return reaction


def unpacks_to(megabytes: int) -> Reaction:
    """Send a small packed body that holds so many megabytes of blanks."""
    return sends(lambda exchange: _packed_blanks(megabytes), headers={"content-encoding": "gzip"})


@cache
def _packed_blanks(megabytes: int) -> bytes:
    packing = zlib.compressobj(9, wbits=_GZIP)
    return b"".join(packing.compress(b" " * 1024**2) for _ in range(megabytes)) + packing.flush()


def _write_half(exchange: Exchange) -> None:
    content = json.dumps(exchange.right).encode()
    whole = message_bytes(200, content, _JSON)
    exchange.writer.write(whole[: len(whole) - len(content) // 2])


def other_arguments(right: dict[str, Json]) -> Json:
    """Give arguments as objects instead of text; where no call is wanted, make one."""
    choice = right["choices"][0]
    calls = choice["message"].get("tool_calls") or [{"id": "call_0", "type": "function", "function": _UNWANTED}]
    for call in calls:
        call["function"] = {**call["function"], "arguments": json.loads(call["function"]["arguments"])}
    choice["message"] = {"role": "assistant", "content": None, "tool_calls": calls}
    choice["finish_reason"] = "tool_calls"
    return right


def legacy_call(right: dict[str, Json]) -> Json:
    """Give the first call, or an unwanted one, in the form from before tools."""
    choice = right["choices"][0]
    calls = choice["message"].get("tool_calls")
    call = calls[0]["function"] if calls else _UNWANTED
    choice["message"] = {"role": "assistant", "content": None, "function_call": call}
    choice["finish_reason"] = "function_call"
    return right


def same_ids(right: dict[str, Json]) -> Json:
    """Give every call the same id."""
    for call in right["choices"][0]["message"].get("tool_calls") or []:
        call["id"] = "call_0"
    return right


def cut_off(right: dict[str, Json]) -> Json:
    """Cut the reply at the token limit: in the middle of the last call's arguments, or of the text."""
    choice = right["choices"][0]
    calls = choice["message"].get("tool_calls")
    if calls:
        function = calls[-1]["function"]
        function["arguments"] = function["arguments"][: len(function["arguments"]) // 2]
    else:
        choice["message"]["content"] = ABSTENTION[: len(ABSTENTION) // 2]
    choice["finish_reason"] = "length"
    return right


_UNWANTED = {"name": "unwanted_call", "arguments": "{}"}

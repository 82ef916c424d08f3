"""A server that misbehaves as told, on loopback: raw bytes, so that it can do what no HTTP library lets a server do."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

type Reaction = Callable[[asyncio.StreamWriter], Awaitable[None]]

ANSWER: dict[str, Any] = {
    "choices": [{"message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2},
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came. Header names are in lower case; ``at`` is the loop's time in seconds."""

    headers: dict[str, str]
    body: Any
    at: float


@dataclass(slots=True)
class FaultServer:
    """What the server was asked. ``open_connections`` are those the client has not closed yet."""

    base_url: str = ""
    seen: list[Seen] = field(default_factory=list)
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    open_connections: int = 0

    def pauses(self) -> list[float]:
        """Give the seconds between requests."""
        return [later.at - earlier.at for earlier, later in zip(self.seen, self.seen[1:], strict=False)]


def says(status: int, body: str | bytes, content_type: str = "application/json", **headers: str) -> Reaction:
    """Answer whole; keyword arguments are headers, with underscores for hyphens."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Whatever", f"content-type: {content_type}", f"content-length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    async def reaction(writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)

    return reaction


def answers(payload: Any = ANSWER) -> Reaction:
    """Answer with status 200 and a JSON body."""
    return says(200, json.dumps(payload))


def drips(seconds_per_byte: float) -> Reaction:
    """Send a right answer so slowly that no single read ever times out."""

    async def reaction(writer: asyncio.StreamWriter) -> None:
        content = json.dumps(ANSWER).encode()
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(content)}\r\n\r\n".encode())
        for byte in content:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(seconds_per_byte)

    return reaction


def never_ends(status: int) -> Reaction:
    """Send a body that has no end, as fast as it is taken."""

    async def reaction(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} Whatever\r\n\r\n".encode())
        while True:
            writer.write(b" " * 65536)
            await writer.drain()

    return reaction


async def stalls(writer: asyncio.StreamWriter) -> None:
    """Say nothing until the client goes."""
    await asyncio.Event().wait()


async def resets_mid_body(writer: asyncio.StreamWriter) -> None:
    """Promise a body, send its first half and reset the connection."""
    content = json.dumps(ANSWER).encode()
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(content)}\r\n\r\n".encode() + content[: len(content) // 2])
    await writer.drain()
    linger_for_no_time = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_no_time)
    writer.close()


async def hangs_up(writer: asyncio.StreamWriter) -> None:
    """Close the connection without a word."""
    writer.close()


@asynccontextmanager
async def fault_server(*reactions: Reaction) -> AsyncIterator[FaultServer]:
    """Serve in the running loop: the first request meets the first reaction, and so on; the last one repeats."""
    server, connections = FaultServer(), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.open_connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                server.seen.append(request)
                server.was_asked.set()
                await reactions[min(len(server.seen), len(reactions)) - 1](writer)
        except ConnectionError:
            pass  # the client had enough
        finally:
            server.open_connections -= 1
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.create_task(serve(reader, writer)))

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.base_url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await listening.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.decode("latin-1").split("\r\n")[1:]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(headers, json.loads(body) if body else None, asyncio.get_running_loop().time())

"""An endpoint on loopback that answers rows right, but for those that a plan lets it treat badly.

Raw bytes on a socket, so that it can do what no HTTP library lets a server do.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint.answers import answer, completion
from agentcompass_bfcl.endpoint.questions import ID_HEADER

type Json = Any  # a parsed JSON value
type Reaction = Callable[[Exchange], Awaitable[None]]
type Plan = Callable[[Entry], Reaction | None]

_START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request for a row and the way back. ``number`` counts the requests for this row, from 1.

    ``right`` is the chat completion that answers it, ``sent_key`` the key that came along, ``answered`` is set once
    any request got a right answer.
    """

    entry: Entry
    number: int
    right: dict[str, Json]
    sent_key: str
    writer: asyncio.StreamWriter
    answered: asyncio.Event


@dataclass(frozen=True, slots=True)
class Outage:
    """When the endpoint goes away, in requests, and for how many seconds; None means for good."""

    after: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Running:
    """An endpoint that serves in a thread of this process. ``requests`` counts them by sample id."""

    port: int
    requests: Counter[str]

    @property
    def base_url(self) -> str:
        """Give the address to run against."""
        return f"http://127.0.0.1:{self.port}/v1"


def message_bytes(
    status: int, content: bytes, content_type: str, headers: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """Write a whole HTTP response."""
    fields = {"content-type": content_type, "content-length": str(len(content)), **headers}
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode() + content


async def answers_right(exchange: Exchange) -> None:
    """Answer from the reference."""
    exchange.writer.write(message_bytes(200, json.dumps(exchange.right).encode(), "application/json"))
    exchange.answered.set()


class _Server:
    """The endpoint inside its event loop."""

    def __init__(self, dataset: Dataset, plan: Plan, key: str | None, outage: Outage | None, running: Running) -> None:
        self._dataset = dataset
        self._plan = plan
        self._key = key
        self._outage = outage
        self._requests = running.requests
        self._port = running.port
        self._answered = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None
        self._outages: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """Listen, and return the port."""
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = int(self._listening.sockets[0].getsockname()[1])
        return self._port

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._listening is None:
            return
        self._listening.close()
        connections, self._listening = list(self._connections), None
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A connection that breaks, or ends in the middle of a request, is the client's to mend.
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                while not writer.is_closing():
                    await self._respond(*await _read_request(reader), writer)
                    await writer.drain()
            finally:
                writer.close()

    async def _respond(self, headers: Mapping[str, str], characters: int, writer: asyncio.StreamWriter) -> None:
        authorization = headers.get("authorization", "")
        if self._key is not None and authorization != f"Bearer {self._key}":
            content = json.dumps({"error": {"message": "the API key is missing or wrong"}}).encode()
            writer.write(message_bytes(401, content, "application/json"))
            return
        entry = self._dataset.entry(headers.get(ID_HEADER, "").removeprefix("bfcl-"))
        self._requests[entry.id] += 1
        if self._outage is not None and self._requests.total() == self._outage.after:
            self._outages.add(asyncio.create_task(self._go_away(self._outage.seconds)))
            await asyncio.Event().wait()
        right = completion(answer(entry, None), entry.id, "some-model", characters)
        sent_key = authorization.removeprefix("Bearer ")
        exchange = Exchange(entry, self._requests[entry.id], right, sent_key, writer, self._answered)
        await (self._plan(entry) or answers_right)(exchange)

    async def _go_away(self, seconds: float | None) -> None:
        await self.close()
        if seconds is not None:
            await asyncio.sleep(seconds)
            await self.open()


async def _read_request(reader: asyncio.StreamReader) -> tuple[dict[str, str], int]:
    """Read a request: its headers, names in lower case, and the length of its body."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return headers, len(await reader.readexactly(int(headers.get("content-length", "0"))))


@contextmanager
def fault_endpoint(
    dataset: Dataset, plan: Plan, *, key: str | None = None, port: int = 0, outage: Outage | None = None
) -> Iterator[Running]:
    """Serve on 127.0.0.1 in a background thread while the block runs; port 0 takes any free one.

    ``key`` is the API key that the endpoint demands.
    """
    requests: Counter[str] = Counter()
    started: Future[tuple[int, Callable[[], object]]] = Future()

    async def serve() -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        server = _Server(dataset, plan, key, outage, Running(port, requests))
        try:
            started.set_result((await server.open(), lambda: loop.call_soon_threadsafe(stopped.set)))
        except OSError as error:
            started.set_exception(error)
            return
        await stopped.wait()
        await server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="fault-endpoint", daemon=True)
    thread.start()
    taken, stop = started.result(timeout=_START_SECONDS)
    try:
        yield Running(taken, requests)
    finally:
        stop()
        thread.join()

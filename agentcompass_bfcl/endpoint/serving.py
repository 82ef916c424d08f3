"""Bring an endpoint up on loopback: until interrupted, or in a thread of the caller's process."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint.application import Behaviour, Endpoint
from agentcompass_bfcl.endpoint.connection import Connection
from agentcompass_bfcl.endpoint.mistakes import NO_MISTAKES, Mistakes
from agentcompass_bfcl.errors import ConfigError

type Json = Any  # a parsed JSON value

_BACKLOG = 512
_START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RunningEndpoint:
    """An endpoint that serves in a thread of this process. ``base_url`` ends in ``/v1``."""

    base_url: str
    _endpoint: Endpoint

    def stats(self) -> dict[str, Json]:
        """Give the counters, as ``GET /stats`` does; see ``Stats.snapshot`` for the shape."""
        return self._endpoint.stats.snapshot()


def run_server(
    dataset: Dataset,
    mistakes: Mistakes,
    seed: int,
    host: str,
    port: int,
    latency: float,
    on_ready: Callable[[str], None],
    *,
    stall_seconds: float = 600.0,
    models: tuple[str, ...] = (),
    api_key: str | None = None,
) -> None:
    """Serve until interrupted (SIGINT), then return. ``on_ready`` gets the base URL once requests are accepted.

    Port 0 takes any free port. Raises ``ConfigError`` for a host that is not loopback and for a port in use.
    """
    endpoint = Endpoint(dataset, Behaviour(mistakes, seed, latency, stall_seconds, models, api_key))
    with _listener(host, port) as listener:
        url = _base_url(listener)
        try:
            asyncio.run(_serve(endpoint, listener, lambda stop: on_ready(url)))
        except KeyboardInterrupt:
            return


@contextmanager
def running_endpoint(
    dataset: Dataset,
    *,
    mistakes: Mistakes = NO_MISTAKES,
    seed: int = 0,
    latency: float = 0.0,
    stall_seconds: float = 600.0,
    models: tuple[str, ...] = (),
    api_key: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[RunningEndpoint]:
    """Serve in a background thread while the block runs; open connections are cut at its end.

    Raises ``ConfigError`` for a host that is not loopback and for a port in use.
    """
    endpoint = Endpoint(dataset, Behaviour(mistakes, seed, latency, stall_seconds, models, api_key))
    with _listener(host, port) as listener:
        started: Future[Callable[[], object]] = Future()
        serving = _serve(endpoint, listener, started.set_result)
        thread = threading.Thread(target=asyncio.run, args=(serving,), name="bfcl-endpoint", daemon=True)
        thread.start()
        stop = started.result(timeout=_START_SECONDS)
        try:
            yield RunningEndpoint(_base_url(listener), endpoint)
        finally:
            stop()
            thread.join()


async def _serve(
    endpoint: Endpoint, listener: socket.socket, on_ready: Callable[[Callable[[], object]], object]
) -> None:
    """Serve until cancelled, or until the function given to ``on_ready`` is called from any thread."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    connections: set[Connection] = set()
    server = await loop.create_server(lambda: Connection(endpoint, connections), sock=listener, backlog=_BACKLOG)
    try:
        on_ready(lambda: loop.call_soon_threadsafe(stopped.set))
        await stopped.wait()
    finally:
        server.close()
        for connection in tuple(connections):
            connection.drop()
        await server.wait_closed()


def _listener(host: str, port: int) -> socket.socket:
    address = ipaddress.ip_address("127.0.0.1") if host == "localhost" else _ip_address(host)
    if not address.is_loopback:
        raise ConfigError(f"host {host}: this endpoint is for trying out and listens on loopback only; use 127.0.0.1")
    if not 0 <= port <= 65535:
        raise ConfigError(f"port {port} is not between 0 and 65535; take another port, or 0 for any")
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        return socket.create_server((str(address), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host} port {port} ({error}); take another port, or 0 for any") from error


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        raise ConfigError(f"host {host!r} is not an IP address; use 127.0.0.1") from None


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/v1" if listener.family == socket.AF_INET6 else f"http://{host}:{port}/v1"

"""How the tests talk to an endpoint: over real HTTP, or with raw bytes."""

from __future__ import annotations

import socket
from typing import Any

import httpx

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.endpoint import RunningEndpoint
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.task import chat_request


def client(running: RunningEndpoint, **options: Any) -> httpx.Client:
    return httpx.Client(base_url=running.base_url, trust_env=False, timeout=options.pop("timeout", 20), **options)


def body_of(entry: Entry, official: Official) -> dict[str, Any]:
    request = chat_request(entry, official)
    tools = {"tools": request.tools} if request.tools else {}
    return {"model": "any-name", "messages": request.messages, **tools}


def ask(http: httpx.Client, entry: Entry, official: Official, **extra: Any) -> httpx.Response:
    return http.post(
        "/chat/completions",
        json={**body_of(entry, official), **extra},
        headers={"X-Client-Request-Id": f"bfcl-{entry.id}"},
    )


def error_code(reply: httpx.Response) -> str:
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return str(error["code"])


def connect(running: RunningEndpoint) -> socket.socket:
    url = httpx.URL(running.base_url)
    return socket.create_connection((url.host, url.port or 0), timeout=10)


def raw_exchange(running: RunningEndpoint, sent: bytes) -> bytes:
    """Send bytes and read until the server closes the connection."""
    with connect(running) as connection:
        connection.sendall(sent)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received

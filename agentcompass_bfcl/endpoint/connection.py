"""One client connection: HTTP/1.1 read by h11, written back in order."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace
from typing import cast

import h11

from agentcompass_bfcl.endpoint.application import Endpoint, Reply, Request, Stall, error_reply

LARGEST_BODY = 16 * 1024 * 1024
_LARGEST_HEADERS = 64 * 1024
_LARGEST_READ_AHEAD = 256 * 1024  # what a client may send while it is kept waiting
_LINGER_SECONDS = 5.0


class Connection(asyncio.Protocol):
    """Serve requests until the client hangs up, one after the other.

    Timers stand for latency and stalls, so that a waiting client costs no task, and dropping a connection is one call.
    """

    def __init__(self, endpoint: Endpoint, others: set[Connection]) -> None:
        self._endpoint = endpoint
        self._others = others
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEADERS)
        self._transport: asyncio.Transport
        self._head: h11.Request
        self._body = bytearray()
        self._wants_no_content = False
        self._wait_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self._read_ahead = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve."""
        self._transport = cast(asyncio.Transport, transport)
        # asyncio does this itself only where it made the listening socket; without it some replies wait for 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._stop_waiting()
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        self._others.discard(self)

    def drop(self) -> None:
        """Close without a further word."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take in bytes and answer every request they complete."""
        if self._linger_timer is not None:
            return
        self._http.receive_data(data)
        if self._wait_timer is None:
            self._advance()
            return
        self._read_ahead += len(data)
        if self._read_ahead > _LARGEST_READ_AHEAD:
            self.drop()

    def _advance(self) -> None:
        while self._wait_timer is None and self._linger_timer is None and not self._transport.is_closing():
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(error_reply(error.error_status_hint, "bad_request", str(error)))
                return
            if isinstance(event, h11.Request):
                self._begin(event)
            elif isinstance(event, h11.Data):
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self._answer()
            else:  # NEED_DATA, PAUSED or ConnectionClosed
                return

    def _begin(self, head: h11.Request) -> None:
        self._head, self._body = head, bytearray()
        self._wants_no_content = head.method == b"HEAD"
        headers = dict(head.headers)
        length = headers.get(b"content-length")
        if b"transfer-encoding" in headers or (head.method == b"POST" and length is None):
            self._refuse(error_reply(411, "length_required", "send the body with a Content-Length, not in chunks"))
        elif length is not None and int(length) > LARGEST_BODY:
            self._refuse(error_reply(413, "too_large", f"a body may have at most {LARGEST_BODY} bytes"))
        elif self._http.they_are_waiting_for_100_continue:
            self._write(h11.InformationalResponse(status_code=100, headers=[]))

    def _answer(self) -> None:
        request = Request(
            method=self._head.method.decode("ascii"),
            path=self._head.target.decode("latin-1").partition("?")[0],
            headers={name.decode("ascii"): value.decode("latin-1") for name, value in self._head.headers},
            body=bytes(self._body),
        )
        response = self._endpoint.respond(request)
        if isinstance(response, Stall):
            self._wait(response.seconds, response)
        elif response.delay:
            self._wait(response.delay, response)
        else:
            self._send(response)

    def _wait(self, seconds: float, response: Reply | Stall) -> None:
        self._endpoint.stats.began_waiting()
        self._wait_timer = asyncio.get_running_loop().call_later(seconds, self._waited, response)

    def _waited(self, response: Reply | Stall) -> None:
        self._stop_waiting()
        if isinstance(response, Stall):
            self.drop()
        else:
            self._send(response)
            self._advance()

    def _stop_waiting(self) -> None:
        if self._wait_timer is not None:
            self._wait_timer.cancel()
            self._wait_timer = None
            self._endpoint.stats.stopped_waiting()

    def _send(self, reply: Reply) -> None:
        self._read_ahead = 0
        self._write_reply(reply)
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self._transport.close()

    def _refuse(self, reply: Reply) -> None:
        """Answer a request that was not read to its end, then read on for a while without listening.

        Closing at once, with bytes unread, would reset the connection before the client has seen the answer.
        """
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.drop()
            return
        self._write_reply(replace(reply, headers={**reply.headers, "connection": "close"}))
        self._transport.write_eof()
        self._linger_timer = asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._transport.close)

    def _write_reply(self, reply: Reply) -> None:
        content = json.dumps(reply.payload).encode()
        headers = {"content-type": "application/json", "content-length": str(len(content)), **reply.headers}
        self._write(
            h11.Response(status_code=reply.status, headers=list(headers.items())),
            *(() if self._wants_no_content else (h11.Data(data=content),)),
            h11.EndOfMessage(),
        )

    def _write(self, *events: h11.Event) -> None:
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))

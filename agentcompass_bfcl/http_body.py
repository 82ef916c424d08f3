"""The OpenAI library's HTTP client, with an end to what it reads: a body may go on for ever, or unpack to gigabytes."""

from __future__ import annotations

from typing import Any

import openai

from agentcompass_bfcl.errors import EndpointError

LARGEST_BODY = 12 * 1024 * 1024
"""Bytes, unpacked. An attempt's file has up to 6.5 times as many: three copies of the text, one escaped twice."""

_FRAMING = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})  # of a body as it was sent


class OversizedBodyError(EndpointError):
    """More came than any reply can have; the rest was not read."""


class BoundedHttpClient(openai.DefaultAsyncHttpxClient):
    """Read each response whole and within bounds, whatever its status: the library reads an error's to its end."""

    async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        """Send a request and give its response, already read. Raises ``OversizedBodyError``."""
        response = await super().send(request, stream=True, **options)
        body = bytearray()
        try:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > LARGEST_BODY:
                    raise OversizedBodyError(f"the body has more than {LARGEST_BODY} bytes: no model writes that much")
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _FRAMING]
        return type(response)(response.status_code, headers=headers, content=bytes(body), request=response.request)

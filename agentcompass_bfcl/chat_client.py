"""One chat completions client for a whole process: bounded retries, bounded time, and faults told apart.

A request either brings a reply or raises ``RequestError``; it never turns into an empty answer.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import openai
import tenacity

from agentcompass_bfcl.errors import EndpointError
from agentcompass_bfcl.http_body import BoundedHttpClient, OversizedBodyError
from agentcompass_bfcl.response import TransportFailure
from agentcompass_bfcl.settings import parse_base_url

type Json = Any  # a parsed JSON value

# Statuses another try may cure, and statuses no other sample would escape either.
_MAY_PASS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_CONCERNS_ALL = frozenset({401, 402, 403, 404})
_KEY_REFUSED = frozenset({401, 403})
# A message with none of these is not an empty answer but none at all; taken for one, it would be an abstention.
_MESSAGE_KEYS = frozenset({"content", "tool_calls", "function_call", "reasoning_content", "reasoning", "refusal"})
_LONGEST_MESSAGE = 500
_LONGEST_START = 80


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a request is tried again: no new try begins once ``budget_seconds`` have passed.

    ``longest_delay_seconds`` caps the client's own backoff. A wait that the server asks for is kept in full, or not
    begun at all where it would outlast the budget.
    """

    max_retries: int = 3
    budget_seconds: float = 120.0  # limits are mostly a minute's, and a wait of a minute has to fit in
    first_delay_seconds: float = 0.5
    longest_delay_seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: the assistant message as it came, and what the report wants to know. Latency is the last try's."""

    message: Mapping[str, Json]
    finish_reason: str | None
    usage: Mapping[str, Json] | None
    latency_ms: float


class RequestError(EndpointError):
    """A request without a reply. ``concerns_all``: every other sample would meet the same fault."""

    def __init__(
        self,
        failure: TransportFailure,
        *,
        may_pass: bool = False,
        concerns_all: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.may_pass = may_pass
        self.concerns_all = concerns_all
        self.retry_after = retry_after


@dataclass(slots=True)
class ChatClient:
    """An endpoint to send requests to. Make one per process and close it: each client builds a TLS context.

    Raises ``ConfigError`` for a ``base_url`` that is no HTTP address.
    """

    base_url: str
    api_key: str = field(repr=False)
    policy: RetryPolicy
    timeout_seconds: float
    _client: openai.AsyncOpenAI = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._client = openai.AsyncOpenAI(
            base_url=parse_base_url(self.base_url) or None,
            api_key=self.api_key or "none",  # local servers ask for none, the library insists on one
            max_retries=0,
            timeout=self.timeout_seconds,
            http_client=BoundedHttpClient(),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def complete(self, request: Mapping[str, Json]) -> Reply:
        """Send one request of ``openai`` keyword arguments, trying again what may pass.

        Raises ``RequestError`` after the last try.
        """
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.policy.max_retries + 1)
            | tenacity.stop_before_delay(self.policy.budget_seconds),
            wait=self._wait,
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, RequestError) and error.may_pass),
            reraise=True,
        )
        reply: Reply = await retrying(self._try_once, dict(request))
        return reply

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RequestError) and error.retry_after is not None:
            return error.retry_after  # less would be refused again, and use up the tries
        first, longest = self.policy.first_delay_seconds, self.policy.longest_delay_seconds
        backoff = tenacity.wait_exponential(multiplier=first, max=longest) + tenacity.wait_random(0, first)
        return min(longest, backoff(state))

    async def _try_once(self, request: dict[str, Json]) -> Reply:
        limit = request.get("timeout")
        seconds = float(limit) if isinstance(limit, int | float) else self.timeout_seconds
        started = time.monotonic()
        try:
            # The library's own limit restarts with every byte: a reply that drips would never end.
            async with asyncio.timeout(seconds):
                raw = await self._client.chat.completions.with_raw_response.create(**request)
                body = raw.http_response.content
        except (TimeoutError, openai.APITimeoutError):
            message = f"no complete reply within {seconds:g} s"
            raise RequestError(TransportFailure("timeout", message), may_pass=True) from None
        except OversizedBodyError as error:
            raise _oversized(error) from None
        except openai.APIStatusError as error:
            raise self._status_failed(error) from None
        except openai.APIConnectionError as error:
            raise self._connection_failed(error) from None
        return self._reply(body, (time.monotonic() - started) * 1000)

    def _status_failed(self, error: openai.APIStatusError) -> RequestError:
        status = error.status_code
        asked = _seconds(error.response.headers.get("retry-after"))
        remark = f", to be tried again after {asked:g} s" if asked else ""
        if status in _KEY_REFUSED and not self.api_key:
            remark = ", sent without an API key"
        message = self._without_secrets(f"HTTP {status}{remark}: {_server_message(error)}")
        return RequestError(
            TransportFailure(f"http_{status}", message),
            may_pass=status in _MAY_PASS,
            concerns_all=status in _CONCERNS_ALL,
            retry_after=asked,
        )

    def _connection_failed(self, error: openai.APIConnectionError) -> RequestError:
        cause = error.__cause__ or error
        if isinstance(
            cause, OversizedBodyError
        ):  # openai 2 takes whatever its HTTP client raises for a lost connection
            return _oversized(cause)
        # By name: the library moved from httpx to httpx2, and both spell it so.
        unreachable = type(cause).__name__ == "ConnectError"
        code = "connection_refused" if unreachable else "connection_lost"
        message = self._without_secrets(f"{type(cause).__name__}: {str(cause) or 'the connection broke off'}")
        return RequestError(TransportFailure(code, message), may_pass=True, concerns_all=unreachable)

    def _reply(self, body: bytes, latency_ms: float) -> Reply:
        try:
            payload = json.loads(body)
            choice = payload["choices"][0]
            message = _whole_text(choice["message"])
            if not isinstance(message, Mapping):
                raise TypeError("choices[0].message is not an object")
            if payload.get("error") or choice.get("error") or choice.get("finish_reason") == "error":
                raise ValueError("it reports an error")
            if not _MESSAGE_KEYS & message.keys():
                raise ValueError("choices[0].message says nothing, not even that it is empty")
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            start = self._without_secrets(body.decode("utf-8", "replace"))[:_LONGEST_START]
            shown = f"it starts: {start}" if start else "it is empty"
            what = f"the body is no chat completion ({type(error).__name__}: {error}); {shown}"
            raise RequestError(TransportFailure("invalid_body", what[:_LONGEST_MESSAGE])) from None
        finish_reason, usage = choice.get("finish_reason"), payload.get("usage")
        return Reply(
            message=message,
            finish_reason=finish_reason if isinstance(finish_reason, str) else None,
            usage=usage if isinstance(usage, Mapping) else None,
            latency_ms=latency_ms,
        )

    def _without_secrets(self, text: str) -> str:
        # Servers repeat the key they refuse. Before anything is cut off: half a key would not be found.
        cleaned = text.replace(self.api_key, "********") if len(self.api_key) >= 4 else text
        return " ".join(cleaned.split())[:_LONGEST_MESSAGE]


def _oversized(error: OversizedBodyError) -> RequestError:
    return RequestError(TransportFailure("oversized_body", str(error)))


def _server_message(error: openai.APIStatusError) -> str:
    message = error.body.get("message") if isinstance(error.body, Mapping) else None
    return message if isinstance(message, str) else error.response.text


def _whole_text(value: Json) -> Json:
    """Replace halves of surrogate pairs, which JSON can spell and no file can hold, by U+FFFD."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_whole_text(item) for item in value]
        case dict():
            return {_whole_text(key): _whole_text(item) for key, item in value.items()}
        case _:
            return value


def _seconds(header: str | None) -> float | None:
    try:
        seconds = float(header or "")
    except ValueError:
        return None  # none, or an HTTP date: the ordinary backoff will do
    return seconds if 0 <= seconds < math.inf else None

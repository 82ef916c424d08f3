"""The endpoint without its sockets: a request in, a reply out."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint.answers import answer, completion
from agentcompass_bfcl.endpoint.mistakes import Kind, Mistakes, is_flaky, planned_mistake
from agentcompass_bfcl.endpoint.questions import ID_HEADER, Questions, is_prompted
from agentcompass_bfcl.endpoint.stats import Stats
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value

DEFAULT_MODEL = "bfcl-reference"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the endpoint answers. Times are in seconds; no ``models`` means that any model name will do.

    Raises ``ConfigError`` for times that are negative or endless.
    """

    mistakes: Mistakes
    seed: int
    latency: float
    stall_seconds: float
    models: tuple[str, ...]
    api_key: str | None

    def __post_init__(self) -> None:
        for name, seconds in (("latency", self.latency), ("stall_seconds", self.stall_seconds)):
            if not 0 <= seconds < float("inf"):
                raise ConfigError(f"{name}={seconds}: expected a number of seconds, 0 or more")


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. Header names are in lower case; ``path`` comes without its query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A JSON reply, to be sent after ``delay`` seconds."""

    status: int
    payload: Json
    headers: Mapping[str, str] = MappingProxyType({})
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """No reply at all: the connection is closed after ``seconds``."""

    seconds: float


class _RefusedError(Exception):
    """Carries the reply to a request that cannot be answered; never leaves this module."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class Endpoint:
    """An OpenAI-compatible chat endpoint that answers from the reference answers."""

    def __init__(self, dataset: Dataset, behaviour: Behaviour) -> None:
        self._questions = Questions(dataset)
        self._behaviour = behaviour
        self.stats = Stats()
        self._routes: Mapping[str, tuple[str, Callable[[Request], Reply | Stall]]] = {
            "/chat/completions": ("POST", self._chat),
            "/models": ("GET", self._models),
            "/health": ("GET", lambda request: Reply(200, {"status": "ok"})),
            "/stats": ("GET", lambda request: Reply(200, self.stats.snapshot())),
        }

    def respond(self, request: Request) -> Reply | Stall:
        """Answer any request; what cannot be answered gets an OpenAI-shaped error."""
        path = request.path.removeprefix("/v1")
        if path not in self._routes:
            return error_reply(404, "not_found", f"no such path: {request.path}")
        method, handler = self._routes[path]
        if request.method != method:
            message = f"{request.path} wants {method}, not {request.method}"
            return error_reply(405, "method_not_allowed", message, {"allow": method})
        return handler(request)

    def _models(self, request: Request) -> Reply:
        if not self._is_authorised(request):
            return _unauthorised()
        names = self._behaviour.models or (DEFAULT_MODEL,)
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "agentcompass-bfcl"} for name in names]
        return Reply(200, {"object": "list", "data": models})

    def _chat(self, request: Request) -> Reply | Stall:
        try:
            body = self._read(request)
            entry, mode = self._asked(request, body)
        except _RefusedError as refused:
            self.stats.served("refused")
            return refused.reply
        return self._answer(entry, mode, body["model"], len(request.body))

    def _read(self, request: Request) -> dict[str, Json]:
        try:
            body = json.loads(request.body)
        except (ValueError, RecursionError) as error:
            self.stats.arrived(None)
            raise _RefusedError(error_reply(400, "invalid_json", f"the body is not JSON: {error}")) from None
        self.stats.arrived(body if isinstance(body, dict) else None)
        if not self._is_authorised(request):
            raise _RefusedError(_unauthorised())
        if not isinstance(body, dict) or not isinstance(body.get("model"), str):
            raise _RefusedError(error_reply(400, "invalid_request", "the body has no model name"))
        if body.get("stream") or body.get("n") not in (None, 1):
            raise _RefusedError(error_reply(400, "unsupported", "only one answer at once, without streaming"))
        if self._behaviour.models and body["model"] not in self._behaviour.models:
            message = f"The model `{body['model']}` does not exist; known: {', '.join(self._behaviour.models)}"
            raise _RefusedError(error_reply(404, "model_not_found", message))
        return body

    def _asked(self, request: Request, body: Mapping[str, Json]) -> tuple[Entry, Mode]:
        tool_names, messages = _tool_names(body.get("tools") or []), body.get("messages")
        entry = self._questions.find(request.headers.get(ID_HEADER), messages, tool_names)
        if entry is None:
            raise _RefusedError(error_reply(404, "unknown_question", "no row of the data set asks this"))
        return entry, Mode.PROMPT if is_prompted(entry, messages, tool_names) else Mode.FC

    def _answer(self, entry: Entry, mode: Mode, model: str, characters: int) -> Reply | Stall:
        plan = self._behaviour
        if self.stats.asked(entry.id) == 1 and is_flaky(entry, plan.mistakes, plan.seed):
            self.stats.served("flaky_500")
            status = 500 if entry.row % 2 else 429
            return error_reply(status, "flaky", "try again", {"retry-after": "0"}, plan.latency)
        kind = planned_mistake(entry, plan.mistakes, plan.seed)
        self.stats.served(kind or "right")
        if kind is Kind.STALL:
            return Stall(plan.stall_seconds)
        if kind is Kind.HTTP_500:
            return error_reply(500, "planned_error", f"{entry.id} always fails", delay=plan.latency)
        payload = completion(answer(entry, kind, mode), entry.id, model, characters)
        return Reply(200, payload, delay=plan.latency)

    def _is_authorised(self, request: Request) -> bool:
        key = self._behaviour.api_key
        given = request.headers.get("authorization", "")
        return key is None or hmac.compare_digest(given.encode(), f"Bearer {key}".encode())


def error_reply(
    status: int,
    code: str,
    message: str,
    headers: Mapping[str, str] = MappingProxyType({}),
    delay: float = 0.0,
) -> Reply:
    """Make a reply with an error body in OpenAI's shape."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return Reply(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, headers, delay)


def _unauthorised() -> Reply:
    return error_reply(401, "invalid_api_key", "the API key is missing or wrong", {"www-authenticate": "Bearer"})


def _tool_names(tools: Json) -> list[str]:
    try:
        return [str(tool["function"]["name"]) for tool in tools]
    except (TypeError, LookupError):
        raise _RefusedError(error_reply(400, "invalid_tools", "tools is not a list of functions with names")) from None

"""The table of faults: what the endpoint does to the rows it strikes, and what these rows may then count as.

The rule of each kind is exact. ``calls`` is the outcome of a struck row that wants a call, ``abstains`` that of one
that wants none (irrelevance). A hit is allowed only where the reply is a right answer by the official rule all the
same: it came on a second try, or it says the right thing in an odd form, or it holds no call where none is wanted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.endpoint.answers import ABSTENTION
from agentcompass_bfcl.reference import UNPASSABLE
from agentcompass_bfcl.subsets import Rule, subset_named
from agentcompass_bfcl.tally import Outcome
from benchmarks.fault_endpoint import Exchange, Reaction
from benchmarks.fault_reactions import (
    amid_answers,
    cut_off,
    drips,
    hangs_up,
    html,
    legacy_call,
    never_ends,
    once,
    other_arguments,
    refuses,
    resets_mid_body,
    rewrites,
    rewrites_message,
    same_ids,
    sends,
    stalls,
    stalls_in_body,
    unpacks_to,
)

type Json = Any  # a parsed JSON value

REQUEST_SECONDS = 4.0
"""The limit of a request where some are kept waiting for good."""

_SHORT_LIMIT = ("--timeout", f"{REQUEST_SECONDS:g}")
_TEN_MB = 10 * 1024 * 1024
_REASONING = {"content": None, "reasoning_content": "Let me see which function fits."}
_HIT, _MISS, _ERROR = Outcome.HIT, Outcome.MISS, Outcome.ERROR


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that strikes one row in ``every``. ``error`` is the code of the rows that become errors.

    ``options`` are added to the command, ``waits`` is how long a struck row keeps its place in the queue, in seconds.
    """

    name: str
    title: str
    reaction: Reaction
    calls: Outcome = _ERROR
    abstains: Outcome = _ERROR
    error: str = "transport_invalid_body"
    every: int = 10
    truncated: bool = False
    malformed: bool = False
    options: tuple[str, ...] = ()
    waits: float = 2.0

    def struck(self, entries: Iterable[Entry]) -> dict[str, Fault]:
        """Choose the rows that are struck, by hash: of those that want a call and of the others one in ``every``.

        Of either kind at least one. The same draw gives the same rows every time.
        """
        kinds: dict[bool, list[str]] = {}
        for entry in entries:
            kinds.setdefault(wants_no_call(entry), []).append(entry.id)
        chosen = (sorted(ids, key=_place)[: -(-len(ids) // self.every)] for ids in kinds.values())
        return {sample_id: self for ids in chosen for sample_id in ids}

    def outcome(self, entry: Entry) -> Outcome:
        """Give the one outcome a struck row may have."""
        outcome = self.abstains if wants_no_call(entry) else self.calls
        return unstruck(entry) if outcome is _HIT else outcome


def _place(sample_id: str) -> bytes:
    return hashlib.sha256(sample_id.encode()).digest()


def wants_no_call(entry: Entry) -> bool:
    """Tell whether an abstention is right."""
    return subset_named(entry.subset).rule is Rule.IRRELEVANCE


def unstruck(entry: Entry) -> Outcome:
    """Give the one outcome of a row that is answered from the reference."""
    return _MISS if entry.id in UNPASSABLE else _HIT


def _cured(name: str, title: str, reaction: Reaction, **more: Any) -> Fault:
    return Fault(name, title, reaction, _HIT, _HIT, "", **more)


def _status(status: int, title: str, headers: Mapping[str, str] | None = None, name: str = "") -> Fault:
    return Fault(name or f"http_{status}", title, refuses(status, headers or {}), error=f"transport_http_{status}")


def _refusal(status: int) -> Fault:
    reaction = amid_answers(refuses(status))
    # One process: the first reply that each process gets decides whether its endpoint can be used.
    alone = ("--shards", "1")
    code = f"transport_http_{status}"
    return Fault(f"http_{status}_amid", f"HTTP {status} amid answers", reaction, error=code, options=alone)


def _body(name: str, title: str, content: bytes | str) -> Fault:
    content = content.encode() if isinstance(content, str) else content
    return Fault(name, title, sends(lambda exchange: content))


def _no_call(name: str, title: str, message: Mapping[str, Json], finish: str = "stop", **more: Any) -> Fault:
    """Make a reply without a call: a miss where one is wanted, and a right abstention elsewhere."""
    return Fault(name, title, rewrites_message(message, finish), _MISS, _HIT, "", **more)


def _lost_call(name: str, title: str, message: Mapping[str, Json], finish: str) -> Fault:
    """Make a reply that lacks what it announces: an error everywhere, since nobody knows what the model said."""
    return Fault(name, title, rewrites_message(message, finish), error="transport_invalid_reply")


def _late(name: str, title: str, reaction: Reaction) -> Fault:
    twice = 2 * REQUEST_SECONDS + 2
    return Fault(name, title, reaction, error="transport_timeout", every=20, options=_SHORT_LIMIT, waits=twice)


def _truncated_json(exchange: Exchange) -> bytes:
    return json.dumps(exchange.right).encode()[:-20]


def _padded(right: dict[str, Json]) -> Json:
    return {**right, "vendor": "x" * _TEN_MB}


_STATUSES = (
    _status(400, "HTTP 400"),
    _refusal(401),
    _refusal(404),
    _status(408, "HTTP 408"),
    _status(413, "HTTP 413"),
    _status(429, "HTTP 429 without Retry-After, every time"),
    _cured("http_429_once", "HTTP 429 without Retry-After, once", once(refuses(429))),
    _cured("http_429_wait", "HTTP 429 with Retry-After: 2, once", once(refuses(429, {"retry-after": "2"}))),
    _status(429, "HTTP 429 with Retry-After: 3600", {"retry-after": "3600"}, "http_429_hour"),
    _status(500, "HTTP 500, every time"),
    _cured("http_500_once", "HTTP 500, once", once(refuses(500))),
    Fault("http_502", "HTTP 502 with an HTML page, every time", html(502), error="transport_http_502"),
    _status(503, "HTTP 503, every time"),
    _cured("http_503_wait", "HTTP 503 with Retry-After: 1, once", once(refuses(503, {"retry-after": "1"}))),
)

_CONNECTIONS = (
    Fault("reset", "reset in the middle of a body, every time", resets_mid_body, error="transport_connection_lost"),
    _cured("reset_once", "reset in the middle of a body, once", once(resets_mid_body)),
    Fault("hang_up", "hangs up without a word, every time", hangs_up, error="transport_connection_lost"),
    _late("stall", "stall before the headers, every time", stalls),
    _cured(
        "stall_once",
        "stall before the headers, once",
        once(stalls),
        every=20,
        options=_SHORT_LIMIT,
        waits=REQUEST_SECONDS + 2,
    ),
    _late("stall_body", "stall in the middle of a body, every time", stalls_in_body),
    _late("drip", "drips for longer than the limit, every time", drips(40 * REQUEST_SECONDS, 400)),
    _cured("drip_in_time", "drips for a second", drips(1.0, 50)),
)

_BODIES = (
    _body("empty_body", "empty body", ""),
    Fault("html_body", "HTML page with status 200", html(200)),
    Fault("cut_json", "JSON cut off", sends(_truncated_json)),
    _body("no_json", "invalid JSON", b"{'choices': None}"),
    _body("other_shape", "JSON of another shape", '{"result": {"output": "fine"}}'),
    _body("text_completion", "JSON of the old completions API", '{"choices": [{"text": "fine", "index": 0}]}'),
    _body("error_in_200", "an error with status 200", '{"error": {"message": "overloaded", "code": 503}}'),
    _cured("content_type", "right answer as text/html", rewrites(lambda right: right, "text/html")),
    _body("no_choices", "`choices: []`", '{"id": "x", "object": "chat.completion", "choices": []}'),
    _body("null_message", "`message: null`", '{"choices": [{"index": 0, "message": null, "finish_reason": "stop"}]}'),
    _cured("ten_mb", "right answer with 10 MB beside it", rewrites(_padded), every=40),
    Fault("endless", "a body without an end", never_ends(200), error="transport_oversized_body"),
    Fault("endless_500", "HTTP 500 with a body without an end", never_ends(500), error="transport_oversized_body"),
    Fault("gigabyte", "a gigabyte in a packed body", unpacks_to(1024), error="transport_oversized_body"),
    _no_call("ten_mb_text", "10 MB of text", {"content": "x" * _TEN_MB}, every=60),
)

_MESSAGES = (
    _no_call("no_tool_calls", "`tool_calls: []` and no text", {"content": None, "tool_calls": []}),
    _no_call("null_tool_calls", "`tool_calls: null` and text", {"content": ABSTENTION, "tool_calls": None}),
    _lost_call("lost_calls", "`tool_calls: []`, finished by tool_calls", {"tool_calls": []}, "tool_calls"),
    # Where no call is wanted, one that nobody can decode is an abstention by the official rule, and counted as such.
    Fault("object_arguments", "arguments as an object", rewrites(other_arguments), _MISS, _HIT, "", malformed=True),
    Fault("legacy_call", "legacy `function_call`", rewrites(legacy_call), error="transport_invalid_reply"),
    _cured("same_ids", "duplicate call ids", rewrites(same_ids)),
    Fault("cut_off", "cut off at the token limit", rewrites(cut_off), _MISS, _HIT, "", truncated=True),
    _no_call("cut_reasoning", "cut off in its reasoning", _REASONING, "length", truncated=True),
    _no_call("reasoning", "reasoning and nothing else", _REASONING),
    _lost_call("content_filter", "withheld by a content filter", {"content": None}, "content_filter"),
)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A fault of the whole endpoint. ``says`` is what the command has to say when it ends; without it the run goes on.

    ``reaction`` meets every request. With ``outage`` the endpoint goes away half-way, for so many seconds; 0 means for
    good. One that ``recovers`` is well again when the same command comes with ``--reuse``, and every row is right then.
    """

    name: str
    title: str
    says: str = ""
    reaction: Reaction | None = None
    outage: float | None = None
    is_up: bool = True
    has_key: bool = True
    host: str = "127.0.0.1"
    recovers: bool = True
    options: tuple[str, ...] = ()


_UNUSABLE = "cannot be used: "

BREAKDOWNS: tuple[Breakdown, ...] = (
    Breakdown("http_401", "HTTP 401, to everything", f"{_UNUSABLE}HTTP 401", refuses(401)),
    Breakdown("http_404", "HTTP 404, to everything", f"{_UNUSABLE}HTTP 404", refuses(404)),
    Breakdown("no_key", "API key missing", f"{_UNUSABLE}HTTP 401, sent without an API key", has_key=False),
    Breakdown("refused", "connection refused", f"{_UNUSABLE}ConnectError", is_up=False),
    Breakdown("no_name", "no such name (DNS)", f"{_UNUSABLE}ConnectError", host="endpoint.invalid", recovers=False),
    Breakdown("restart", "endpoint restarts half-way, in 1.5 s", outage=1.5, options=("--retries", "3")),
    Breakdown("gone", "endpoint gone half-way", f"{_UNUSABLE}ConnectError", outage=0.0),
)
"""The faults that strike the endpoint as a whole."""

FAULTS: tuple[Fault, ...] = (*_STATUSES, *_CONNECTIONS, *_BODIES, *_MESSAGES)
"""The faults that strike some rows of a run that goes on."""

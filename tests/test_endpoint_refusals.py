from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import httpx
import pytest

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint import Mistakes, RunningEndpoint, running_endpoint
from agentcompass_bfcl.official import Official
from endpoint_client import ask, body_of, client, connect, error_code, raw_exchange


@pytest.fixture(scope="module")
def perfect(dataset: Dataset) -> Iterator[RunningEndpoint]:
    with running_endpoint(dataset) as running:
        yield running


@pytest.mark.parametrize("path", ["/models", "/health", "/stats"])
def test_the_small_paths_answer_with_and_without_the_version(path: str, perfect: RunningEndpoint) -> None:
    with client(perfect) as http:
        replies = [http.get(path), http.get(perfect.base_url.removesuffix("/v1") + f"{path}?x=1")]
        assert [reply.status_code for reply in replies] == [200, 200]


def test_named_models_are_listed_and_others_do_not_exist(dataset: Dataset, official: Official) -> None:
    entry = dataset.rows["multiple"][0]
    with running_endpoint(dataset, models=("a", "b")) as running, client(running) as http:
        assert [model["id"] for model in http.get("/models").json()["data"]] == ["a", "b"]
        assert ask(http, entry, official, model="b").json()["model"] == "b"
        unknown = ask(http, entry, official, model="c")
    assert (unknown.status_code, error_code(unknown)) == (404, "model_not_found")


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", "secret", "Bearer s\u00e9cret"])
def test_a_missing_or_wrong_key_is_refused(authorization: str | None, dataset: Dataset, official: Official) -> None:
    headers = httpx.Headers({} if authorization is None else {"Authorization": authorization}, encoding="latin-1")
    with running_endpoint(dataset, api_key="secret") as running, client(running) as http:
        for reply in (
            http.post("/chat/completions", json=body_of(dataset.rows["multiple"][0], official), headers=headers),
            http.get("/models", headers=headers),
        ):
            assert (reply.status_code, error_code(reply)) == (401, "invalid_api_key")
        right = http.get("/models", headers={"Authorization": "Bearer secret"})
        assert right.status_code == 200


TOOL = {"type": "function", "function": {"name": "f"}}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "What is asked nowhere?"}], "tools": [TOOL]}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b'{"model": ', 400, "invalid_json"),
        (b"\xff\xfe\xfd", 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b"[]", 400, "invalid_request"),
        (b'{"messages": []}', 400, "invalid_request"),
        (json.dumps(ASKED | {"stream": True}).encode(), 400, "unsupported"),
        (json.dumps(ASKED | {"n": 2}).encode(), 400, "unsupported"),
        (json.dumps(ASKED | {"tools": [{}]}).encode(), 400, "invalid_tools"),
        (json.dumps(ASKED | {"tools": 1}).encode(), 400, "invalid_tools"),
        (json.dumps(ASKED).encode(), 404, "unknown_question"),
        (json.dumps(ASKED | {"messages": "text"}).encode(), 404, "unknown_question"),
        (json.dumps(ASKED | {"messages": [1, {"role": []}]}).encode(), 404, "unknown_question"),
    ],
)
def test_a_body_that_asks_nothing_known_gets_an_error_in_the_shape_of_the_api(
    body: bytes, status: int, code: str, perfect: RunningEndpoint
) -> None:
    with client(perfect) as http:
        reply = http.post("/chat/completions", content=body)
        assert (reply.status_code, error_code(reply)) == (status, code)
        assert http.get("/health").status_code == 200


def test_an_unknown_id_is_refused_and_a_row_without_its_tools_is_answered_by_text(
    perfect: RunningEndpoint, dataset: Dataset, official: Official
) -> None:
    entry = dataset.rows["multiple"][0]
    with client(perfect) as http:
        headers = {"X-Client-Request-Id": "bfcl-simple_python_400"}
        unknown = http.post("/chat/completions", json=body_of(entry, official), headers=headers)
        bare = ask(http, entry, official, tools=[])
    assert (unknown.status_code, error_code(unknown)) == (404, "unknown_question")
    message = bare.json()["choices"][0]["message"]
    assert "tool_calls" not in message
    assert message["content"].startswith(f"[{entry.functions()[0]['name']}(")


def test_a_row_that_documents_no_function_needs_no_tools(
    perfect: RunningEndpoint, dataset: Dataset, official: Official
) -> None:
    entry = dataset.entry("live_irrelevance_120-9-0")
    assert "tools" not in body_of(entry, official)
    with client(perfect) as http:
        assert ask(http, entry, official).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/models", 405, "method_not_allowed"),
        ("POST", "/health", 405, "method_not_allowed"),
        ("GET", "/completions", 404, "not_found"),
        ("GET", "/../stats/..", 404, "not_found"),
    ],
)
def test_a_wrong_method_or_path_is_refused(
    method: str, path: str, status: int, code: str, perfect: RunningEndpoint
) -> None:
    with client(perfect) as http:
        reply = http.request(method, path)
    assert (reply.status_code, error_code(reply)) == (status, code)


POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("sent", "status_line"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n", b"HTTP/1.1 400 "),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /health HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),  # no Host
        (POST + b"Content-Length: -1\r\n\r\n", b"HTTP/1.1 400 "),
        (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", b"HTTP/1.1 400 "),
        (POST + b"X-Huge: " + b"a" * 200_000 + b"\r\n\r\n", b"HTTP/1.1 431 "),
        (POST + b"\r\n", b"HTTP/1.1 411 "),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"HTTP/1.1 411 "),
        (POST + b"Content-Length: 16777217\r\n\r\n" + b" " * 16_000_000, b"HTTP/1.1 413 "),
        (b"HEAD /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"HTTP/1.1 405 "),
        (b"GET /health HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 "),
    ],
)
def test_hostile_and_odd_requests_get_a_reply_and_never_end_the_server(
    sent: bytes, status_line: bytes, perfect: RunningEndpoint
) -> None:
    began = time.monotonic()
    assert raw_exchange(perfect, sent).startswith(status_line)
    assert time.monotonic() - began < 4  # it also hangs up by itself, rather than waiting for the client to do so
    with client(perfect) as http:
        assert http.get("/health").status_code == 200


def test_a_client_reads_the_refusal_of_a_body_that_is_too_large(perfect: RunningEndpoint) -> None:
    with client(perfect) as http:
        reply = http.post("/chat/completions", content=b" " * (16 * 1024 * 1024 + 1))
    assert (reply.status_code, error_code(reply)) == (413, "too_large")


def test_a_client_that_leaves_in_the_middle_of_a_request_does_no_harm(perfect: RunningEndpoint) -> None:
    for sent in (b"", b"GE", POST, POST + b"Content-Length: 10\r\n\r\n{"):
        with connect(perfect) as connection:
            connection.sendall(sent)
    with client(perfect) as http:
        assert http.get("/health").status_code == 200


def test_requests_sent_ahead_are_answered_in_order_on_one_connection(dataset: Dataset, official: Official) -> None:
    body = json.dumps(body_of(dataset.rows["multiple"][0], official)).encode()
    slow = POST + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    first = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with running_endpoint(dataset, latency=0.1) as running:
        received = raw_exchange(running, first + slow + last)
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"404", b"200", b"200"]
    assert received.endswith(b'{"status": "ok"}')


def test_a_client_that_floods_while_it_waits_is_cut_off(dataset: Dataset, official: Official) -> None:
    body = json.dumps(body_of(dataset.rows["multiple"][0], official)).encode()
    sent = POST + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with running_endpoint(dataset, mistakes=Mistakes(stall=100)) as running, connect(running) as connection:
        connection.sendall(sent)
        while not running.stats()["waiting"]:
            time.sleep(0.01)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            connection.sendall(b"x" * 64 * 1024 * 1024)


def test_expect_100_is_honoured(perfect: RunningEndpoint) -> None:
    body = json.dumps(ASKED).encode()
    head = POST + f"Expect: 100-continue\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with connect(perfect) as connection:
        connection.sendall(head)
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")

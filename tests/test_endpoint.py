from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint import Mistakes, RunningEndpoint, planned_mistake, running_endpoint
from agentcompass_bfcl.endpoint.questions import Questions
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.reference import UNPASSABLE, tool_name
from agentcompass_bfcl.response import response_from_message
from agentcompass_bfcl.score import Hit, Miss, score_sample
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, SUBSETS
from agentcompass_bfcl.wheel import Wheel
from endpoint_client import ask, body_of, client, connect, error_code


@pytest.fixture(scope="module")
def perfect(dataset: Dataset) -> Iterator[RunningEndpoint]:
    with running_endpoint(dataset) as running:
        yield running


def test_messages_and_tool_names_find_every_row_or_one_that_looks_the_same(dataset: Dataset) -> None:
    questions, found_itself = Questions(dataset), 0
    for entry in dataset.by_id.values():
        names = [tool_name(function["name"]) for function in entry.functions()]
        found = questions.find(None, entry.messages(), names)
        assert found is not None
        assert found.messages() == entry.messages()
        assert [tool_name(function["name"]) for function in found.functions()] == names
        found_itself += found.id == entry.id
    assert found_itself == len(dataset.by_id) - 24  # 22 pairs and a triple look the same


def test_the_id_header_wins_over_the_messages(perfect: RunningEndpoint, dataset: Dataset, official: Official) -> None:
    shown, meant = dataset.rows["simple_python"][0], dataset.rows["simple_python"][1]
    with client(perfect) as http:
        headers = {"x-CLIENT-request-ID": f"bfcl-{meant.id}"}
        reply = http.post("/chat/completions", json=body_of(shown, official), headers=headers)
    assert reply.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "math_factorial"


def test_a_foreign_request_id_is_ignored_and_content_may_come_in_parts(
    perfect: RunningEndpoint, dataset: Dataset, official: Official
) -> None:
    entry = dataset.rows["multiple"][0]
    body = body_of(entry, official)
    body["messages"] = [
        {"role": message["role"], "content": [{"type": "text", "text": message["content"]}]}
        for message in body["messages"]
    ]
    with client(perfect) as http:
        reply = http.post("/chat/completions", json=body, headers={"X-Client-Request-Id": "trace-1"})
    assert reply.json()["id"] == f"chatcmpl-{entry.id}"


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_a_perfect_endpoint_scores_a_hit_on_every_passable_row(
    subset: str, perfect: RunningEndpoint, dataset: Dataset, official: Official
) -> None:
    with client(perfect) as http:
        for entry in dataset.rows[subset][::17]:
            reply = ask(http, entry, official)
            assert reply.status_code == 200, reply.text
            message = reply.json()["choices"][0]["message"]
            verdict = score_sample(entry, response_from_message(message), official)
            assert isinstance(verdict, Miss if entry.id in UNPASSABLE else Hit), (entry.id, verdict)


def test_a_call_and_an_abstention_have_the_shape_of_the_chat_completions_api(
    perfect: RunningEndpoint, dataset: Dataset, official: Official
) -> None:
    with client(perfect) as http:
        called = ask(http, dataset.rows["parallel"][0], official)
        abstained = ask(http, dataset.rows["irrelevance"][0], official)
    assert called.headers["content-type"] == "application/json"
    assert called.json()["object"] == "chat.completion"
    assert called.json()["model"] == "any-name"
    choice = called.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert [(call["id"], call["type"]) for call in choice["message"]["tool_calls"]] == [
        ("call_0", "function"),
        ("call_1", "function"),
    ]
    assert all(isinstance(call["function"]["arguments"], str) for call in choice["message"]["tool_calls"])
    choice = abstained.json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"]
    assert "tool_calls" not in choice["message"]
    for usage in (called.json()["usage"], abstained.json()["usage"]):
        assert 0 < usage["completion_tokens"] < usage["prompt_tokens"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_concurrent_clients_get_the_planned_answer_of_each_row(dataset: Dataset, official: Official) -> None:
    mistakes = Mistakes(wrong_value=10, wrong_function=10, missing_call=10, extra_call=10, malformed_arguments=10)
    rows = [entry for subset in SUBSETS for entry in dataset.rows[subset.name][::16]]
    limits = httpx.Limits(max_connections=32)
    with running_endpoint(dataset, mistakes=mistakes, seed=3) as running:
        async with httpx.AsyncClient(base_url=running.base_url, trust_env=False, limits=limits, timeout=60) as http:
            headers = [{"X-Client-Request-Id": f"bfcl-{entry.id}"} for entry in rows]
            replies = await asyncio.gather(
                *(
                    http.post("/chat/completions", json=body_of(entry, official), headers=header)
                    for entry, header in zip(rows, headers, strict=True)
                )
            )
        served = running.stats()["served"]
    plan = [planned_mistake(entry, mistakes, 3) for entry in rows]
    assert served == Counter(kind or "right" for kind in plan)
    for entry, kind, reply in zip(rows, plan, replies, strict=True):
        verdict = score_sample(entry, response_from_message(reply.json()["choices"][0]["message"]), official)
        is_right = kind is None and entry.id not in UNPASSABLE
        assert isinstance(verdict, Hit if is_right else Miss), (entry.id, kind, verdict)


def test_a_planned_500_is_permanent(dataset: Dataset, official: Official) -> None:
    with running_endpoint(dataset, mistakes=Mistakes(http_500=100)) as running, client(running) as http:
        replies = [ask(http, dataset.rows["irrelevance"][0], official) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [500, 500, 500]
    assert error_code(replies[0]) == "planned_error"


def test_a_flaky_row_fails_once_and_is_then_answered_right(dataset: Dataset, official: Official) -> None:
    rows = dataset.rows["simple_python"][:2]
    with running_endpoint(dataset, mistakes=Mistakes(flaky_500=100)) as running, client(running) as http:
        first = [ask(http, entry, official) for entry in rows]
        second = [ask(http, entry, official) for entry in rows]
        stats = running.stats()
    assert [(reply.status_code, reply.headers["retry-after"]) for reply in first] == [(429, "0"), (500, "0")]
    for entry, reply in zip(rows, second, strict=True):
        response = response_from_message(reply.json()["choices"][0]["message"])
        assert score_sample(entry, response, official) == Hit()
    assert stats["served"] == {"flaky_500": 2, "right": 2}
    assert stats["rows"] == {rows[0].id: 2, rows[1].id: 2}


def test_a_stalled_request_ends_without_an_answer_when_its_time_is_over(dataset: Dataset, official: Official) -> None:
    stalling = running_endpoint(dataset, mistakes=Mistakes(stall=100), stall_seconds=0.3)
    with stalling as running, client(running) as http:
        began = time.monotonic()
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            ask(http, dataset.rows["multiple"][0], official)
        assert time.monotonic() - began >= 0.3


def test_a_stalled_client_may_hang_up_and_the_server_forgets_it(dataset: Dataset, official: Official) -> None:
    with running_endpoint(dataset, mistakes=Mistakes(stall=100)) as running:
        with client(running, timeout=0.3) as http, pytest.raises(httpx.ReadTimeout):
            ask(http, dataset.rows["multiple"][0], official)
        deadline = time.monotonic() + 10
        while running.stats()["waiting"] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert running.stats()["waiting"] == 0
        assert running.stats()["most_waiting"] == 1


def test_the_server_stops_at_once_though_connections_stall(dataset: Dataset) -> None:
    entry = dataset.rows["irrelevance"][0]
    body = json.dumps({"model": "m", "messages": entry.messages(), "tools": [{"function": {"name": "f"}}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Client-Request-Id: bfcl-{entry.id}\r\n"
    with running_endpoint(dataset, mistakes=Mistakes(stall=100)) as running:
        connection = connect(running)
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while not running.stats()["waiting"]:
            time.sleep(0.01)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    with connection:
        assert connection.recv(1) == b""


def test_latency_delays_every_answer(dataset: Dataset, official: Official) -> None:
    with running_endpoint(dataset, latency=0.2) as running, client(running) as http:
        began = time.monotonic()
        assert ask(http, dataset.rows["multiple"][0], official).status_code == 200
        assert time.monotonic() - began >= 0.2
        assert running.stats()["most_waiting"] == 1


def test_stats_show_what_was_really_sent(dataset: Dataset, official: Official) -> None:
    entry = dataset.rows["live_simple"][0]
    with running_endpoint(dataset) as running, client(running) as http:
        ask(http, entry, official, temperature=0.5, seed=42)
        shown = http.get(running.base_url.removesuffix("/v1") + "/stats").json()
        assert shown == running.stats()
    assert shown["requests"] == 1
    assert shown["rows"] == {entry.id: 1}
    sent = body_of(entry, official)
    assert shown["last_request"] == {"model": "any-name", "tools": sent["tools"], "temperature": 0.5, "seed": 42}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org", ""])  # noqa: S104 - it must be refused
def test_only_loopback_addresses_are_listened_on(host: str, dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match=r"use 127\.0\.0\.1"), running_endpoint(dataset, host=host):
        pass


def test_localhost_means_127_0_0_1(dataset: Dataset) -> None:
    with running_endpoint(dataset, host="localhost") as running, client(running) as http:
        assert running.base_url.startswith("http://127.0.0.1:")
        assert http.get("/health").status_code == 200


def test_a_port_in_use_or_out_of_range_is_named(perfect: RunningEndpoint, dataset: Dataset) -> None:
    for port in (httpx.URL(perfect.base_url).port or 0, 65536):
        with pytest.raises(ConfigError, match=f"port {port} "), running_endpoint(dataset, port=port):
            pass


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_impossible_times_are_refused(seconds: float, dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match=f"latency={seconds}"), running_endpoint(dataset, latency=seconds):
        pass
    with pytest.raises(ConfigError, match=f"stall_seconds={seconds}"), running_endpoint(dataset, stall_seconds=seconds):
        pass


SERVER = """
import sys
from pathlib import Path
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.endpoint import Mistakes, run_server
from agentcompass_bfcl.wheel import open_wheel
dataset = read_dataset(open_wheel(Path(sys.argv[1])))
run_server(dataset, Mistakes(stall=100), 0, "127.0.0.1", 0, 0.0, lambda url: print(url, flush=True))
print("stopped", flush=True)
"""


def test_the_blocking_server_says_where_it_listens_and_stops_quietly_when_interrupted(
    wheel: Wheel, dataset: Dataset, official: Official
) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", SERVER, str(wheel.path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with httpx.Client(base_url=url, trust_env=False, timeout=0.3) as http:
            assert http.get("/health", timeout=20).json() == {"status": "ok"}
            with pytest.raises(httpx.ReadTimeout):
                ask(http, dataset.rows["multiple"][0], official)
            process.send_signal(signal.SIGINT)
            try:
                output, errors = process.communicate(timeout=20)
            finally:
                process.kill()  # or leaving the block would wait for a server that did not stop
    assert (output, errors, process.returncode) == ("stopped\n", "", 0)

from __future__ import annotations

import asyncio
import gc
import json
import re
import socket
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentcompass_bfcl.chat_client import ChatClient, Reply, RequestError, RetryPolicy
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint import Mistakes, running_endpoint
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.official import Official
from endpoint_client import body_of
from fault_server import (
    ANSWER,
    FaultServer,
    Reaction,
    answers,
    drips,
    fault_server,
    hangs_up,
    never_ends,
    resets_mid_body,
    says,
    stalls,
)

KEY = "key-that-must-stay-secret-0123456789"
QUICK = RetryPolicy(max_retries=2, budget_seconds=30.0, first_delay_seconds=0.01, longest_delay_seconds=0.3)
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@asynccontextmanager
async def chatting(
    base_url: str, *, policy: RetryPolicy = QUICK, seconds: float = 20.0, key: str = KEY
) -> AsyncIterator[ChatClient]:
    client = ChatClient(base_url=base_url, api_key=key, policy=policy, timeout_seconds=seconds)
    try:
        yield client
    finally:
        await client.close()


async def ask(client: ChatClient, **extra: Any) -> Reply | RequestError:
    """Ask and give back whatever came of it; anything but a reply or ``RequestError`` fails the test."""
    try:
        return await client.complete({**REQUEST, **extra})
    except RequestError as error:
        return error


async def outcome(*reactions: Reaction, **options: Any) -> tuple[Reply | RequestError, FaultServer]:
    async with fault_server(*reactions) as server, chatting(server.base_url, **options) as client:
        return await ask(client), server


def failed(result: Reply | RequestError, code: str) -> RequestError:
    assert isinstance(result, RequestError), result
    assert result.failure.code == code
    assert result.failure.message == str(result)
    assert "\n" not in str(result)
    return result


async def test_sampling_parameters_extra_body_and_extra_headers_reach_the_wire() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    async with fault_server(answers()) as server, chatting(server.base_url) as client:
        reply = await client.complete(
            {
                **REQUEST,
                "tools": tools,
                "temperature": 0.25,
                "top_p": 0.5,
                "max_tokens": 17,
                "seed": 42,
                "extra_body": {"top_k": 3, "chat_template_kwargs": {"enable_thinking": False}},
                "extra_headers": {"X-Client-Request-Id": "bfcl-simple_python_0"},
            }
        )
    (seen,) = server.seen
    assert seen.body == {
        **REQUEST,
        "tools": tools,
        "temperature": 0.25,
        "top_p": 0.5,
        "max_tokens": 17,
        "seed": 42,
        "top_k": 3,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert seen.headers["x-client-request-id"] == "bfcl-simple_python_0"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert reply.message == ANSWER["choices"][0]["message"]
    assert (reply.finish_reason, reply.usage) == ("stop", ANSWER["usage"])
    assert reply.latency_ms > 0


async def test_nothing_is_sent_that_was_not_asked_for() -> None:
    _, server = await outcome(answers())
    assert server.seen[0].body == REQUEST


async def test_the_message_arrives_as_it_was_sent_unknown_fields_and_odd_arguments_included() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [{"id": 1, "function": {"name": "f", "arguments": {"an": "object"}}}],
        "vendor": [None, 1.5],
    }
    reply, _ = await outcome(answers({"choices": [{"message": message, "finish_reason": 7}], "usage": "none"}))
    assert isinstance(reply, Reply)
    assert reply.message == message
    assert (reply.finish_reason, reply.usage) == (None, None)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
async def test_a_status_that_may_pass_is_tried_again(status: int) -> None:
    reply, server = await outcome(says(status, '{"error": {"message": "busy"}}'), answers())
    assert isinstance(reply, Reply)
    assert len(server.seen) == 2
    assert server.seen[0].body == server.seen[1].body


@pytest.mark.parametrize("status", [400, 405, 413, 415, 422, 501])
async def test_a_status_that_will_not_pass_is_not_tried_again_and_concerns_one_sample(status: int) -> None:
    result, server = await outcome(says(status, '{"error": {"message": "no such thing"}}'), answers())
    error = failed(result, f"http_{status}")
    assert not error.concerns_all
    assert "no such thing" in str(error)
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [401, 402, 403, 404])
async def test_a_refusal_that_every_sample_would_meet_concerns_all(status: int) -> None:
    result, server = await outcome(says(status, '{"error": {"message": "not you"}}'), answers())
    assert failed(result, f"http_{status}").concerns_all
    assert len(server.seen) == 1


async def test_a_refused_connection_concerns_all() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    async with chatting(url) as client:
        assert failed(await ask(client), "connection_refused").concerns_all


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000/v1",
        "localhost",
        "ftp://127.0.0.1/v1",
        "http://",
        "http:///v1",
        "http://[::1/v1",
        "http://h:x/v1",
    ],
)
def test_an_address_that_is_none_is_refused_before_any_request(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ChatClient(base_url=url, api_key=KEY, policy=QUICK, timeout_seconds=1.0)
    assert "base_url" in str(caught.value)
    assert repr(url) in str(caught.value)


async def test_retry_after_is_honoured() -> None:
    reply, server = await outcome(says(429, "{}", retry_after="0.2"), answers())
    assert isinstance(reply, Reply)
    assert 0.2 <= server.pauses()[0] < 2


async def test_retry_after_zero_means_at_once() -> None:
    slow = RetryPolicy(max_retries=1, first_delay_seconds=5.0)
    reply, server = await outcome(says(503, "{}", retry_after="0"), answers(), policy=slow)
    assert isinstance(reply, Reply)
    assert server.pauses()[0] < 2


async def test_a_wait_that_the_server_asks_for_is_kept_in_full_though_the_own_backoff_is_shorter() -> None:
    asked = 3 * QUICK.longest_delay_seconds
    reply, server = await outcome(says(429, "{}", retry_after=str(asked)), answers())
    assert isinstance(reply, Reply)
    assert asked <= server.pauses()[0] < asked + 1.5


@pytest.mark.parametrize("header", ["inf", "nan", "-5", "1e9999", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", ""])
async def test_a_retry_after_that_says_no_time_leaves_the_client_to_its_own_backoff(header: str) -> None:
    reply, server = await outcome(says(429, "{}", retry_after=header), answers())
    assert isinstance(reply, Reply)
    assert server.pauses()[0] < QUICK.longest_delay_seconds + 1.5


async def test_a_refusal_says_how_long_the_server_wants_to_be_left_alone() -> None:
    policy = RetryPolicy(max_retries=3, budget_seconds=60.0)
    started = asyncio.get_running_loop().time()
    result, server = await outcome(says(429, '{"error": {"message": "slow"}}', retry_after="3600"), policy=policy)
    assert str(failed(result, "http_429")) == "HTTP 429, to be tried again after 3600 s: slow"
    assert len(server.seen) == 1
    assert asyncio.get_running_loop().time() - started < 5


async def test_retries_are_bounded_in_number() -> None:
    result, server = await outcome(says(500, "{}"))
    assert not failed(result, "http_500").concerns_all
    assert len(server.seen) == QUICK.max_retries + 1


async def test_no_retries_means_one_request() -> None:
    result, server = await outcome(says(500, "{}"), answers(), policy=RetryPolicy(max_retries=0))
    failed(result, "http_500")
    assert len(server.seen) == 1


async def test_no_retry_begins_once_the_budget_is_spent() -> None:
    policy = RetryPolicy(max_retries=1000, budget_seconds=0.5, first_delay_seconds=0.05, longest_delay_seconds=0.1)
    result, server = await outcome(says(500, "{}"), policy=policy)
    failed(result, "http_500")
    assert len(server.seen) > 2
    assert sum(server.pauses()) < 0.6


async def test_a_wait_that_would_outlast_the_budget_is_not_begun() -> None:
    policy = RetryPolicy(max_retries=3, budget_seconds=0.5, longest_delay_seconds=20.0)
    started = asyncio.get_running_loop().time()
    result, server = await outcome(says(429, "{}", retry_after="10"), answers(), policy=policy)
    failed(result, "http_429")
    assert len(server.seen) == 1
    assert asyncio.get_running_loop().time() - started < 5


async def test_a_dripping_body_ends_at_the_limit_of_the_request() -> None:
    started = asyncio.get_running_loop().time()
    result, _ = await outcome(drips(0.05), policy=RetryPolicy(max_retries=0), seconds=0.5)
    assert "0.5 s" in str(failed(result, "timeout"))
    assert asyncio.get_running_loop().time() - started < 4


async def test_a_stall_ends_at_the_limit_of_the_request_and_is_tried_again() -> None:
    reply, server = await outcome(stalls, answers(), seconds=0.3)
    assert isinstance(reply, Reply)
    assert len(server.seen) == 2
    result, _ = await outcome(stalls, policy=RetryPolicy(max_retries=0), seconds=0.3)
    assert not failed(result, "timeout").concerns_all


async def test_a_timeout_in_the_request_wins_over_the_clients() -> None:
    async with fault_server(stalls) as server, chatting(server.base_url, policy=RetryPolicy(max_retries=0)) as client:
        error = failed(await ask(client, timeout=0.25), "timeout")
    assert "0.25 s" in str(error)
    assert "timeout" not in server.seen[0].body


@pytest.mark.parametrize("fault", [resets_mid_body, hangs_up], ids=["reset mid-body", "hung up"])
async def test_a_lost_connection_is_an_error_that_may_pass(fault: Reaction) -> None:
    result, server = await outcome(fault)
    error = failed(result, "connection_lost")
    assert not error.concerns_all
    assert re.fullmatch(r"\w+: \w.*", str(error))
    assert len(server.seen) == QUICK.max_retries + 1
    reply, _ = await outcome(fault, answers())
    assert isinstance(reply, Reply)


NO_COMPLETIONS = {
    "html": "<html><body>502 Bad Gateway</body></html>",
    "empty": "",
    "blanks": "  \n",
    "cut off": json.dumps(ANSWER)[:40],
    "two values": '{"choices": []} {}',
    "not utf-8": b"\xff\xfe\x00",
    "null": "null",
    "a list": "[]",
    "a list of completions": json.dumps([ANSWER]),
    "text": '"fine"',
    "no choices": "{}",
    "choices null": '{"choices": null}',
    "choices empty": '{"choices": []}',
    "choices an object": json.dumps({"choices": {"0": ANSWER["choices"][0]}}),
    "choice null": '{"choices": [null]}',
    "choice text": '{"choices": ["message"]}',
    "message missing": '{"choices": [{"finish_reason": "stop"}]}',
    "message null": '{"choices": [{"message": null}]}',
    "message text": '{"choices": [{"message": "fine"}]}',
    "message a list": '{"choices": [{"message": []}]}',
    "an error with status 200": '{"error": {"message": "overloaded", "code": 503}}',
    "message empty": '{"choices": [{"message": {}, "finish_reason": "stop"}]}',
    "message of a role alone": '{"choices": [{"message": {"role": "assistant"}}]}',
    "an error beside an answer": json.dumps({**ANSWER, "error": {"code": 502}}),
    "an error in the choice": '{"choices": [{"message": {"content": null}, "error": {"code": 502}}]}',
    "finished by an error": '{"choices": [{"message": {"content": null}, "finish_reason": "error"}]}',
    "nested too deep": "[" * 100_000,
}


@pytest.mark.parametrize("body", NO_COMPLETIONS.values(), ids=NO_COMPLETIONS.keys())
async def test_a_body_that_is_no_completion_is_an_error_and_never_a_reply(body: str | bytes) -> None:
    result, server = await outcome(says(200, body), answers())
    error = failed(result, "invalid_body")
    assert not error.concerns_all
    assert str(error).endswith("; it is empty") == (not body.strip())
    assert len(str(error)) <= 500
    assert len(server.seen) == 1


async def test_a_body_that_no_file_of_a_run_could_hold_is_an_error_and_one_of_ten_megabytes_is_a_reply() -> None:
    def body(size: int) -> str:
        return json.dumps({"choices": [{"message": {"content": "x" * size}, "finish_reason": "stop"}]})

    result, server = await outcome(says(200, body(13_000_000)), answers())
    assert str(failed(result, "oversized_body")).startswith("the body has more than 12582912 bytes")
    assert len(server.seen) == 1
    result, _ = await outcome(says(200, body(10_000_000)))
    assert isinstance(result, Reply)


@pytest.mark.parametrize("status", [200, 500])
async def test_a_body_without_an_end_is_read_no_further_than_a_reply_can_go(status: int) -> None:
    result, server = await outcome(never_ends(status), answers())
    failed(result, "oversized_body")
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [200, 500])
async def test_a_body_that_unpacks_to_a_gigabyte_is_let_go_after_a_small_part_of_it(status: int) -> None:
    bomb = zlib.compressobj(9, wbits=31)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(1024)) + bomb.flush()
    tracemalloc.start()
    result, _ = await outcome(says(status, packed, content_encoding="gzip"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    failed(result, "oversized_body")
    assert peak < 1 << 28  # a packed part of 64 KiB unpacks to 64 MiB, and is copied


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_packed_reply_is_unpacked_and_its_headers_may_be_in_any_alphabet(encoding: str) -> None:
    packing = zlib.compressobj(wbits=31 if encoding == "gzip" else 15)
    packed = packing.compress(json.dumps(ANSWER).encode()) + packing.flush()
    result, _ = await outcome(says(200, packed, content_encoding=encoding, x_served_by="größter Knoten"))
    assert isinstance(result, Reply)
    assert result.message == ANSWER["choices"][0]["message"]


async def test_half_a_surrogate_pair_becomes_a_character_that_a_file_can_hold() -> None:
    body = r'{"choices": [{"message": {"content": "a\ud83d\ude00b\ud800c"}}]}'
    result, _ = await outcome(says(200, body))
    assert isinstance(result, Reply)
    assert result.message["content"] == "a\U0001f600b\ufffdc"


@pytest.mark.parametrize("status", [204, 301, 304])
async def test_a_status_without_a_body_is_an_error_and_never_a_reply(status: int) -> None:
    result, _ = await outcome(says(status, ""))
    assert isinstance(result, RequestError)


ECHOES = {
    "refusal": says(401, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})),
    "plain text refusal": says(403, f"you sent {KEY}, which is wrong", "text/plain"),
    "cut at the message's end": says(400, "x" * 470 + KEY + "y" * 100, "text/plain"),
    "server fault": says(500, json.dumps({"error": {"message": f"token {KEY} expired"}})),
    "html with status 200": says(200, f"<html>Bearer {KEY}</html>", "text/html"),
    "cut at the body's start": says(200, " " * 20 + "z" * 45 + KEY, "text/html"),
    "a redirect to nowhere": says(302, "", location=f"ftp://{KEY}/"),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES.keys())
async def test_the_api_key_is_in_no_error_even_if_the_server_repeats_it(echo: Reaction) -> None:
    result, server = await outcome(echo, policy=RetryPolicy(max_retries=0))
    assert isinstance(result, RequestError)
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    shown = f"{result} {result!r} {result.failure} {result.args} {result.__cause__}"
    assert all(KEY[start : start + 12] not in shown for start in range(len(KEY) - 12))


async def test_the_api_key_is_not_shown_with_the_client() -> None:
    async with chatting("http://127.0.0.1:9/v1") as client:
        assert KEY not in repr(client)


async def test_without_a_key_a_request_goes_out_all_the_same() -> None:
    reply, _ = await outcome(answers(), key="")
    assert isinstance(reply, Reply)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_request_without_a_key_says_that_it_had_none(status: int) -> None:
    refusal = says(status, '{"error": {"message": "no"}}')
    result, _ = await outcome(refusal, key="")
    assert str(failed(result, f"http_{status}")) == f"HTTP {status}, sent without an API key: no"
    result, _ = await outcome(refusal)
    assert str(failed(result, f"http_{status}")) == f"HTTP {status}: no"


async def test_cancelling_is_neither_a_reply_nor_a_request_error() -> None:
    async with fault_server(stalls) as server, chatting(server.base_url) as client:
        asking = asyncio.create_task(client.complete(REQUEST))
        await server.was_asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert len(server.seen) == 1


async def test_closing_leaves_no_connection_and_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    async with fault_server(answers()) as server:
        async with chatting(server.base_url) as client:
            for _ in range(3):
                await client.complete(REQUEST)
            assert server.open_connections == 1  # kept alive and used again
        del client
        gc.collect()
        await asyncio.sleep(0.05)
        assert server.open_connections == 0
    assert not recwarn.list


async def test_many_samples_at_once_share_the_client_and_each_gets_its_own_answer(
    dataset: Dataset, official: Official
) -> None:
    rows = [entry for rows in dataset.rows.values() for entry in rows[:6]]
    with running_endpoint(dataset, mistakes=Mistakes(flaky_500=40), latency=0.02) as endpoint:
        async with chatting(endpoint.base_url) as client:
            replies = await asyncio.gather(
                *(
                    client.complete(
                        {**body_of(entry, official), "extra_headers": {"X-Client-Request-Id": f"bfcl-{entry.id}"}}
                    )
                    for entry in rows
                )
            )
        stats = endpoint.stats()
    assert stats["served"] == {"right": len(rows), "flaky_500": stats["requests"] - len(rows)}
    assert stats["served"]["flaky_500"] > 10
    for entry, reply in zip(rows, replies, strict=True):
        called = [call["function"]["name"] for call in reply.message.get("tool_calls") or []]
        offered = {tool["function"]["name"] for tool in body_of(entry, official).get("tools", [])}
        assert set(called) <= offered

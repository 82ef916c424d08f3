from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import pytest

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint import running_endpoint
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.response import TransportFailure
from fault_server import ANSWER, answers, fault_server, says

pytestmark = pytest.mark.usefixtures("agentcompass")


def request(base_url: str = "", *, model_params: dict[str, Any] | None = None, **harness_params: Any) -> Any:
    from agentcompass.launcher import build_run_request

    return build_run_request(
        benchmark="bfcl",
        harness="bfcl_chat",
        model="some-model",
        model_base_url=base_url,
        benchmark_params={"draw": "mini"},
        model_params=model_params or {},
        harness_params={"max_retries": 0, **harness_params},
    )


class Sending:
    """A harness as the host uses it: one session and one task at a time, for one request."""

    def __init__(self, req: Any) -> None:
        from agentcompass_bfcl.benchmark import BfclBenchmark
        from agentcompass_bfcl.harness import BfclChatHarness

        self.req, self.harness, self.bench = req, BfclChatHarness(), BfclBenchmark()
        self.tasks = self.bench.load_tasks(req)
        self.plan = self.harness.build_plan(req, req.environment)

    async def send(self, number: int = 0) -> Any:
        prepared = await self.bench.prepare_task(self.tasks[number], None, self.req, None)
        session = await self.harness.start_session(None, self.req, self.plan)
        try:
            return await self.harness.run_task(session, prepared, self.req, self.plan)
        finally:
            await self.harness.close_session(session)

    async def failure(self, number: int = 0) -> Any:
        from agentcompass.errors import StageFailure

        with pytest.raises(StageFailure) as caught:
            await self.send(number)
        return caught.value.issue


async def test_a_reply_is_handed_on_raw_with_its_facts(dataset: Dataset) -> None:
    message = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": {"odd": "shape"}}
    payload = {"choices": [{"message": message, "finish_reason": "length"}], "usage": ANSWER["usage"]}
    async with fault_server(answers(payload)) as server:
        result = await Sending(request(server.base_url)).send()
    assert (result.status.value, result.issues, result.metrics) == ("completed", [], {})
    assert result.artifacts["raw_result"] == {
        "content": None,
        "reasoning_content": "hm",
        "stop_reason": "length",
        "usage": ANSWER["usage"],
        "tool_calls": {"odd": "shape"},
        "function_call": None,
    }
    (step,) = result.trajectory.steps
    assert (step.metric.prompt_tokens_len, step.metric.completion_tokens_len, step.metric.stop_reason) == (
        7,
        2,
        "length",
    )
    assert 0 < result.telemetry["llm_infer_ms"] < 20_000


async def test_the_row_is_sent_as_the_benchmark_prepared_it(dataset: Dataset) -> None:
    params = {"temperature": 0, "extra_body": {"top_k": 1}, "extra_headers": {"X-Team": "a"}}
    async with fault_server(answers()) as server:
        sending = Sending(request(server.base_url, model_params=params))
        await sending.send()
    entry, (seen,) = dataset.entry(sending.tasks[0].task_id), server.seen
    assert seen.body["messages"] == entry.messages()
    assert seen.body["model"] == "some-model"
    assert (seen.body["temperature"], seen.body["top_k"]) == (0, 1)
    assert [tool["function"]["name"] for tool in seen.body["tools"]] == [
        function["name"].replace(".", "_") for function in entry.functions()
    ]
    assert seen.headers["x-client-request-id"] == f"bfcl-{entry.id}"
    assert seen.headers["x-team"] == "a"


async def test_all_samples_share_one_client() -> None:
    async with fault_server(answers()) as server:
        sending = Sending(request(server.base_url))
        for number in range(3):
            await sending.send(number)
        assert (len(server.seen), server.open_connections) == (3, 1)


def test_the_client_closes_with_the_event_loop(dataset: Dataset) -> None:
    async def send_one() -> None:
        async with fault_server(answers()) as server:
            await Sending(request(server.base_url)).send()

    asyncio.run(send_one())
    gc.collect()  # now a connection left open would say so, and warnings are errors


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_a_fault_of_one_sample_is_an_error_of_the_run_phase_and_voids_nothing(status: int) -> None:
    async with fault_server(says(status, "{}"), answers()) as server:
        sending = Sending(request(server.base_url))
        issue = await sending.failure()
        assert (issue.severity.value, issue.phase.value, issue.code) == ("error", "run", f"transport_http_{status}")
        assert (await sending.send(1)).status.value == "completed"


async def test_after_a_refusal_that_concerns_all_nothing_more_is_sent_and_the_listener_hears_it_once() -> None:
    from agentcompass_bfcl.harness import endpoint_listener

    heard: list[TransportFailure] = []
    token = endpoint_listener.set(heard.append)
    try:
        async with fault_server(says(401, "{}"), answers()) as server:
            sending = Sending(request(server.base_url))
            codes = [(await sending.failure(number)).code for number in range(3)]
    finally:
        endpoint_listener.reset(token)
    assert codes == ["transport_http_401", "transport_endpoint_unusable", "transport_endpoint_unusable"]
    assert len(server.seen) == 1
    assert [failure.code for failure in heard] == ["http_401"]


async def test_one_refusal_amid_answers_is_its_own_samples_error_and_several_in_a_row_end_the_run() -> None:
    from agentcompass_bfcl.harness import endpoint_listener

    heard: list[TransportFailure] = []
    token = endpoint_listener.set(heard.append)
    try:
        async with fault_server(answers(), says(403, "{}"), answers(), *[says(403, "{}")] * 5, answers()) as server:
            sending = Sending(request(server.base_url))
            await sending.send(0)
            assert (await sending.failure(1)).code == "transport_http_403"
            await sending.send(2)
            codes = [(await sending.failure(number)).code for number in range(3, 9)]
    finally:
        endpoint_listener.reset(token)
    assert codes == ["transport_http_403"] * 5 + ["transport_endpoint_unusable"]
    assert [failure.code for failure in heard] == ["http_403"]


async def test_without_a_listener_a_refusal_is_an_error_of_every_sample() -> None:
    async with fault_server(says(404, "{}")) as server:
        sending = Sending(request(server.base_url))
        issues = [await sending.failure(number) for number in range(2)]
    assert [issue.severity.value for issue in issues] == ["error", "error"]


async def test_the_harness_limits_reach_the_client(dataset: Dataset) -> None:
    async with fault_server(says(500, "{}", retry_after="0")) as server:
        await Sending(request(server.base_url, max_retries=2)).failure()
    assert len(server.seen) == 3
    with running_endpoint(dataset, latency=5.0) as endpoint:
        issue = await Sending(request(endpoint.base_url, request_timeout_seconds=0.2)).failure()
    assert issue.code == "transport_timeout"
    assert "0.2 s" in issue.message


def test_a_wait_of_a_minute_that_a_server_asks_for_fits_into_the_default_limits() -> None:
    assert Sending(request()).plan.retry_budget_seconds > 60


BAD_MODEL_PARAMETERS = [
    ({"stream": True}, ["'stream'", "True", "leave it out"]),
    ({"n": 2}, ["'n'", "2", "leave it out"]),
    ({"tools": []}, ["'tools'", "[]", "leave it out"]),
    ({"messages": []}, ["'messages'", "leave it out"]),
    ({"functions": []}, ["'functions'", "leave it out"]),
    ({"tool_choice": "required"}, ["'tool_choice'", "'required'", "benchmark's own"]),
    ({"extra_body": {"tools": []}}, ["'tools'", "leave it out"]),
    ({"extra_body": {"tool_choice": "auto"}}, ["'tool_choice'", "benchmark's own"]),
    ({"top_k": 1}, ["'top_k'", "extra_body"]),
    ({"chat_template_kwargs": {}}, ["'chat_template_kwargs'", "extra_body"]),
    ({"extra_body": [1]}, ["extra_body", "[1]", "object"]),
    ({"extra_headers": "X-Team: a"}, ["extra_headers", "'X-Team: a'", "object"]),
    ({"extra_query": 3}, ["extra_query", "3", "object"]),
    ({"timeout": "30"}, ["timeout", "'30'", "number"]),
    ({"timeout": 0}, ["timeout", "0", "number"]),
]


@pytest.mark.parametrize(("params", "words"), BAD_MODEL_PARAMETERS, ids=[str(case[0]) for case in BAD_MODEL_PARAMETERS])
def test_a_model_parameter_that_cannot_be_sent_is_refused_beforehand(params: dict[str, Any], words: list[str]) -> None:
    from agentcompass_bfcl.harness import BfclChatHarness

    with pytest.raises(ConfigError) as caught:
        BfclChatHarness().build_config(request(model_params=params))
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_retries": -1}, ["max_retries", "-1", "at least 0"]),
        ({"max_retries": "3"}, ["max_retries", "'3'", "number"]),
        ({"max_retries": True}, ["max_retries", "True", "number"]),
        ({"retry_budget_seconds": -0.1}, ["retry_budget_seconds", "-0.1", "at least 0"]),
        ({"request_timeout_seconds": 0}, ["request_timeout_seconds", "0", "at least 0.001"]),
        ({"request_timeout_seconds": float("nan")}, ["request_timeout_seconds", "nan"]),
        ({"retries": 3}, ["retries"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_bad_harness_parameter_is_refused_naming_it(params: dict[str, Any], words: list[str]) -> None:
    from agentcompass_bfcl.harness import BfclChatHarness

    with pytest.raises(ValueError, match=words[0]) as caught:
        BfclChatHarness().build_config(request(**params))
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_every_parameter_of_the_chat_completions_api_is_accepted() -> None:
    from agentcompass_bfcl.harness import BfclChatHarness

    params = {
        **{"temperature": 0.5, "top_p": 1, "max_tokens": 5, "max_completion_tokens": 5, "seed": 1, "stop": ["x"]},
        **{"presence_penalty": 0, "frequency_penalty": 0, "logit_bias": {}, "logprobs": True, "top_logprobs": 2},
        **{"parallel_tool_calls": True, "reasoning_effort": "low", "user": "u", "timeout": 30},
        **{"extra_body": {"top_k": 1}, "extra_headers": {"a": "b"}, "extra_query": {"c": "d"}},
    }
    BfclChatHarness().build_config(request(model_params=json.loads(json.dumps(params))))

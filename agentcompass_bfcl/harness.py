"""``bfcl_chat``: the lean chat harness, registered beside the benchmark.

It differs from the host's ``openai_chat`` in what a benchmark number depends on: one client for the whole run, fresh
request arguments for every sample, an empty reply accepted as the answer it is, retries only for faults that may pass,
and no fault of one sample that voids the run.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentcompass.errors import StageFailure
from agentcompass.harnesses.openai_chat import OpenAIChatHarness
from agentcompass.runtime import (
    HARNESSES,
    AssistantContent,
    EnvironmentSession,
    EnvironmentSpec,
    HarnessPlan,
    PreparedTask,
    RunRequest,
    RunResult,
    StepInfo,
    TaskStatus,
    Trajectory,
    TrajMetric,
)
from agentcompass.runtime.config import RuntimeHarnessConfig, config_field
from agentcompass.runtime.models.result import ExecutionIssue

from agentcompass_bfcl.chat_client import ChatClient, Reply, RequestError, RetryPolicy
from agentcompass_bfcl.request_params import LIMITS, check_limits, check_model_params
from agentcompass_bfcl.response import TransportFailure
from agentcompass_bfcl.settings import parse_base_url
from agentcompass_bfcl.subsets import Rule, subset_named
from agentcompass_bfcl.task import LEAN_HARNESS, TOOLS_TEXT
from agentcompass_bfcl.tool_watch import ToolWatch

logger = logging.getLogger(__name__)

# Issue codes of failed requests start so; a repeated run asks the host to try these again.
TRANSPORT_PREFIX = "transport_"

# One refusal in the middle of a run may be a gateway's word on one prompt, or a restart; so many in a row are not.
_PATIENCE = 5

# Whoever runs the host inside a process may ask to be told, once, that the endpoint serves no sample at all.
endpoint_listener: ContextVar[Callable[[TransportFailure], None] | None] = ContextVar("endpoint_listener", default=None)

# What closes each open client. Held here and not by the harness, which goes before its loop ends: the loop would then
# close the client in a task of its own that it does not wait for.
_keepers: dict[int, AsyncGenerator[ChatClient]] = {}


@dataclass(slots=True)
class BfclChatConfig(RuntimeHarnessConfig):
    """Parameters of ``bfcl_chat``. Model parameters (temperature, seed, ...) belong to the model, not here."""

    max_retries: int = config_field(default=3, description="Retries of one request, for faults that may pass.")
    retry_budget_seconds: float = config_field(default=120.0, description="No retry begins after this many seconds.")
    request_timeout_seconds: float = config_field(default=300.0, description="Limit of one request, reply included.")

    def __post_init__(self) -> None:
        check_limits({name: getattr(self, name) for name in LIMITS})
        self.max_retries = int(self.max_retries)


@dataclass(slots=True)
class BfclChatPlan(HarnessPlan):
    """The parameters as the runtime carries them to each task."""

    max_retries: int = 3
    retry_budget_seconds: float = 120.0
    request_timeout_seconds: float = 300.0


@HARNESSES.register()
class BfclChatHarness(OpenAIChatHarness):
    """Send one chat completions request per sample through a shared client."""

    id = LEAN_HARNESS
    description = "Lean chat harness for BFCL: one shared client, model parameters sent, empty replies accepted."
    config_class = BfclChatConfig
    plan_class = BfclChatPlan

    def __init__(self) -> None:
        self._client: ChatClient | None = None
        self._unusable: TransportFailure | None = None
        self._tool_watch = ToolWatch()
        self._patience = 1

    def build_config(self, req: RunRequest) -> BfclChatConfig:
        """Check the address and the harness's and the model's parameters before the first request."""
        parse_base_url(req.model.base_url)
        check_model_params(req.model.params)
        config: BfclChatConfig = BfclChatConfig.from_params(req.harness.params, field_name=f"harnesses.{self.id}")
        return config

    def build_plan(self, req: RunRequest, environment: EnvironmentSpec) -> BfclChatPlan:
        """Carry the parameters into the plan."""
        config = self.build_config(req)
        return BfclChatPlan(
            inject_network_restriction_notice=config.inject_network_restriction_notice,
            max_retries=config.max_retries,
            retry_budget_seconds=config.retry_budget_seconds,
            request_timeout_seconds=config.request_timeout_seconds,
        )

    async def start_session(self, env: EnvironmentSession, req: RunRequest, plan: BfclChatPlan) -> ChatClient:
        """Return the run's client, made for the first sample."""
        if self._client is None:
            keeper = _kept_open(req, plan)
            self._client = await anext(keeper)
            _keepers[id(self._client)] = keeper
        return self._client

    async def close_session(self, session: ChatClient) -> None:
        """Keep the client: the next sample uses it too. It closes with the event loop."""

    async def run_task(
        self, session: ChatClient, prepared: PreparedTask, req: RunRequest, plan: BfclChatPlan
    ) -> RunResult:
        """Ask the model once and return its raw reply, or raise ``StageFailure`` of severity ERROR."""
        if self._unusable is not None:
            raise _failure(TransportFailure("endpoint_unusable", f"not sent, since {self._unusable.message}"))
        request = {**prepared.metadata["kwargs"], "model": req.model.id, "messages": json.loads(prepared.input.prompt)}
        tools = _tools(prepared)
        if tools:
            request["tools"] = tools
        started_at = _now()
        try:
            reply = await session.complete(request)
        except RequestError as error:
            self._count_fault(error)
            raise _failure(error.failure) from None
        self._patience = _PATIENCE
        self._watch_tools(prepared, tools, reply)
        return _run_result(prepared, reply, started_at)

    def _watch_tools(self, prepared: PreparedTask, tools: list[Any], reply: Reply) -> None:
        if not tools:
            return
        watch = self._tool_watch
        tokens = (reply.usage or {}).get("prompt_tokens")
        warning = watch.observe(
            wants_call=subset_named(prepared.category).rule is not Rule.IRRELEVANCE,
            has_call=bool(reply.message.get("tool_calls")),
            prompt_tokens=tokens if isinstance(tokens, int) else None,
            sent_characters=len(prepared.input.prompt) + len(json.dumps(tools)) if watch.wants_prompt_sizes else 0,
        )
        if warning is not None:
            logger.warning("bfcl: %s", warning)

    def _count_fault(self, error: RequestError) -> None:
        """Give up at once on an endpoint that never answered, and on one that did after some such faults in a row."""
        if not error.concerns_all:
            return
        self._patience -= 1
        if self._patience <= 0:
            self._give_up(error.failure)

    def _give_up(self, failure: TransportFailure) -> None:
        if self._unusable is None:
            self._unusable = failure
            listener = endpoint_listener.get()
            if listener is not None:
                listener(failure)


async def _kept_open(req: RunRequest, plan: BfclChatPlan) -> AsyncGenerator[ChatClient]:
    # The host has no hook for the end of a run; ``asyncio.run`` closes the loop's generators, and this with them.
    client = ChatClient(
        base_url=req.model.base_url,
        api_key=req.model.api_key,
        policy=RetryPolicy(plan.max_retries, plan.retry_budget_seconds),
        timeout_seconds=plan.request_timeout_seconds,
    )
    try:
        yield client
    finally:
        del _keepers[id(client)]
        await client.close()


def _tools(prepared: PreparedTask) -> list[Any]:
    text = prepared.metadata.get(TOOLS_TEXT)
    tools: list[Any] = json.loads(text) if text else prepared.metadata.get("tools") or []
    return tools


def _now() -> datetime:
    return datetime.now()  # noqa: DTZ005 - the host keeps local times without a zone, and compares them


def _failure(failure: TransportFailure) -> StageFailure:
    return StageFailure(ExecutionIssue("error", "run", f"{TRANSPORT_PREFIX}{failure.code}", failure.message))


def _run_result(prepared: PreparedTask, reply: Reply, started_at: datetime) -> RunResult:
    message = reply.message
    usage = reply.usage or {}
    latency_ms = round(reply.latency_ms, 2)
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    step = StepInfo(
        step_id=0,
        user_content=prepared.input.prompt,
        assistant_content=AssistantContent(
            content=text,
            reasoning_content=str(message.get("reasoning_content") or ""),
            tool_calls=message.get("tool_calls") or [],
        ),
        metric=TrajMetric(
            prompt_tokens_len=usage.get("prompt_tokens"),
            completion_tokens_len=usage.get("completion_tokens"),
            llm_infer_ms=latency_ms,
            stop_reason=reply.finish_reason,
        ),
        started_at=started_at,
        finished_at=_now(),
    )
    return RunResult(
        task_id=prepared.task_id,
        status=TaskStatus.COMPLETED,
        final_answer=text,
        trajectory=Trajectory(steps=[step], started_at=started_at, finished_at=_now()),
        telemetry={"llm_infer_ms": latency_ms},
        artifacts={
            "raw_result": {
                "content": content,
                "reasoning_content": message.get("reasoning_content"),
                "stop_reason": reply.finish_reason,
                "usage": dict(usage) or None,
                "tool_calls": message.get("tool_calls"),
                "function_call": message.get("function_call"),
            }
        },
    )

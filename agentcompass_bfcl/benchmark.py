"""``bfcl``: the benchmark as AgentCompass sees it. Glue only: every rule and every sum lives in the modules below."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from agentcompass.benchmarks.config import RuntimeBenchmarkConfig, config_field
from agentcompass.runtime import (
    BENCHMARKS,
    BaseBenchmark,
    BenchmarkPlan,
    EnvironmentSession,
    ExecutionPlan,
    PreparedTask,
    RunRequest,
    RunResult,
    TaskInput,
    TaskOutput,
    TaskSpec,
    TaskStatus,
)
from agentcompass.runtime.config import redact_secrets
from agentcompass.runtime.models.result import ExecutionIssue, IssueSeverity

from agentcompass_bfcl import __version__
from agentcompass_bfcl.aggregate import aggregate
from agentcompass_bfcl.attempt import EXTRA_KEY, attempt_record
from agentcompass_bfcl.bounded import load_judge
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.collect import collect
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESET_SAMPLES, fingerprint, select
from agentcompass_bfcl.errors import ConfigError, ResponseError
from agentcompass_bfcl.explain import in_words
from agentcompass_bfcl.identity import expected_entries, question_identity, without_credentials
from agentcompass_bfcl.metric_result import MetricResult, build_metric_result
from agentcompass_bfcl.parsers import require_prompt_parsers
from agentcompass_bfcl.response import (
    Calls,
    Response,
    Silence,
    Text,
    official_output,
    response_from_message,
    without_leading_think,
)
from agentcompass_bfcl.result import build_document
from agentcompass_bfcl.score import Hit, Unscored, Verdict
from agentcompass_bfcl.settings import FIELDS, RunSettings, parse_settings
from agentcompass_bfcl.sources import load_sources
from agentcompass_bfcl.task import LEAN_HARNESS, TOOLS_TEXT, Mode, chat_request

_HOST_FIELDS = ("model", "sample_ids", "aggregation_mode", "category_hierarchy")
# The stock harness calls an empty reply a run error; on irrelevance rows it is the right answer.
_EMPTY_REPLY = "model_empty_output"


def _setting(name: str) -> Any:
    return config_field(default=None, description=FIELDS[name])


@dataclass(slots=True)
class BfclConfig(RuntimeBenchmarkConfig):
    """The benchmark's parameters as users write them; ``settings`` holds them checked."""

    draw: str | None = _setting("draw")
    categories: Any = _setting("categories")
    category_pct: Any = _setting("category_pct")
    subset_floor: int | None = _setting("subset_floor")
    subsets: Any = _setting("subsets")
    limit: int | None = _setting("limit")
    shard: str | None = _setting("shard")
    mode: str | None = _setting("mode")
    on_error: str | None = _setting("on_error")
    tool_choice: str | None = _setting("tool_choice")
    strip_think: Any = _setting("strip_think")
    wheel: str | None = _setting("wheel")
    settings: RunSettings = field(init=False, default_factory=RunSettings)

    def __post_init__(self) -> None:
        RuntimeBenchmarkConfig.__post_init__(self)
        self.settings = parse_settings({name: getattr(self, name) for name in FIELDS})


@BENCHMARKS.register()
class BfclBenchmark(BaseBenchmark):
    """Berkeley Function Calling Leaderboard v4, single-turn."""

    id = "bfcl"
    description = (
        "BFCL v4 single-turn function calling, judged by the official checker of the pinned bfcl-eval release; "
        "draws golden (995), echolp (1004), mini (192) and full (3625)."
    )
    config_class = BfclConfig
    parallel_attempts_safe = True
    collect_artifacts = False

    def build_config(self, req: RunRequest) -> BfclConfig:
        """Check the benchmark's parameters. Raises ``ConfigError`` naming field, value and what is allowed."""
        allowed = {*FIELDS, *_HOST_FIELDS}
        unknown = sorted(set(req.benchmark.params) - allowed)
        if unknown:
            raise ConfigError(f"unknown bfcl parameter {unknown[0]!r}; known: {', '.join(sorted(FIELDS))}, sample_ids")
        return BfclConfig(**{**req.benchmark.params, "model": req.model.id})

    def load_tasks(self, req: RunRequest) -> list[TaskSpec]:
        """Draw the run's rows: the first rows of each subset, then this shard's part of them."""
        settings = self.build_config(req).settings
        dataset = load_sources(settings.wheel).dataset
        tasks = [_task(entry) for entry in expected_entries(settings, dataset, None)]
        if not tasks:
            raise ConfigError(f"shard {settings.shard} of this draw is empty; use fewer shards")
        drawn, pinned = select(settings.spec, dataset), PRESET_SAMPLES.get(settings.draw_name)
        if settings.mode is Mode.PROMPT:
            require_prompt_parsers(entry.subset for entry in drawn)
        if pinned is not None and len(drawn) != pinned:
            tasks[0].load_warnings.append(f"draw {settings.draw_name} has {len(drawn)} rows here, {pinned} elsewhere")
        return tasks

    async def prepare_task(
        self, task: TaskSpec, env: EnvironmentSession, req: RunRequest, plan: BenchmarkPlan
    ) -> PreparedTask:
        """Build the request of one sample; every object in it is fresh, since harnesses write into them."""
        settings = self.build_config(req).settings
        sources = load_sources(settings.wheel)
        request = chat_request(sources.dataset.entry(task.task_id), sources.official, settings.mode)
        kwargs = json.loads(json.dumps(req.model.params))
        # Lets a server's log, and our own endpoint, tell which sample a request is about.
        kwargs["extra_headers"] = {"X-Client-Request-Id": f"bfcl-{task.task_id}", **kwargs.get("extra_headers", {})}
        if settings.tool_choice is not None and request.tools:
            kwargs["tool_choice"] = settings.tool_choice.value
        metadata: dict[str, Any] = {"kwargs": kwargs, "tools": request.tools}
        if request.tools and req.harness.id == LEAN_HARNESS:
            metadata = {"kwargs": kwargs, TOOLS_TEXT: json.dumps(request.tools, ensure_ascii=False)}
        return PreparedTask(
            task_id=task.task_id,
            category=task.category,
            ground_truth=task.ground_truth,
            input=TaskInput(prompt=json.dumps(request.messages, ensure_ascii=False)),
            output=TaskOutput(),
            metadata=metadata,
        )

    async def evaluate(
        self,
        task: TaskSpec,
        prepared: PreparedTask,
        result: RunResult,
        req: RunRequest,
        plan: ExecutionPlan,
        env: EnvironmentSession | None = None,
    ) -> RunResult:
        """Judge one reply: COMPLETED with ``correct``, EVAL_ERROR without, and a failed run stays what it was."""
        _accept_empty_reply(result)
        if any(issue.severity is not IssueSeverity.WARNING for issue in result.issues):
            return replace(result, metrics={})
        settings = self.build_config(req).settings
        sources = load_sources(settings.wheel)
        try:
            raw_result = _message(result)
            response = response_from_message(raw_result, settings.mode)
        except ResponseError as error:
            issue = ExecutionIssue("error", "run", "transport_invalid_reply", str(error))
            return replace(result, metrics={}, issues=[*result.issues, issue])
        if settings.strip_think and isinstance(response, Text):
            response = Text(without_leading_think(response.text))
        entry = sources.dataset.entry(task.task_id)
        output = official_output(response, settings.mode)
        # In a thread: an output that runs away would hold up every other sample until its limit.
        verdict = await asyncio.to_thread(load_judge(settings.wheel).verdict, entry, output, settings.mode)
        return _judged(entry, verdict, response, output, result, raw_result)

    def aggregate_metrics(self, results: list[dict[str, Any]], req: RunRequest, config: Any) -> MetricResult:
        """Count the persisted attempts and compute every score from the counts.

        The same live and in the host's ``summary``: only what the host persists unredacted is read.
        """
        settings: RunSettings = config.settings
        dataset = load_sources(settings.wheel).dataset
        report = super().aggregate_metrics(results, req, config)
        expected = expected_entries(settings, dataset, config.sample_ids)
        attempts = req.execution.attempts
        found = collect(results, expected, attempts.k, any_of=attempts.strategy == "pass")
        by_reducer = {"native": found.by_attempt, "avg": found.by_attempt, "pass": found.by_task}
        document = build_document(
            by_reducer[report.series[0].reducer],
            on_error=settings.on_error,
            identity=run_identity(expected, req, settings, dataset),
            miss_types=found.miss_types,
            error_types=found.error_types,
            truncated=found.truncated,
            malformed_abstentions=found.malformed_abstentions,
            rows=found.rows,
            clusters=clusters(expected),
            any_of=attempts.strategy == "pass",
        )
        scores = {reducer: aggregate(tallies, settings.on_error) for reducer, tallies in by_reducer.items()}
        return build_metric_result(report, document, scores)


def _task(entry: Entry) -> TaskSpec:
    question = entry.messages()[-1].get("content", "")
    return TaskSpec(
        task_id=entry.id,
        question=question if isinstance(question, str) else json.dumps(question),
        category=entry.subset,
        ground_truth=entry.reference_answers(),
    )


def _accept_empty_reply(result: RunResult) -> None:
    """Undo the stock harness's error for an empty reply.

    In place: the host joins the issues of the object it handed over to those of the one it gets back.
    """
    if any(issue.code == _EMPTY_REPLY for issue in result.issues):
        result.issues[:] = [issue for issue in result.issues if issue.code != _EMPTY_REPLY]
        if not result.issues:
            result.status = TaskStatus.COMPLETED


def _message(result: RunResult) -> Mapping[str, Any]:
    """Give the message a harness handed over.

    An empty message is an abstention, right on irrelevance rows, so what only looks empty is refused here: a call that
    the server announced and lost, a reply that a filter withheld. Raises ``ResponseError``.
    """
    message = result.artifacts.get("raw_result")
    if not isinstance(message, Mapping) or "content" not in message:
        raise ResponseError("the harness handed over no message in artifacts.raw_result")
    announced = message.get("stop_reason")
    if announced == "function_call" and not message.get("tool_calls"):
        # The stock harness drops the call itself.
        raise ResponseError("a legacy function_call: the endpoint has to answer with tool_calls")
    if announced == "tool_calls" and not message.get("tool_calls"):
        raise ResponseError("finish_reason is tool_calls, and there is none: the server lost the call")
    if announced == "content_filter" and not message.get("tool_calls") and not message.get("content"):
        raise ResponseError("a content filter withheld the reply")
    return message


def _judged(
    entry: Entry,
    verdict: Verdict,
    response: Response,
    output: Any,
    result: RunResult,
    raw_result: Mapping[str, Any],
) -> RunResult:
    record = attempt_record(verdict, output, raw_result, result.telemetry.get("llm_infer_ms")).to_text()
    if result.trajectory is not None and result.trajectory.steps:
        # The host's viewer shows a step's observation, and none of the places a benchmark may write to.
        result.trajectory.steps[0].observation = in_words(entry, verdict)
    changes: dict[str, Any] = {
        "extra": {**result.extra, EXTRA_KEY: record},
        "final_answer": _answer_text(response, output),
    }
    if isinstance(verdict, Unscored):
        issue = ExecutionIssue("error", "evaluate", verdict.reason, verdict.detail or verdict.reason)
        return replace(result, metrics={}, issues=[*result.issues, issue], **changes)
    return replace(result, status=TaskStatus.COMPLETED, metrics={"correct": isinstance(verdict, Hit)}, **changes)


def _answer_text(response: Response, output: Any) -> str:
    match response:
        case Calls():
            return json.dumps(output, ensure_ascii=False)
        case Silence():
            return ""
        case text:
            return text.text


def run_identity(
    expected: tuple[Entry, ...], req: RunRequest, settings: RunSettings, dataset: Dataset
) -> dict[str, Any]:
    """Gather what metrics.json says about a run beside its numbers; merging, comparing and gating go by it."""
    return {
        **question_identity(settings, dataset, redact_secrets(req.model.params)),
        "fingerprint": fingerprint(settings.spec, (entry.id for entry in expected)),
        "shard": str(settings.shard),
        "model": req.model.id,
        "base_url": without_credentials(req.model.base_url),
        "harness": req.harness.id,
        "harness_params": redact_secrets(req.harness.params),
        "concurrency": req.execution.task_concurrency,
        "attempts": {"k": req.execution.attempts.k, "strategy": req.execution.attempts.strategy},
        "versions": {"agentcompass": version("agentcompass"), "agentcompass-bfcl": __version__},
    }

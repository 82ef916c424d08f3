from __future__ import annotations

import copy
import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentcompass_bfcl.attempt import read_attempt_record
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.errors import BfclError, ConfigError, DrawError, ShardError
from agentcompass_bfcl.reference import reference_calls

pytestmark = pytest.mark.usefixtures("agentcompass")

type Evaluate = Callable[..., Awaitable[Any]]

STATUS_BY_PHASE = {"setup": "run_error", "run": "run_error", "collect": "run_error", "evaluate": "eval_error"}


def request(harness: str = "bfcl_chat", model_params: dict[str, Any] | None = None, **params: Any) -> Any:
    from agentcompass.launcher import build_run_request

    return build_run_request(
        benchmark="bfcl", harness=harness, model="some-model", benchmark_params=params, model_params=model_params or {}
    )


def benchmark() -> Any:
    from agentcompass_bfcl.benchmark import BfclBenchmark

    return BfclBenchmark()


def message(entry: Entry) -> dict[str, Any]:
    """Give a right answer to a row as a harness hands it on."""
    calls = [
        {"id": "1", "type": "function", "function": {"name": n, "arguments": a}} for n, a in reference_calls(entry)
    ]
    return {"content": "" if calls else "none fits", "tool_calls": calls or None, "stop_reason": "stop", "usage": None}


def run_result(entry: Entry, raw_result: Any, **changes: Any) -> Any:
    from agentcompass.runtime import AssistantContent, RunResult, StepInfo, TaskStatus, Trajectory, TrajMetric

    step = StepInfo(0, AssistantContent(content="as sent"), TrajMetric(), user_content="as asked")
    fields: dict[str, Any] = {
        "task_id": entry.id,
        "status": TaskStatus.COMPLETED,
        "category": entry.subset,
        "trajectory": Trajectory(steps=[step]),
        "artifacts": {"raw_result": raw_result, "another": {"kept": 1}},
        "telemetry": {"llm_infer_ms": 12.5, "another": 2},
        "extra": {"another": 3},
    }
    return RunResult(**{**fields, **changes})


async def evaluated(entry: Entry, result: Any) -> Any:
    from agentcompass.runtime import ExecutionPlan

    req, bench, task = request(draw="all"), benchmark(), every_task()[entry.id]
    prepared = await bench.prepare_task(task, None, req, None)
    return await bench.evaluate(task, prepared, result, req, ExecutionPlan(environment=req.environment))


@functools.cache
def every_task() -> dict[str, Any]:
    return {task.task_id: task for task in benchmark().load_tasks(request(draw="all"))}


def record(result: Any) -> Any:
    return read_attempt_record({"meta": {"benchmark": result.extra}})


def issue(severity: str, phase: str, code: str) -> Any:
    from agentcompass.runtime.models.result import ExecutionIssue

    return ExecutionIssue(severity, phase, code, "as it was")


ANSWERED = (
    "simple_python",
    "parallel",
    "simple_java",
    "simple_javascript",
    "live_multiple",
    "irrelevance",
    "live_relevance",
)


@pytest.mark.parametrize("subset", ANSWERED)
async def test_a_right_answer_is_completed_and_correct(subset: str, dataset: Dataset) -> None:
    entry = dataset.rows[subset][0]
    result = await evaluated(entry, run_result(entry, message(entry)))
    assert (result.status.value, result.metrics, result.issues) == ("completed", {"correct": True}, [])
    assert record(result).verdict == "hit"


@pytest.mark.parametrize("subset", ANSWERED)
async def test_a_wrong_answer_is_completed_and_not_correct(subset: str, dataset: Dataset) -> None:
    entry = dataset.rows[subset][0]
    call = {"id": "1", "type": "function", "function": {"name": "no_such_function", "arguments": "{}"}}
    wrong = [] if subset == "live_relevance" else [call]
    result = await evaluated(entry, run_result(entry, {**message(entry), "content": "", "tool_calls": wrong}))
    assert (result.status.value, result.metrics, result.issues) == ("completed", {"correct": False}, [])
    assert record(result).verdict == "miss"
    assert record(result).error_type


async def test_an_answer_the_checker_breaks_on_is_an_evaluation_error_without_a_verdict(dataset: Dataset) -> None:
    entry, name = next(
        (row, name)
        for row in dataset.rows["simple_python"]
        for name in json.loads(reference_calls(row)[0][1])
        if row.functions()[0]["parameters"]["properties"][name]["type"] == "float"
    )
    ((called, arguments),) = reference_calls(entry)
    huge = {**json.loads(arguments), name: 10**309}  # the official checker makes a float of it, which Python cannot
    call = {"function": {"name": called, "arguments": json.dumps(huge)}}
    result = await evaluated(entry, run_result(entry, {**message(entry), "tool_calls": [call]}))
    assert (result.status.value, result.metrics) == ("eval_error", {})
    (found,) = result.issues
    assert (found.severity.value, found.phase.value, found.code) == ("error", "evaluate", "checker_raised")
    assert record(result).verdict == "unscored"


@pytest.mark.parametrize("severity", ["error", "fatal"])
@pytest.mark.parametrize("phase", STATUS_BY_PHASE)
@pytest.mark.parametrize("subset", ["simple_python", "irrelevance"])
async def test_a_failed_run_stays_as_it_was_whatever_came_with_it(
    severity: str, phase: str, subset: str, dataset: Dataset
) -> None:
    entry = dataset.rows[subset][0]
    failure = issue(severity, phase, "transport_timeout")
    for raw_result in (message(entry), None, {}):
        failed = run_result(entry, raw_result, issues=[failure], metrics={"correct": True})
        result = await evaluated(entry, failed)
        assert (result.status.value, result.metrics, result.issues) == (STATUS_BY_PHASE[phase], {}, [failure])


async def test_a_warning_is_no_failure(dataset: Dataset) -> None:
    entry = dataset.rows["simple_python"][0]
    warning = issue("warning", "cleanup", "slow")
    result = await evaluated(entry, run_result(entry, message(entry), issues=[warning]))
    assert (result.status.value, result.metrics, result.issues) == ("completed", {"correct": True}, [warning])


@pytest.mark.parametrize(
    ("subset", "correct"),
    [("irrelevance", True), ("live_irrelevance", True), ("simple_python", False), ("live_relevance", False)],
)
@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 9, "completion_tokens": 0}])
async def test_the_stock_harness_error_for_an_empty_reply_becomes_an_abstention(
    subset: str, correct: bool, usage: Any, dataset: Dataset
) -> None:
    entry = dataset.rows[subset][0]
    empty = {
        "content": "",
        "reasoning_content": "let me think",
        "stop_reason": "stop",
        "usage": usage,
        "tool_calls": None,
    }
    handed_over = run_result(entry, empty, issues=[issue("error", "run", "model_empty_output")])
    result = await evaluated(entry, handed_over)
    assert (result.status.value, result.metrics, result.issues) == ("completed", {"correct": correct}, [])
    assert handed_over.issues == []  # the host adds these to the issues it gets back


async def test_an_empty_reply_beside_another_error_stays_an_error(dataset: Dataset) -> None:
    entry = dataset.rows["irrelevance"][0]
    issues = [issue("error", "run", "model_empty_output"), issue("error", "collect", "environment_failed")]
    result = await evaluated(entry, run_result(entry, {"content": ""}, issues=issues))
    assert (result.status.value, result.metrics) == ("run_error", {})
    assert [found.code for found in result.issues] == ["environment_failed"]


async def test_what_the_harness_gathered_is_kept_and_the_verdict_shown_beside_it(dataset: Dataset) -> None:
    entry = dataset.rows["simple_python"][0]
    given = run_result(entry, message(entry))
    expected = copy.deepcopy(given)
    result = await evaluated(entry, given)
    assert result.artifacts == expected.artifacts
    assert result.telemetry == expected.telemetry
    assert result.extra["another"] == 3
    assert result.trajectory.steps[0].assistant_content == expected.trajectory.steps[0].assistant_content
    assert result.trajectory.steps[0].user_content == "as asked"
    assert result.trajectory.steps[0].observation == ["hit"]
    assert json.loads(result.final_answer) == [dict(reference_calls(entry))]
    assert record(result).latency_ms == 12.5


@pytest.mark.parametrize(
    ("subset", "shown"),
    [
        (
            "simple_python",
            [
                "miss: simple_function_checker:wrong_func_name",
                "Function name 'calculate_triangle_area' not found in model output.",
                'accepted: {"calculate_triangle_area": {"base": [10], "height": [5], "unit": ["units", ""]}}',
            ],
        ),
        ("irrelevance", ["miss: irrelevance_error:decoder_success", "a call where none fits", "accepted: no call"]),
    ],
)
async def test_the_hosts_viewer_is_shown_why_a_reply_missed_and_what_would_have_been_accepted(
    subset: str, shown: list[str], dataset: Dataset
) -> None:
    entry, another = dataset.rows[subset][0], dataset.rows["simple_python"][1]
    result = await evaluated(entry, run_result(entry, message(another)))
    assert result.trajectory.steps[0].observation == shown


async def test_a_reply_cut_off_at_the_token_limit_is_scored_and_marked(dataset: Dataset) -> None:
    entry = dataset.rows["simple_python"][0]
    result = await evaluated(entry, run_result(entry, {**message(entry), "stop_reason": "length"}))
    assert result.metrics == {"correct": True}
    assert record(result).truncated


MALFORMED: dict[str, Any] = {
    "tool_calls a dict": {"content": None, "tool_calls": {"function": {"name": "f", "arguments": "{}"}}},
    "tool_calls text": {"content": None, "tool_calls": "f()"},
    "a call that is text": {"content": None, "tool_calls": ["f()"]},
    "a call without function": {"content": None, "tool_calls": [{"name": "f", "arguments": "{}"}]},
    "a call without name": {"content": None, "tool_calls": [{"function": {"arguments": "{}"}}]},
    "legacy function_call": {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
    "legacy function_call that the stock harness dropped": {"content": "", "stop_reason": "function_call"},
    "a call announced and lost": {"content": None, "tool_calls": [], "stop_reason": "tool_calls"},
    "withheld by a content filter": {"content": None, "stop_reason": "content_filter"},
    "content a number": {"content": 7},
    "content an object": {"content": {"text": "none fits"}},
    "nothing handed over": None,
    "an empty hand": {},
    "text handed over": "none fits",
    "a list handed over": [],
}


@pytest.mark.parametrize("raw_result", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("subset", ["irrelevance", "live_irrelevance", "simple_python", "live_relevance"])
async def test_a_malformed_message_is_an_error_and_never_a_hit(raw_result: Any, subset: str, dataset: Dataset) -> None:
    entry = dataset.rows[subset][0]
    result = await evaluated(entry, run_result(entry, raw_result))
    assert (result.status.value, result.metrics) == ("run_error", {})
    assert [(found.severity.value, found.code) for found in result.issues] == [("error", "transport_invalid_reply")]


async def test_a_harness_that_hands_over_no_artifact_brought_no_answer(dataset: Dataset) -> None:
    entry = dataset.rows["irrelevance"][0]
    result = await evaluated(entry, run_result(entry, None, artifacts={}))
    assert (result.status.value, result.metrics) == ("run_error", {})


async def test_a_request_is_made_of_fresh_objects_each_time(dataset: Dataset) -> None:
    bench = benchmark()
    req = request(
        "openai_chat", draw="mini", model_params={"extra_body": {"top_k": 1}, "extra_headers": {"X-Team": "a"}}
    )
    first, second = bench.load_tasks(req)[:2]
    prepared = await bench.prepare_task(first, None, req, None)
    expected = copy.deepcopy(prepared)
    prepared.metadata["kwargs"]["extra_body"]["top_k"] = 2
    prepared.metadata["kwargs"]["tools"] = "written by the stock harness"
    prepared.metadata["tools"].clear()
    assert await bench.prepare_task(first, None, req, None) == expected
    other = await bench.prepare_task(second, None, req, None)
    assert other.metadata["kwargs"]["extra_body"] == {"top_k": 1}
    assert other.metadata["kwargs"]["extra_headers"] == {"X-Client-Request-Id": f"bfcl-{second.task_id}", "X-Team": "a"}
    assert "tools" not in other.metadata["kwargs"]
    assert req.model.params["extra_body"] == {"top_k": 1}


async def test_our_harness_gets_tools_as_text_which_the_host_neither_walks_nor_redacts(dataset: Dataset) -> None:
    from agentcompass.runtime.config import redact_secrets

    secretive = next(
        entry.id for entry in dataset.by_id.values() if redact_secrets(entry.functions()) != entry.functions()
    )
    task, bench = every_task()[secretive], benchmark()
    listed = await bench.prepare_task(task, None, request("openai_chat", draw="all"), None)
    as_text = await bench.prepare_task(task, None, request("bfcl_chat", draw="all"), None)
    assert json.loads(as_text.metadata["tools_text"]) == listed.metadata["tools"]
    assert "tools" not in as_text.metadata
    assert redact_secrets(as_text.metadata["tools_text"]) == as_text.metadata["tools_text"]
    assert redact_secrets(listed.metadata["tools"]) != listed.metadata["tools"]
    without = next(entry.id for entry in dataset.by_id.values() if not entry.functions())
    for harness in ("openai_chat", "bfcl_chat"):
        prepared = await bench.prepare_task(every_task()[without], None, request(harness, draw="all"), None)
        assert prepared.metadata["tools"] == []


async def test_tool_choice_goes_out_only_when_set_and_never_without_tools(dataset: Dataset) -> None:
    async def kwargs(sample_id: str, **params: Any) -> dict[str, Any]:
        req, bench = request(draw="full", **params), benchmark()
        sent: dict[str, Any] = (await bench.prepare_task(every_task()[sample_id], None, req, None)).metadata["kwargs"]
        return sent

    without_tools = next(entry.id for entry in dataset.by_id.values() if not entry.functions())
    assert "tool_choice" not in await kwargs("simple_python_0")
    assert (await kwargs("simple_python_0", tool_choice="required"))["tool_choice"] == "required"
    assert "tool_choice" not in await kwargs(without_tools, tool_choice="required")


def test_the_tasks_are_the_draws_rows_in_issue_order_with_their_reference_answers(dataset: Dataset) -> None:
    tasks = benchmark().load_tasks(request(draw="mini"))
    assert len(tasks) == 192
    for task in tasks:
        entry = dataset.entry(task.task_id)
        assert (task.category, task.ground_truth) == (entry.subset, entry.reference_answers())
        assert task.load_warnings == []
    assert [task.task_id for task in tasks if task.category == "parallel"] == [
        entry.id for entry in dataset.rows["parallel"][:25]
    ]


BAD_PARAMETERS: list[tuple[dict[str, Any], type[BfclError], list[str]]] = [
    ({"draw": "gold"}, ConfigError, ["draw", "'gold'", "golden, echolp, mini, full, all"]),
    ({"draw": 7}, ConfigError, ["draw", "7", "golden"]),
    ({"shard": "4/4"}, ShardError, ["shard", "4/4", "0 to 3"]),
    ({"shard": "1"}, ShardError, ["shard", "'1'", "0/4"]),
    ({"shard": "0/0"}, ShardError, ["shard", "0/0", "1 or more"]),
    ({"category_pct": {"non_live": 0}}, DrawError, ["category_pct.non_live", "0", "above 0 and up to 100"]),
    ({"category_pct": {"non_live": 101}}, DrawError, ["category_pct.non_live", "101", "up to 100"]),
    ({"category_pct": {"nonlive": 10}}, DrawError, ["category_pct", "'nonlive'", "non_live, live, hallucination"]),
    ({"category_pct": "62"}, ConfigError, ["category_pct", "'62'", "mapping"]),
    ({"categories": ["multi_turn"]}, DrawError, ["categories", "'multi_turn'", "non_live, live, hallucination"]),
    ({"subsets": ["simple"]}, DrawError, ["subset", "'simple'", "simple_python"]),
    ({"subset_floor": -1}, ConfigError, ["subset_floor", "-1", "at least 0"]),
    ({"limit": "ten"}, ConfigError, ["limit", "'ten'", "at least 1"]),
    ({"limit": True}, ConfigError, ["limit", "True", "at least 1"]),
    ({"mode": "text"}, ConfigError, ["mode", "'text'", "fc, prompt"]),
    ({"on_error": "maybe"}, ConfigError, ["on_error", "'maybe'", "fail, exclude"]),
    ({"tool_choice": "any"}, ConfigError, ["tool_choice", "'any'", "auto, required, none"]),
    ({"wheel": 3}, ConfigError, ["wheel", "3", "text"]),
    ({"drawn": "mini"}, ConfigError, ["'drawn'", "category_pct", "shard"]),
]


@pytest.mark.parametrize(("params", "kind", "words"), BAD_PARAMETERS, ids=[str(case[0]) for case in BAD_PARAMETERS])
def test_a_bad_parameter_is_refused_in_one_line_naming_field_value_and_what_is_allowed(
    params: dict[str, Any], kind: type[BfclError], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        benchmark().build_config(request(**params))
    assert isinstance(caught.value, ValueError)  # the host prints those without a traceback
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_shard_without_rows_is_refused() -> None:
    with pytest.raises(ConfigError, match="shard 3/4 of this draw is empty; use fewer shards"):
        benchmark().load_tasks(request(subsets=["parallel"], limit=3, shard="3/4"))

"""Prompt mode on the wire: the endpoint that answers with text, and the benchmark inside AgentCompass."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.attempt import read_attempt_record
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.cli.parser import build_parser
from agentcompass_bfcl.cli.settings import benchmark_params
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint import Kind, Mistakes, RunningEndpoint, planned_mistake, running_endpoint
from agentcompass_bfcl.endpoint.answers import ABSTENTION, answer
from agentcompass_bfcl.endpoint.questions import Questions, is_prompted
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.parsers import INSTALL_HINT
from agentcompass_bfcl.reference import UNPASSABLE, tool_name
from agentcompass_bfcl.response import response_from_message
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict, score_output, score_sample
from agentcompass_bfcl.settings import parse_settings
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Rule, subset_named
from agentcompass_bfcl.task import Mode, chat_request
from endpoint_client import client
from host_runs import finish, quick_run
from prompt_extra import needs_parsers, skip_without_parsers
from test_benchmark import benchmark, request, run_result

DECODER_FAILED = "ast_decoder:decoder_failed"
WRONG_FORMAT = "ast_decoder:decoder_wrong_output_format"
CALLED = "irrelevance_error:decoder_success"
NOT_CALLED = "relevance_error:decoder_failed"


def words(verdict: Verdict) -> str | None:
    """Give upstream's error type, or None for a hit."""
    assert not isinstance(verdict, Unscored), verdict
    return verdict.error_type if isinstance(verdict, Miss) else None


# The endpoint


@pytest.fixture(scope="module")
def perfect(dataset: Dataset) -> Iterator[RunningEndpoint]:
    with running_endpoint(dataset) as running:
        yield running


def body_of(entry: Entry, official: Official) -> dict[str, Any]:
    return {"model": "any-name", "messages": chat_request(entry, official, Mode.PROMPT).messages}


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_the_endpoint_answers_with_text_that_hits(
    subset: str, perfect: RunningEndpoint, dataset: Dataset, official: Official
) -> None:
    skip_without_parsers(subset_named(subset).language)
    with client(perfect) as http:
        for entry in dataset.rows[subset][:8]:
            reply = http.post("/chat/completions", json=body_of(entry, official))
            message = reply.json()["choices"][0]["message"]
            assert set(message) == {"role", "content"}
            response = response_from_message(message, Mode.PROMPT)
            assert score_sample(entry, response, official, Mode.PROMPT) == Hit(), entry.id


def test_the_same_row_is_answered_in_the_mode_it_is_asked_in(
    perfect: RunningEndpoint, dataset: Dataset, official: Official
) -> None:
    for entry in (dataset.rows["live_multiple"][0], dataset.entry("live_irrelevance_120-9-0")):
        own, prompted = entry.messages(), body_of(entry, official)["messages"]
        tools = ["f"] if entry.functions() else []
        assert not is_prompted(entry, own, tools)
        assert is_prompted(entry, prompted, [])
    with client(perfect) as http:
        entry = dataset.rows["live_multiple"][0]
        request = chat_request(entry, official)
        reply = http.post(
            "/chat/completions", json={"model": "m", "messages": request.messages, "tools": request.tools}
        )
    assert reply.json()["choices"][0]["message"]["content"] is None


def tool_names(entry: Entry) -> list[str]:
    return [tool_name(document["name"]) for document in entry.functions()]


def test_a_prompt_finds_every_row_or_one_that_looks_the_same(dataset: Dataset, official: Official) -> None:
    questions, found_itself = Questions(dataset), 0
    for entry in dataset.by_id.values():
        messages = body_of(entry, official)["messages"]
        found = questions.find(None, messages, [])
        assert found is not None
        assert tool_names(found) == tool_names(entry)
        assert found.messages() == entry.messages()
        found_itself += found.id == entry.id
    assert found_itself == len(dataset.by_id) - 24  # 22 pairs and a triple look the same


@pytest.mark.parametrize("prompt", ["", "no list", "list:\n[1, 2]", "list:\n[{}]", "list:\n[{", 'list:\n[{"name": 5}]'])
def test_a_system_message_that_is_no_official_prompt_does_no_harm(prompt: str, dataset: Dataset) -> None:
    questions = Questions(dataset)
    entry = dataset.rows["multiple"][0]
    found = questions.find(None, [{"role": "system", "content": prompt}, *entry.messages()], [])
    assert found is entry
    assert questions.find(None, [{"role": "system", "content": prompt}], []) is None


WRONG_ANSWERS = [kind for kind in Kind if kind not in (Kind.HTTP_500, Kind.STALL)]
ERROR_TYPES = {
    Kind.WRONG_VALUE: "value_error|type_error|nested_type_checking|cannot_find_match",
    Kind.WRONG_FUNCTION: "wrong_func_name|cannot_find_match",
    Kind.MISSING_CALL: f"{DECODER_FAILED}|wrong_count",
    Kind.EXTRA_CALL: f"wrong_count|{DECODER_FAILED}|{WRONG_FORMAT}",
    Kind.MALFORMED_ARGUMENTS: DECODER_FAILED,
}


def expected_error_type(entry: Entry, kind: Kind) -> str:
    return {Rule.IRRELEVANCE: CALLED, Rule.RELEVANCE: NOT_CALLED}.get(
        subset_named(entry.subset).rule, ERROR_TYPES.get(kind, "no such kind")
    )


@pytest.mark.parametrize("kind", WRONG_ANSWERS)
@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_every_planned_mistake_is_a_miss_of_its_kind_on_every_row(
    subset: str, kind: Kind, dataset: Dataset, official: Official
) -> None:
    skip_without_parsers(subset_named(subset).language)
    for entry in dataset.rows[subset]:
        planned = planned_mistake(entry, Mistakes(**{kind.value: 100}), seed=0)
        assert planned is not None
        said = answer(entry, planned, Mode.PROMPT)
        assert said.calls == ()
        found = words(score_output(entry, said.text, official, Mode.PROMPT))
        assert found is not None, entry.id
        if entry.id not in UNPASSABLE:  # these may fail for their own reason first
            assert re.search(expected_error_type(entry, planned), found), (entry.id, found)


def test_where_no_call_is_right_the_endpoint_says_so_in_words(dataset: Dataset) -> None:
    for subset in ("irrelevance", "live_irrelevance"):
        assert {answer(entry, None, Mode.PROMPT).text for entry in dataset.rows[subset]} == {ABSTENTION}


# In AgentCompass


async def evaluated(entry: Entry, content: str | None, **params: Any) -> Any:
    """Judge a reply as the host does, in prompt mode."""
    from agentcompass.runtime import ExecutionPlan

    bench, req = benchmark(), request(subsets=[entry.subset], draw="all", mode="prompt", **params)
    (task,) = [task for task in bench.load_tasks(req) if task.task_id == entry.id]
    prepared = await bench.prepare_task(task, None, req, None)
    reply = run_result(entry, {"content": content, "tool_calls": None, "stop_reason": "stop", "usage": None})
    return await bench.evaluate(task, prepared, reply, req, ExecutionPlan(environment=req.environment))


THOUGHT = "<think>[f()] would do</think>\n"


@pytest.mark.parametrize(
    ("content", "params", "verdict", "output"),
    [
        ("[math.factorial(number=5)]", {}, "hit", "[math.factorial(number=5)]"),
        (f"{THOUGHT}[math.factorial(number=5)]", {}, "miss", f"{THOUGHT}[math.factorial(number=5)]"),
        (f"{THOUGHT}[math.factorial(number=5)]", {"strip_think": "true"}, "hit", "[math.factorial(number=5)]"),
        ("<think>[math.factorial(number=5)]", {"strip_think": True}, "miss", "<think>[math.factorial(number=5)]"),
        (None, {"strip_think": True}, "miss", None),
    ],
)
async def test_thoughts_are_cut_off_only_when_asked(
    agentcompass: None, content: str | None, params: dict[str, Any], verdict: str, output: str | None, dataset: Dataset
) -> None:
    result = await evaluated(dataset.rows["simple_python"][1], content, **params)
    record = read_attempt_record({"meta": {"benchmark": result.extra}})
    assert record is not None
    assert (record.verdict, record.output) == (verdict, output)
    assert result.metrics == {"correct": verdict == "hit"}
    assert result.final_answer == (output or "")


async def test_the_harness_gets_the_official_prompt_and_no_tools(
    agentcompass: None, dataset: Dataset, official: Official
) -> None:
    req, bench = request(subsets=["multiple"], draw="all", mode="prompt"), benchmark()
    prepared = await bench.prepare_task(bench.load_tasks(req)[0], None, req, None)
    wanted = chat_request(dataset.rows["multiple"][0], official, Mode.PROMPT)
    assert json.loads(prepared.input.prompt) == wanted.messages
    assert prepared.metadata["tools"] == []


@pytest.mark.parametrize("module", ["tree_sitter", "tree_sitter_java", "tree_sitter_javascript"])
def test_a_draw_with_java_rows_is_refused_before_the_first_request_where_they_could_not_be_scored(
    agentcompass: None, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # an import of it fails, as it does without the extra
    draws: tuple[dict[str, Any], ...] = (
        {"draw": "golden"},
        {"draw": "mini", "shard": "13/14"},
        {"draw": "full", "subsets": "simple_java"},
    )
    for draw in draws:
        with pytest.raises(ConfigError, match=r"pip install 'agentcompass-bfcl\[prompt\]'$"):
            benchmark().load_tasks(request(mode="prompt", **draw))
        assert benchmark().load_tasks(request(draw="mini", mode="fc"))
    assert len(benchmark().load_tasks(request(mode="prompt", draw="full", subsets="simple_python"))) == 400


def test_the_command_line_refuses_it_in_one_line_and_without_the_host(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    status = main(["run", "some-model", "--draw", "mini", "--mode", "prompt", "--results-dir", str(tmp_path / "none")])
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.endswith(f"{INSTALL_HINT}\n")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], {}),
        (["--mode", "prompt"], {"mode": "prompt"}),
        (["--mode", "prompt", "--strip-think"], {"mode": "prompt", "strip_think": True}),
    ],
)
def test_options_become_settings_only_where_given(options: list[str], params: dict[str, Any]) -> None:
    namespace = build_parser().parse_args(["run", "some-model", *options])
    assert benchmark_params(namespace) == {"draw": "golden", **params}
    assert parse_settings(benchmark_params(namespace)).strip_think is ("strip_think" in params)


@needs_parsers
def test_a_run_in_prompt_mode_counts_every_planned_mistake(
    agentcompass: None, dataset: Dataset, tmp_path: Path
) -> None:
    params = {"draw": "mini", "limit": 60, "mode": "prompt", "strip_think": True}
    with running_endpoint(dataset, mistakes=Mistakes(wrong_value=20, malformed_arguments=10), seed=3) as endpoint:
        run = finish(quick_run(endpoint.base_url, tmp_path, benchmark_params=params), endpoint)
    served = run.stats["served"]
    assert "tools" not in run.stats["last_request"]
    assert sum(served.values()) == 60
    unpassable = sum(sample_id in UNPASSABLE for sample_id in run.attempts)
    assert run.result.counts.evaluated == 60
    assert sum(tally.hits for tally in run.result.tallies().values()) == served["right"] - unpassable
    assert (run.result.extra["mode"], run.result.extra["strip_think"]) == ("prompt", True)

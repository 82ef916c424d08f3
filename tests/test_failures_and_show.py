"""The commands that look into a run, on run directories made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.attempt import EXTRA_KEY, AttemptRecord
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.wheel import Wheel
from result_trees import write_run


def _write_attempt(run_dir: Path, sample_id: str, subset: str, payload: Mapping[str, Any]) -> None:
    folder = run_dir / "details" / "normal" / f"{sample_id}--00"
    (folder / "attempt-1").mkdir(parents=True)
    (folder / "task.json").write_text(json.dumps({"task_id": sample_id, "category": subset}))
    (folder / "attempt-1" / "result.json").write_text(json.dumps(payload))


def _judged(record: AttemptRecord) -> dict[str, Any]:
    return {
        "status": "completed",
        "metrics": {"correct": record.verdict == "hit"},
        "issues": [],
        "meta": {"benchmark": {EXTRA_KEY: record.model_dump_json()}},
    }


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    spoiled = [{"calculate_triangle_area": '{"base": 11, "height": 5}'}]
    detail = "Invalid value for parameter 'base': 11."
    miss = AttemptRecord(verdict="miss", error_type="value_error:others", detail=detail, output=spoiled)
    hit = AttemptRecord(verdict="hit", output="No function fits.")
    issue = {"severity": "error", "phase": "run", "code": "transport_http_500", "message": "HTTP 500: down"}
    _write_attempt(tmp_path, "simple_python_0", "simple_python", _judged(miss))
    _write_attempt(tmp_path, "irrelevance_0", "irrelevance", _judged(hit))
    failed = {"status": "run_error", "metrics": {}, "issues": [issue]}
    _write_attempt(tmp_path, "simple_python_10", "simple_python", failed)
    _write_attempt(tmp_path, "simple_python_2", "simple_python", failed)
    drawn = ["irrelevance_0", *(f"simple_python_{number}" for number in (0, 2, 3, 10))]
    request = {
        "benchmark": {"id": "bfcl", "params": {"sample_ids": drawn}},
        "execution": {"attempts": {"k": 1, "strategy": "avg"}},
        "harness": {"id": "bfcl_chat"},
        "model": {"id": "some-model"},
    }
    (tmp_path / "run_info.json").write_text(json.dumps({"request": request}))
    return tmp_path


def test_failures_lists_misses_and_errors_in_order_of_the_data_set(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["failures", str(run_dir), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [failure["id"] for failure in document["failures"]] == [
        "simple_python_0",
        "simple_python_2",
        "simple_python_3",
        "simple_python_10",
    ]
    assert document["counts"] == {"not_run": 1, "transport_http_500": 2, "value_error:others": 1}
    assert document["failures"][2]["detail"] == "drawn and never run"
    assert document["failures"][1]["detail"] == "HTTP 500: down"


def test_failures_can_be_narrowed(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["failures", str(run_dir), "--type", "value_error:others", "--subset", "simple_python"]) == 0
    shown = capsys.readouterr().out
    assert "simple_python_0" in shown
    assert "simple_python_2" not in shown
    assert main(["failures", str(run_dir), "--subset", "irrelevance"]) == 0
    assert capsys.readouterr().out == "nothing to list: no miss and no error here\n"


def test_show_says_what_differs(run_dir: Path, wheel: Wheel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run_dir), "simple_python_0", "--wheel", str(wheel.path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("simple_python_0 (attempt 1): miss value_error:others\n")
    assert "Find the area of a triangle" in shown
    assert "calculate_triangle_area: base is 11; accepted: 10" in shown


def test_show_gives_machines_the_same(run_dir: Path, wheel: Wheel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run_dir), "simple_python_2", "--wheel", str(wheel.path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["type"], document["reply"]) == ("unscored", "transport_http_500", None)


@pytest.mark.parametrize(
    ("output", "calls"),
    [
        ("[calculate_triangle_area(base=11, height=5)]", [{"calculate_triangle_area": {"base": 11, "height": 5}}]),
        ("[f(x=[0] * 10**6 * 10)]", None),  # whatever verdict the file claims, it may take long to decode
        (f"[f(x='{'a' * 2_000}')]", None),
    ],
)
def test_show_decodes_text_that_is_decoded_soon(
    output: str, calls: Any, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    miss = AttemptRecord(verdict="miss", error_type="value_error:others", output=output)
    params = {"draw": "mini", "mode": "prompt"}
    write_run(tmp_path, {dataset.entry("simple_python_0"): miss}, params=params)
    assert main(["show", str(tmp_path), "simple_python_0", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["calls"] == calls
    assert bool(shown["differences"]) == (calls is not None)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["show", "RUN", "simple_python_7"], "simple_python_7 was not run"),
        (["show", "RUN", "no_such_row"], "unknown sample id 'no_such_row'"),
        (["failures", "RUN/nowhere"], "no attempt of a run"),
    ],
)
def test_what_is_not_there_is_named_in_one_line(
    arguments: list[str], expected: str, run_dir: Path, wheel: Wheel, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [argument.replace("RUN", str(run_dir)) for argument in arguments]
    options = ["--wheel", str(wheel.path)] if arguments[0] == "show" else []
    assert main([*filled, *options]) == 1
    message = capsys.readouterr().err
    assert expected in message
    assert message.count("\n") == 1

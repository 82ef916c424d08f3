from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.errors import ResultError, RunDirError
from agentcompass_bfcl.run_dir import iter_details, read_result
from agentcompass_bfcl.tally import attempt_outcome, count
from host_runs import Finished


@pytest.fixture
def copied(lean: Finished, tmp_path: Path) -> Path:
    return shutil.copytree(lean.run_dir, tmp_path / "run")


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def details(run_dir: Path) -> dict[str, Mapping[str, Any]]:
    return {str(detail["task_id"]): detail for detail in iter_details(run_dir)}


def folder_of(run_dir: Path, task_id: str) -> Path:
    (found,) = run_dir.glob(f"details/*/{task_id}--*")
    return found


def test_a_finished_run_is_read_with_its_identity_and_nothing_is_written(copied: Path, lean: Finished) -> None:
    before = contents(copied)
    result = read_result(copied)
    found = ((str(detail["category"]), attempt_outcome(detail["attempts"]["1"])) for detail in iter_details(copied))
    assert count(found) == result.tallies()
    assert contents(copied) == before
    assert result.extra["draw"] == "mini"
    assert result.extra["model"] == "some-model"
    assert result.extra["harness"] == "bfcl_chat"
    assert result.extra["request"] == {"temperature": 0.25, "seed": 7, "extra_body": {"top_k": 1}}
    assert result.extra["attempts"] == {"k": 1, "strategy": "avg"}
    assert result.extra["fingerprint"] == result.extra["draw_fingerprint"]
    assert set(result.extra["versions"]) == {"agentcompass", "agentcompass-bfcl"}
    assert not {"metrics", "counts", "details", "schema_version"} & set(result.extra)


def test_every_task_is_read_once_with_its_category_and_its_attempt(copied: Path) -> None:
    found = details(copied)
    assert len(found) == len(list(iter_details(copied))) == 192
    for task_id, detail in found.items():
        assert task_id.startswith(f"{detail['category']}_")
        assert set(detail["attempts"]) == {"1"}
        assert detail["attempts"]["1"]["status"] in ("completed", "run_error")


@pytest.mark.parametrize("damage", ["half", "empty", "gone", "not an object"])
def test_a_file_that_is_not_whole_is_skipped_and_the_others_are_read(copied: Path, damage: str) -> None:
    def spoil(path: Path) -> None:
        content = {"half": path.read_text()[:40], "empty": "", "not an object": "[]"}
        path.unlink() if damage == "gone" else path.write_text(content[damage])

    spoil(folder_of(copied, "parallel_0") / "attempt-1" / "result.json")
    spoil(folder_of(copied, "parallel_1") / "task.json")
    found = details(copied)
    assert found["parallel_0"]["attempts"] == {}
    assert "parallel_1" not in found
    assert len(found) == 191


def test_a_folder_without_tasks_has_no_details(tmp_path: Path) -> None:
    assert list(iter_details(tmp_path)) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["no such file", "has not finished"]),
        ("", ["cannot be read"]),
        ('{"extra": ', ["cannot be read"]),
        (b"\xff\xfe", ["cannot be read"]),
        ("[" * 100_000, ["cannot be read"]),
        ("[]", ["not a JSON object"]),
        ("{}", ["another benchmark"]),
        ('{"extra": []}', ["another benchmark"]),
        ('{"extra": {"accuracy": 1}}', ["another benchmark"]),
    ],
    ids=["absent", "empty", "half", "not text", "too deep", "a list", "no extra", "extra a list", "foreign"],
)
def test_what_is_no_result_of_a_run_is_refused_in_one_line_with_its_path(
    content: str | bytes | None, words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "metrics.json"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RunDirError) as caught:
        read_result(tmp_path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").mkdir()
    with pytest.raises(RunDirError, match="cannot be read"):
        read_result(tmp_path)


def test_a_result_that_was_altered_by_hand_is_refused_naming_file_and_place(copied: Path) -> None:
    path = copied / "metrics.json"
    content = json.loads(path.read_text())
    content["extra"]["details"]["subsets"]["parallel"]["hits"] = -1
    path.write_text(json.dumps(content))
    with pytest.raises(ResultError) as caught:
        read_result(copied)
    assert str(path) in str(caught.value)
    assert "details.subsets.parallel.hits" in str(caught.value)

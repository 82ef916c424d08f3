"""Run directories and models' names made to hurt: an error in one line, and nothing is written elsewhere."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcompass_bfcl.attempt import EXTRA_KEY, AttemptRecord
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import DrawSpec, select
from agentcompass_bfcl.endpoint import running_endpoint
from agentcompass_bfcl.errors import BfclError, ExportError
from agentcompass_bfcl.export import folder_name
from agentcompass_bfcl.run_dir import iter_details, read_attempts
from agentcompass_bfcl.run_request import read_request
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.sources import Sources
from host_runs import MakeEndpoint, finish, quick_run
from hostile import (
    ESCAPES,
    NO_JSON,
    SPECIAL,
    command,
    contents,
    make_special,
    refused,
    sane,
    spoilt,
    torn,
)
from hostile import written as as_json
from records import record
from result_trees import perfect_output, write_run

LIMIT = 16  # a row of every subset and a second one of three, so that there can be two shards
SPEC = DrawSpec(limit=LIMIT)
FORGIVING = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
# What reads a run directory row by row; where it may write is a new folder.
READERS: dict[str, Callable[[Path, Path], list[str | Path]]] = {
    "failures": lambda run, out: ["failures", run],
    "failures, as JSON": lambda run, out: ["failures", run, "--json"],
    "show": lambda run, out: ["show", run, "multiple_0"],
    "show, as JSON": lambda run, out: ["show", run, "multiple_0", "--json"],
    "watch": lambda run, out: ["watch", run, "--once"],
    "export, verdicts": lambda run, out: ["export", run, "--to", "verdicts", "--out", out / "file"],
    "export, a tree": lambda run, out: ["export", run, "--to", "bfcl-eval", "--out", out / "tree"],
    "export, samples": lambda run, out: ["export", run, "--to", "csv", "--out", out / "file"],
    "export, JUnit": lambda run, out: ["export", run, "--to", "junit", "--out", out / "file"],
}
# The others want its result alone.
RESULT_READERS: dict[str, Callable[[Path, Path], list[str | Path]]] = {
    "report": lambda run, out: ["report", run, "--format", "text", "-o", out / "file"],
    "export, JSON": lambda run, out: ["export", run, "--to", "json", "--out", out / "file"],
    "gate": lambda run, out: ["gate", run, "--baseline", "mlperf-edge-agentic"],
    "compare": lambda run, out: ["compare", run, run],
    "merge": lambda run, out: ["merge", run, "--json"],
}


@pytest.fixture(autouse=True)
def read_once(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands have the rows that were read already: the real ones, half a second sooner."""
    for name in ("export", "merge", "compare", "rescore", "failures", "watch"):
        monkeypatch.setattr(f"agentcompass_bfcl.cli.{name}.read_dataset", lambda wheel: sources.dataset)


@pytest.fixture(scope="session")
def sources(dataset: Dataset, official: Any) -> Sources:
    return Sources(dataset, official)


@pytest.fixture
def run(dataset: Dataset, tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", dataset)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "precious").write_text("kept")
    place = tmp_path / "out"
    place.mkdir()
    return place


def make_run(folder: Path, dataset: Dataset, shard: Shard | None = None, **request: Any) -> Path:
    """Write a run of few rows with its result: hits, a miss, and a request that failed."""
    entries = select(SPEC, dataset) if shard is None else shard.take(select(SPEC, dataset))
    attempts: dict[Entry, AttemptRecord | str] = {
        entry: AttemptRecord(verdict="hit", output=perfect_output(entry), latency_ms=2.5) for entry in entries
    }
    missed = AttemptRecord(verdict="miss", error_type="value_error:string", detail="wrong", output=[])
    attempts |= {entry: missed for entry in entries if entry.id == "multiple_0"} | {entries[0]: "http_500"}
    part = {} if shard is None else {"shard": str(shard)}
    write_run(folder, attempts, params={"draw": "all", "limit": LIMIT, **part}, **request)
    found = record(dataset, spec=SPEC, shard=shard or Shard())
    payload = json.loads(found.document.to_json())
    extra = {**payload.pop("extra"), **payload}
    (folder / "metrics.json").write_text(json.dumps({"extra": extra}))
    return folder


def files_of(run: Path, name: str) -> list[Path]:
    return sorted(run.rglob(name))


def every_command(run: Path, out: Path, *codes: int, name: str = "run_info.json") -> None:
    """Run whatever reads a file of a run; its description, whatever reads any."""
    readers = {"metrics.json": RESULT_READERS, "run_info.json": READERS | RESULT_READERS}.get(name, READERS)
    for arguments in readers.values():
        sane(command(*arguments(run, out)), *codes)
        shutil.rmtree(out)
        out.mkdir()


def test_the_run_that_is_spoilt_here_is_a_good_one(run: Path, out: Path) -> None:
    for reader, arguments in READERS.items():
        ended = command(*arguments(run, out))
        assert ended.code == 0, (reader, ended)
        shutil.rmtree(out)
        out.mkdir()
    assert command("report", run, "--format", "text", "-o", "-").code == 0


@pytest.mark.parametrize("name", ["run_info.json", "metrics.json", "task.json", "result.json"])
@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_file_in_a_run_is_neither_waited_for_nor_read_for_ever(
    kind: str, name: str, run: Path, out: Path, tmp_path: Path
) -> None:
    path = files_of(run, name)[0]
    path.unlink()
    make_special(kind, path)
    before = contents(tmp_path)
    every_command(run, out, 0, 1, 4, name=name)
    assert contents(tmp_path) == before
    if name in ("run_info.json", "metrics.json"):
        refused(command("report", run, "--format", "text", "-o", "-"))
    else:
        assert LIMIT - 1 <= len({attempt.sample_id for attempt in read_attempts(run)}) + 1 <= LIMIT + 1


@pytest.mark.parametrize("name", ["run_info.json", "metrics.json", "task.json", "result.json"])
@pytest.mark.parametrize("kind", NO_JSON)
def test_a_file_of_a_run_that_is_no_json_of_the_host_is_refused_or_left_out(
    kind: str, name: str, run: Path, out: Path, tmp_path: Path
) -> None:
    files_of(run, name)[0].write_bytes(NO_JSON[kind])
    before = contents(tmp_path)
    every_command(run, out, 0, 1, 4, name=name)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["run_info.json", "metrics.json", "task.json", "result.json"])
@FORGIVING
@given(data=st.data())
def test_whatever_a_file_of_a_run_says_every_command_answers_in_its_own_words(
    name: str, data: st.DataObject, run: Path, out: Path, tmp_path: Path
) -> None:
    path = files_of(run, name)[0]
    good = path.read_bytes()
    try:
        spoiling = data.draw(st.booleans())
        path.write_bytes(as_json(data.draw(spoilt(json.loads(good)))) if spoiling else data.draw(torn(good)))
        before = contents(tmp_path)
        readers = RESULT_READERS if name == "metrics.json" else READERS
        for reader in data.draw(st.lists(st.sampled_from(sorted(readers)), min_size=3, max_size=3, unique=True)):
            sane(command(*readers[reader](run, out)), 0, 1, 4)
            shutil.rmtree(out)
            out.mkdir()
        assert contents(tmp_path) == before
    finally:
        path.write_bytes(good)


@FORGIVING
@given(data=st.data())
def test_whatever_an_attempts_record_says_it_is_read_or_its_task_is_named(
    data: st.DataObject, run: Path, out: Path
) -> None:
    path = next(path for path in files_of(run, "result.json") if EXTRA_KEY.encode() in path.read_bytes())
    good = path.read_bytes()
    payload = json.loads(good)
    text = payload["meta"]["benchmark"][EXTRA_KEY]
    try:
        changed = (
            as_json(data.draw(spoilt(json.loads(text)))) if data.draw(st.booleans()) else data.draw(torn(text.encode()))
        )
        payload["meta"]["benchmark"][EXTRA_KEY] = changed.decode("utf-8", "replace")
        path.write_bytes(as_json(payload))
        for reader in data.draw(st.lists(st.sampled_from(sorted(READERS)), min_size=2, max_size=2, unique=True)):
            ended = sane(command(*READERS[reader](run, out)), 0, 1)
            if ended.code == 1 and "unreadable" in ended.err:
                assert json.loads((path.parent.parent / "task.json").read_bytes())["task_id"] in ended.err
            shutil.rmtree(out)
            out.mkdir()
    finally:
        path.write_bytes(good)


@pytest.mark.parametrize(
    "name",
    ["attempt-x", "attempt-", "attempt-²", "attempt-1.5", "attempt--1", f"attempt-{'9' * 200}", "attempt-\x1b[31m"],
)
def test_a_folder_that_is_no_attempt_is_none(name: str, run: Path, out: Path) -> None:
    before = len(read_attempts(run))
    folder = files_of(run, "task.json")[0].parent / name
    folder.mkdir()
    (folder / "result.json").write_text('{"status": "completed", "metrics": {"correct": true}}')
    assert len(read_attempts(run)) == before
    every_command(run, out, 0, 1, 4)


@pytest.mark.parametrize(
    "sample_id", ["../../../x", "/etc/passwd", "multiple_" + "9" * 5_000, "multiple_0\x00", ESCAPES, "", "x" * 100_000]
)
def test_ids_are_never_places_and_never_raw(sample_id: str, run: Path, out: Path, tmp_path: Path) -> None:
    path = files_of(run, "task.json")[0]
    path.write_bytes(as_json({"task_id": sample_id, "category": "multiple"}))
    before = contents(tmp_path)
    every_command(run, out, 0, 1, 4)
    assert contents(tmp_path) == before
    assert sample_id in {str(detail["task_id"]) for detail in iter_details(run)}


def test_nothing_a_model_or_a_server_said_reaches_a_terminal_as_it_is(run: Path, dataset: Dataset, out: Path) -> None:
    tasks = {json.loads(path.read_bytes())["task_id"]: path.parent for path in files_of(run, "task.json")}
    path = tasks["multiple_0"] / "attempt-1" / "result.json"
    for verdict, output in (
        ("miss", [{ESCAPES: json.dumps({ESCAPES: ESCAPES})}]),
        ("miss", ESCAPES + "\ud800"),
        ("unscored", None),
    ):
        payload = {
            "status": "completed" if verdict == "miss" else "run_error",
            "metrics": {},
            "issues": [{"severity": "error", "code": ESCAPES, "message": ESCAPES + "\ud800"}],
            "meta": {
                "benchmark": {
                    EXTRA_KEY: json.dumps(
                        {"verdict": verdict, "error_type": ESCAPES, "detail": ESCAPES, "output": output}
                    )
                }
            },
        }
        path.write_bytes(as_json(payload))
        every_command(run, out, 0, 1, 4)
        (line,) = [line for line in command("failures", run).out.splitlines() if line.startswith("multiple_0 ")]
        assert "overall  100.00" not in [part.strip() for part in line.split("  ")]
        shown = json.loads(command("show", run, "multiple_0", "--json").out)
        assert shown["reply"] == output


def test_a_reply_nested_as_deep_as_can_be_read_keeps_no_command_from_an_answer(run: Path, out: Path) -> None:
    tasks = {json.loads(path.read_bytes())["task_id"]: path.parent for path in files_of(run, "task.json")}
    path = tasks["multiple_0"] / "attempt-1" / "result.json"
    for depth in (300, 900, 1_000, 1_200, 1_400, 1_470, 1_480, 1_490, 100_000):
        text = '{"verdict": "miss", "error_type": "x", "output": ' + "[" * depth + "]" * depth + "}"
        path.write_bytes(as_json({"status": "completed", "meta": {"benchmark": {EXTRA_KEY: text}}}))
        every_command(run, out, 0, 1, 4)


@pytest.mark.parametrize("name", ["run_info.json", "result.json"])
@pytest.mark.parametrize("kind", ["pipe", "link to a device", "huge", "deep lists", "digits", "half"])
def test_a_spoilt_run_is_scored_again_without_it_or_refused(kind: str, name: str, run: Path, tmp_path: Path) -> None:
    path = files_of(run, name)[0]
    path.unlink()
    if kind in NO_JSON:
        path.write_bytes(NO_JSON[kind])
    else:
        make_special(kind, path)
    before = contents(tmp_path)
    ended = sane(command("rescore", run, "--json"), 0 if name == "result.json" else 1)
    if ended.code == 0:
        assert json.loads(ended.out)["details"]["error_types"]["not_run"] == 1
    assert contents(tmp_path) == before


# Merging


@pytest.fixture(scope="session")
def finished_shards(agentcompass: None, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Run both shards of a few rows inside AgentCompass."""
    results = tmp_path_factory.mktemp("shards")
    with running_endpoint(dataset) as endpoint:
        runs = [
            quick_run(
                endpoint.base_url,
                results,
                benchmark_params={"draw": "all", "limit": LIMIT, "shard": str(Shard(number, 2))},
                run_name=f"shard-{number}",
            )
            for number in (0, 1)
        ]
        return [finish(run, endpoint).run_dir for run in runs]


@pytest.fixture
def shards(finished_shards: list[Path], tmp_path: Path) -> list[Path]:
    return [shutil.copytree(shard, tmp_path / f"shard-{number}") for number, shard in enumerate(finished_shards)]


def test_the_shards_that_are_spoilt_here_are_good_ones(shards: list[Path], tmp_path: Path) -> None:
    ended = command("merge", *shards, "--out", tmp_path / "merged")
    assert ended.code == 0, ended
    assert len(files_of(tmp_path / "merged", "task.json")) == LIMIT


@pytest.mark.parametrize("name", ["run_info.json", "params.json", "progress.json", "metrics.json"])
@settings(FORGIVING, max_examples=15)
@given(data=st.data())
def test_whatever_the_files_of_a_shard_say_a_merged_run_appears_whole_or_not_at_all(
    name: str, data: st.DataObject, shards: list[Path], tmp_path: Path
) -> None:
    path = shards[0] / name
    good = path.read_bytes()
    out = tmp_path / "merged"
    try:
        path.write_bytes(as_json(data.draw(spoilt(json.loads(good)))))
        before = contents(tmp_path)
        ended = sane(command("merge", *shards, "--out", out), 0, 1)
        if ended.code == 0:
            assert command("report", out, "--format", "text", "-o", "-").code == 0
            shutil.rmtree(out)
        assert contents(tmp_path) == before
    finally:
        path.write_bytes(good)
        shutil.rmtree(out, ignore_errors=True)


@pytest.mark.parametrize("name", ["run_info.json", "params.json", "progress.json", "metrics.json"])
def test_a_shard_without_one_of_its_files_is_named(name: str, shards: list[Path], tmp_path: Path) -> None:
    before = contents(tmp_path)
    for kind in SPECIAL:
        kept = (shards[0] / name).rename(tmp_path / "kept")
        make_special(kind, shards[0] / name)
        ended = sane(command("merge", *shards, "--out", tmp_path / "merged"), 1)
        assert "shard" in ended.err
        assert not (tmp_path / "merged").exists()
        for left in (shards[0] / name, shards[0] / f"{name}.huge"):
            if not os.path.lexists(left):
                continue
            left.rmdir() if left.is_dir() and not left.is_symlink() else left.unlink()
        kept.rename(shards[0] / name)
        assert contents(tmp_path) == before


def test_links_out_of_a_shard_are_not_followed(shards: list[Path], tmp_path: Path) -> None:
    secret = tmp_path / "secret" / "task--1"
    secret.mkdir(parents=True)
    (secret / "task.json").write_text("secret")
    tasks = shards[0] / "details" / "normal"
    (tasks / "linked").symlink_to(secret, target_is_directory=True)
    (files_of(shards[0], "task.json")[0].parent / "file").symlink_to(secret / "task.json")
    assert command("merge", *shards, "--out", tmp_path / "merged").code == 0
    copied = [path for path in files_of(tmp_path / "merged", "*") if path.is_file() and not path.is_symlink()]
    assert copied
    assert all(b"secret" not in path.read_bytes() for path in copied)
    (shards[0] / "details" / "error").symlink_to(secret.parent, target_is_directory=True)
    line = refused(command("merge", *shards, "--out", tmp_path / "again"))
    assert "details/error" in line
    assert not (tmp_path / "again").exists()


def test_a_pipe_in_a_task_is_named_and_not_copied(shards: list[Path], tmp_path: Path) -> None:
    pipe = files_of(shards[0], "task.json")[0].parent / "pipe"
    os.mkfifo(pipe)
    refused(command("merge", *shards, "--out", tmp_path / "merged"), str(pipe))
    assert not (tmp_path / "merged").exists()


def test_folders_that_lead_in_circles_end(shards: list[Path], tmp_path: Path) -> None:
    for shard in shards:
        (shard / "details" / "normal" / "circle").symlink_to(shard, target_is_directory=True)
        (shard / "circle").symlink_to(tmp_path, target_is_directory=True)
    assert command("merge", *shards, "--json").code == 0
    (tmp_path / "circle").symlink_to(tmp_path, target_is_directory=True)
    assert " times, and none is known" in sane(command("merge", tmp_path, "--json"), 1).err


# What a run was asked


BAD_REQUESTS: dict[str, dict[str, Any]] = {
    "attempts without end": {"execution": {"attempts": {"k": float("inf"), "strategy": "avg"}}},
    "attempts of digits": {"execution": {"attempts": {"k": "9" * 5_000}}},
    "attempts of text": {"execution": {"attempts": {"k": ESCAPES}}},
    "no attempts": {"execution": {}},
    "another benchmark": {"benchmark": {"id": ESCAPES * 100}},
    "a benchmark without end": {"benchmark": {"id": [[["x" * 10_000] * 50]]}},
    "a shard of digits": {"benchmark": {"id": "bfcl", "params": {"shard": "9" * 5_000 + "/1"}}},
    "a shard too many": {"benchmark": {"id": "bfcl", "params": {"shard": "3/2"}}},
    "a limit of digits": {"benchmark": {"id": "bfcl", "params": {"limit": 10**400}}},
    "a percentage without end": {"benchmark": {"id": "bfcl", "params": {"category_pct": {"live": float("inf")}}}},
    "a draw of lists": {"benchmark": {"id": "bfcl", "params": {"draw": [["x" * 10_000]]}}},
    "a harness of text": {"harness": "x"},
    "a base URL of brackets": {"model": {"id": "m", "base_url": "http://[" + "x" * 10_000}},
}


@pytest.mark.parametrize("kind", BAD_REQUESTS)
def test_a_request_no_run_can_have_is_refused_in_one_line(
    kind: str, dataset: Dataset, tmp_path: Path, out: Path
) -> None:
    run = make_run(tmp_path / "run", dataset)
    info = json.loads((run / "run_info.json").read_bytes())
    info["request"] |= BAD_REQUESTS[kind]
    (run / "run_info.json").write_bytes(as_json(info))
    with pytest.raises(BfclError):
        read_request(run)
    for arguments in READERS.values():
        refused(command(*arguments(run, out)))
    assert list(out.iterdir()) == []


# Names of models


NAMES = [
    "org/model",
    "../../outside",
    "..",
    "/etc/passwd",
    " blanks  in it ",
    "-rf",
    "--help",
    "模型 é ß",
    "a" * 300,
    "a\\b",
    "C:\\model",
    "model:tag@1",
    "model?x=1#y",
    "<b>",
    "=1+1",
    "a\nb",
    ESCAPES,
    ".",
    "",
    "~",
    "$HOME",
    "%s%n",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_models_name_is_one_folder_of_that_name_or_refused(
    name: str, dataset: Dataset, out: Path, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", dataset, model=name)
    before = contents(tmp_path)
    ended = sane(command("export", run, "--to", "bfcl-eval", "--out", out / "tree"), 0, 1)
    try:
        folder = folder_name(name)
    except ExportError:
        assert "--model" in refused(ended)
        assert contents(tmp_path) == before
        assert command("export", run, "--to", "bfcl-eval", "--out", out / "tree", "--model", "m").code == 0
    else:
        assert ended.code == 0
        assert "/" not in folder
        assert {path.name for path in (out / "tree" / "result").iterdir()} == {folder}
    shutil.rmtree(out)
    assert {place: found for place, found in before.items() if place != "out"} == contents(tmp_path)


@given(st.text(max_size=300))
def test_a_folders_name_is_never_a_path(name: str) -> None:
    try:
        folder = folder_name(name)
    except ExportError as error:
        assert "\n" not in str(error)
        return
    assert folder not in ("", ".", "..")
    assert not set(folder) & {"/", "\0"}
    assert len(folder.encode()) <= 255


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../../org/mod el é", "-rf " + "n" * 200])
def test_a_run_of_a_model_with_such_a_name_ends_in_its_own_folder(
    name: str, agentcompass: None, endpoint_with: MakeEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    with endpoint_with() as endpoint:
        arguments = ["run", "--base-url", endpoint.base_url, "--draw", "mini", "--limit", "2", "--progress", "none"]
        arguments += ["--results-dir", str(results), "--json", "--", name]
        code = main(arguments)
    said = capsys.readouterr()
    assert {path.name for path in tmp_path.iterdir()} <= {"results"}
    assert "Traceback" not in said.err
    if code == 0:
        assert json.loads(said.out)["extra"]["model"] == name
        assert len(files_of(results, "metrics.json")) == 1
    else:
        assert "agentcompass-bfcl: " in said.err

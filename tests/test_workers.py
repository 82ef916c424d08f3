"""Shards at the same time in processes: the same result as in one, nobody left behind, nothing asked twice."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint import RunningEndpoint, parse_mistakes, running_endpoint
from agentcompass_bfcl.errors import WorkerError
from agentcompass_bfcl.host import register
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.workers.plan import ShardRun, automatic_shards, split
from agentcompass_bfcl.workers.processes import run_processes
from agentcompass_bfcl.workers.progress import progress_line, rows_done, watcher
from agentcompass_bfcl.workers.ray_cluster import pack, unpack
from agentcompass_bfcl.workers.shard_process import read_run, run_line
from host_runs import MARKER_KEY, quick_run
from test_cli import Command, command, only_line, started

__all__ = ["command"]  # a fixture

ROWS = 24
PATIENCE = 120
DRAW = ("--draw", "mini", "--limit", str(ROWS), "--retries", "0", "--progress", "none")


@pytest.mark.parametrize(("rows", "shards"), [(1, 1), (192, 1), (500, 1), (501, 2), (995, 2), (1004, 3), (3625, 8)])
def test_a_run_is_split_by_itself_once_it_has_more_than_500_rows(rows: int, shards: int) -> None:
    assert automatic_shards(rows) == shards


def test_shards_share_addresses_and_concurrency_and_have_names_of_their_own(tmp_path: Path) -> None:
    whole = quick_run("", tmp_path, concurrency=8, run_name="golden-0a")
    runs = split(whole, [3, 3, 2], ["http://a/v1", "http://b/v1"], 2)
    assert [str(run.shard) for run in runs] == ["0/3", "1/3", "2/3"]
    assert [run.run.base_url for run in runs] == ["http://a/v1", "http://b/v1", "http://a/v1"]
    assert {run.run.concurrency for run in runs} == {4}
    assert [run.run.run_name for run in runs] == [f"golden-0a-shard{index}of3" for index in range(3)]
    assert [run.run.benchmark_params["shard"] for run in runs] == ["0/3", "1/3", "2/3"]
    assert split(quick_run("", tmp_path, concurrency=1), [1] * 4, ["http://a/v1"], 4)[3].run.concurrency == 1


def test_a_run_travels_to_its_worker_unchanged(tmp_path: Path) -> None:
    run = quick_run("http://a/v1", tmp_path, api_key=MARKER_KEY, model_params={"temperature": 0, "stop": ["\n"]})
    assert read_run(run_line(run)) == run
    assert run_line(run).count(b"\n") == 1


# Real runs. The endpoint makes mistakes on the same rows every time.


@pytest.fixture(scope="module")
def endpoint(dataset: Dataset) -> Iterator[RunningEndpoint]:
    mistakes = parse_mistakes("wrong_value=8,missing_call=8,extra_call=8,http_500=4")
    with running_endpoint(dataset, mistakes=mistakes, seed=3) as running:
        yield running


@pytest.fixture(scope="module")
def whole(endpoint: RunningEndpoint, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    register()
    return run_json(endpoint, tmp_path_factory.mktemp("whole"), "--shards", "1")


@pytest.fixture(scope="module")
def merged_dir(endpoint: RunningEndpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a run in three shards."""
    results = tmp_path_factory.mktemp("sharded")
    run_json(endpoint, results, "--shards", "3")
    (found,) = [path.parent for path in results.glob("*/*/*/run_info.json") if "-shard" not in str(path)]
    return found


def run_json(endpoint: RunningEndpoint, results: Path, *options: str) -> dict[str, Any]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert (
            main(
                ["run", "m", "--base-url", endpoint.base_url, *DRAW, "--results-dir", str(results), "--json", *options]
            )
            == 0
        )
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def test_three_shards_give_the_result_of_one_run(whole: dict[str, Any], merged_dir: Path) -> None:
    from agentcompass_bfcl.run_dir import read_result

    merged = json.loads(read_result(merged_dir).to_json())
    provenance = merged["extra"].pop("shards")
    assert [part["shard"] for part in provenance] == ["0/3", "1/3", "2/3"]
    assert merged == whole
    assert whole["counts"]["error"] >= 1
    assert whole["counts"]["total"] == ROWS


def test_the_merged_directory_is_opened_by_every_command(
    merged_dir: Path, whole: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = "multiple_0"
    for arguments in (["failures"], ["show", sample], ["rescore"], ["export", "--to", "verdicts", "--out", "-"]):
        name, *rest = arguments
        assert main([name, str(merged_dir), *rest]) == 0
        assert capsys.readouterr().out
    tree = tmp_path / "tree"
    assert main(["export", str(merged_dir), "--to", "bfcl-eval", "--out", str(tree)]) == 0
    assert main(["compare", str(merged_dir), str(merged_dir)]) == 0
    assert main(["gate", str(merged_dir), "--not-worse-than", str(merged_dir)]) == 0
    capsys.readouterr()
    assert main(["rescore", str(merged_dir), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == whole["metrics"]


def test_the_hosts_own_summary_of_the_merged_directory_says_the_same(merged_dir: Path) -> None:
    def report() -> dict[str, Any]:
        content: dict[str, Any] = json.loads((merged_dir / "metrics.json").read_text())
        content["extra"].pop("shards", None)
        return content

    written, summary = report(), (merged_dir / "summary.md").read_text()
    assert main(["agentcompass", "summary", str(merged_dir)]) == 0
    assert report() == written
    assert (merged_dir / "summary.md").read_text() == summary


def test_several_addresses_are_spread_over_the_shards(
    endpoint: RunningEndpoint, dataset: Dataset, tmp_path: Path
) -> None:
    with running_endpoint(dataset) as second:
        before = endpoint.stats()["requests"]
        result = run_json(endpoint, tmp_path, "--shards", "2", "--base-url", second.base_url)
        assert (endpoint.stats()["requests"] - before, second.stats()["requests"]) == (14, 10)
    assert result["extra"]["base_url"] == [endpoint.base_url, second.base_url]


def test_shards_are_refused_where_they_cannot_be_meant(command: Command) -> None:
    address = "http://127.0.0.1:9/v1"
    for options, fault in (
        (("--shards", "0"), "--shards is 1 or more"),
        (("--shards", "2", "--shard", "0/2"), "--shard is a part already"),
        (("--shards", "99"), "some would be empty"),
        (("--base-url", "http://127.0.0.1:10/v1"), "2 --base-url for 1 shards"),
    ):
        code, _, err = command("run", "m", "--base-url", address, *DRAW, *options)
        assert code == 1
        assert fault in only_line(err)


def test_an_endpoint_that_cannot_be_used_ends_all_shards_with_one_line(command: Command) -> None:
    begun = time.monotonic()
    code, out, err = command("run", "m", "--base-url", "http://127.0.0.1:9/v1", *DRAW, "--shards", "2")
    assert (code, out) == (1, "")
    assert "http://127.0.0.1:9/v1 cannot be used" in only_line(err)
    assert time.monotonic() - begun < PATIENCE


# Workers that die, and drivers that do.


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def alive(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def eventually(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


needs_proc = pytest.mark.skipif(
    not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="processes are looked for in /proc"
)


@pytest.fixture
def slow(dataset: Dataset) -> Iterator[RunningEndpoint]:
    with running_endpoint(dataset, latency=0.5, api_key=MARKER_KEY) as running:
        yield running


def driver(slow: RunningEndpoint, folder: Path, *options: str) -> subprocess.Popen[str]:
    shards = ("--shards", "2", "--concurrency", "2")
    return started(
        "run", "m", "--base-url", slow.base_url, *DRAW, *shards, *options, cwd=folder, OPENAI_API_KEY=MARKER_KEY
    )


@needs_proc
def test_a_killed_worker_is_named_the_other_finishes_and_reuse_repeats_only_what_is_missing(
    slow: RunningEndpoint, tmp_path: Path
) -> None:
    with driver(slow, tmp_path, "--results-dir", "r") as process:
        eventually(lambda: slow.stats()["requests"] >= 8)
        victim = next(
            pid for pid in children(process.pid) if b"shard_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        assert all(
            MARKER_KEY.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(process.pid)
        )
        os.kill(victim, signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    line = only_line(err)
    assert "/2: ended by SIGKILL" in line
    assert "worker.log" in line
    assert "--reuse repeats only what is missing" in line
    finished = list(tmp_path.glob("r/*/*/*/metrics.json"))
    assert len(finished) == 1
    asked = slow.stats()["requests"]
    with driver(slow, tmp_path, "--results-dir", "r", "--reuse", "--json") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["counts"] == {"total": ROWS, "evaluated": ROWS, "error": 0}
    # The rows of the killed shard that were done are not asked again, nor is any of the other.
    assert slow.stats()["requests"] - asked < ROWS // 2
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or MARKER_KEY.encode() not in path.read_bytes(), path


@needs_proc
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_worker_outlives_its_driver(
    number: signal.Signals, code: int, slow: RunningEndpoint, tmp_path: Path
) -> None:
    with driver(slow, tmp_path) as process:
        eventually(lambda: slow.stats()["requests"] >= 4)
        workers = children(process.pid)
        assert len(workers) == 2
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == code
    eventually(lambda: not any(alive(pid) for pid in workers))


def test_a_worker_that_cannot_start_is_named(tmp_path: Path) -> None:
    run = quick_run("nonsense", tmp_path, run_name="x")
    (ended,) = run_processes([ShardRun(Shard(), run, 3)], at_once=1)
    assert not ended.has_result
    assert "shard 0/1: ended with status 1; base_url is 'nonsense'" in ended.trouble


# How far it is.


def test_progress_counts_finished_rows_and_is_not_written_twice(tmp_path: Path) -> None:
    runs = split(quick_run("http://a/v1", tmp_path), [3, 2], ["http://a/v1"], 2)
    folder = runs[0].folder / "m_bfcl_bfcl_chat" / runs[0].run.run_id
    for task in ("normal/a", "normal/b", "error/c", "running/d"):
        (folder / "details" / task).mkdir(parents=True)
    assert rows_done(None) == 0
    assert progress_line(runs[::-1]) == "shard 0/2: 3 of 3, shard 1/2: 0 of 2"
    out, now = io.StringIO(), [0.0]
    watch = watcher(out, lambda: now[0])
    for moment in (0.0, 1.0, 6.0):
        now[0] = moment
        watch(runs)
    assert out.getvalue() == "shard 0/2: 3 of 3, shard 1/2: 0 of 2\n"


# What a cluster's machine brings back is not trusted.


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("../outside"),
        tarfile.TarInfo("a/../../outside"),
        link("a", "/etc/passwd", tarfile.SYMTYPE),
        link("a", "../outside", tarfile.SYMTYPE),
        link("a", "../outside", tarfile.LNKTYPE),
        link("a", "", tarfile.FIFOTYPE),
        link("a", "", tarfile.CHRTYPE),
    ],
    ids=lambda member: f"{member.name}-{member.type!r}",
)
def test_only_files_and_folders_inside_are_unpacked(member: tarfile.TarInfo, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(WorkerError, match="a shard brought"):
        unpack(packed((member, b"")), inside)
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert not list(inside.iterdir())


def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    (there / "deep" / "er").mkdir(parents=True)
    (there / "deep" / "er" / "file").write_bytes(b"\x00content")
    back.mkdir()
    unpack(pack(there), back)
    assert (back / "deep" / "er" / "file").read_bytes() == b"\x00content"


def test_without_ray_the_install_hint_comes_in_one_line(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["ray"] = None
from agentcompass_bfcl.cli import main
sys.exit(main(["run", "m", "--base-url", "http://127.0.0.1:9/v1", "--draw", "mini", "--limit", "24", "--shards", "2",
               "--executor", "ray"]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'agentcompass-bfcl[ray]'" in only_line(done.stderr)


# Merging what is on disk.


def shard_dirs(merged_dir: Path) -> list[Path]:
    results = merged_dir.parents[2]
    return sorted(path.parent for path in results.glob("*-shard*/*/*/run_info.json"))


def test_the_hosts_viewer_reads_the_merged_directory(merged_dir: Path) -> None:
    from agentcompass.viewer import reader

    run = reader.read_run(str(merged_dir))
    assert (run["isRun"], run["detailsTotal"]) == (True, ROWS)
    assert run["metricsJson"]["series"][0]["value"] > 0
    counts = reader.read_run_counts(str(merged_dir))
    assert counts["total"] == ROWS
    page = reader.read_details_page(str(merged_dir), 1, ROWS)
    assert len(page["items"] if "items" in page else page["details"]) == ROWS


def test_a_folder_stands_for_the_runs_below_it_and_a_run_cut_short_for_none(
    merged_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shard_dir in shard_dirs(merged_dir):
        shutil.copytree(shard_dir, tmp_path / "results" / shard_dir.parents[1].name / "m" / shard_dir.name)
    shard = next((tmp_path / "results").glob("*-shard1of3/m/*"))
    shutil.copytree(shard, shard.with_name("20200101-000000-000000"))
    (shard.with_name("20200101-000000-000000") / "metrics.json").unlink()
    out = tmp_path / "whole"
    assert main(["merge", str(tmp_path / "results"), "--out", str(out), "--allow-errors"]) == 0
    assert "passed over for another run of its shard" in capsys.readouterr().err
    assert sum(rows_done(path) for path in [out]) == ROWS
    assert main(["merge", str(tmp_path / "results"), "--out", str(out), "--allow-errors"]) == 1
    assert "holds something already" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"", b'{"extra": ', b"{}", b'{"extra": {"schema_version": 1}}'])
def test_a_torn_shard_directory_is_named_with_its_shard(
    content: bytes | None, merged_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = shard_dirs(merged_dir)
    torn = shutil.copytree(first, tmp_path / "torn")
    (torn / "metrics.json").unlink()
    if content is not None:
        (torn / "metrics.json").write_bytes(content)
    assert main(["merge", str(torn), *map(str, others), "--out", str(tmp_path / "out"), "--allow-errors"]) == 1
    assert f"shard 0/3: torn: {torn}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["torn"]


def test_a_shard_with_failed_requests_is_refused_unless_they_are_allowed(
    merged_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(path) for path in shard_dirs(merged_dir)]
    assert main(["merge", *paths, "--out", str(tmp_path / "out")]) == 1
    assert "failed requests (transport_http_500 " in capsys.readouterr().err
    assert main(["merge", *paths, "--allow-errors", "--json"]) == 0


def test_repeated_runs_say_what_changes_with_nothing_changed(
    endpoint: RunningEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = endpoint.stats()["requests"]
    limit = ("--limit", "6", "--repeat", "2", "--shards", "1")
    assert main(["run", "m", "--base-url", endpoint.base_url, *DRAW, "--results-dir", str(tmp_path), *limit]) == 0
    out = capsys.readouterr().out
    assert endpoint.stats()["requests"] - before == 12
    assert out.count("subset ") == 2
    assert "With nothing changed, 2 runs of one build differ in up to 0.00 % of the rows" in out
    assert len(list(tmp_path.glob("*/*/*/metrics.json"))) == 2
    two = ["--results-dir", str(tmp_path / "json"), *limit, "--json"]
    assert main(["run", "m", "--base-url", endpoint.base_url, *DRAW, *two]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [result["counts"]["total"] for result in document["results"]] == [6, 6]
    assert document["same_build"]["runs"] == 2

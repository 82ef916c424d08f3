"""Shards at the same time in processes: the same result as in one, nobody left behind, nothing asked twice."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
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

from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint import RunningEndpoint, parse_mistakes, running_endpoint
from agentcompass_bfcl.errors import WorkerError
from agentcompass_bfcl.host import register
from agentcompass_bfcl.workers.packing import pack, unpack
from agentcompass_bfcl.workers.plan import automatic_shards, most_at_once, split
from agentcompass_bfcl.workers.processes import run_processes
from agentcompass_bfcl.workers.progress import Progress, progress_line, rows_done
from agentcompass_bfcl.workers.provisional import Provisional
from agentcompass_bfcl.workers.shard_process import read_shard, shard_line
from agentcompass_bfcl.workers.worker import Worker, how_it_ended
from host_runs import MARKER_KEY, quick_run
from result_trees import write_run
from test_cli import Command, command, only_line, started

__all__ = ["command"]  # a fixture

ROWS = 24
PATIENCE = 120
DRAW = ("--draw", "mini", "--limit", str(ROWS), "--retries", "0", "--progress", "none")


@pytest.mark.parametrize(
    ("rows", "shards"), [(1, 1), (192, 1), (250, 1), (251, 4), (800, 4), (995, 8), (1004, 8), (3625, 20)]
)
def test_a_run_is_split_by_itself_into_a_multiple_of_four_once_it_has_more_than_250_rows(
    rows: int, shards: int
) -> None:
    assert automatic_shards(rows) == shards


@pytest.mark.parametrize(("rows", "shards"), [(1, 1), (500, 1), (501, 2), (995, 2), (3625, 8)])
def test_on_a_cluster_shards_are_larger(rows: int, shards: int) -> None:
    assert automatic_shards(rows, on_cluster=True) == shards


def test_shards_share_addresses_and_concurrency_and_have_names_of_their_own(tmp_path: Path) -> None:
    whole = quick_run("", tmp_path, concurrency=8, run_name="golden-0a")
    runs = split(whole, [3, 3, 2], ["http://a/v1", "http://b/v1"], 2)
    assert [str(run.shard) for run in runs] == ["0/3", "1/3", "2/3"]
    assert [run.run.base_url for run in runs] == ["http://a/v1", "http://b/v1", "http://a/v1"]
    assert {run.run.concurrency for run in runs} == {4}
    assert [run.run.run_name for run in runs] == [f"golden-0a-shard{index}of3" for index in range(3)]
    assert [run.run.benchmark_params["shard"] for run in runs] == ["0/3", "1/3", "2/3"]


@pytest.mark.parametrize(
    ("shards", "cores", "concurrency", "at_once", "each"),
    [
        (2, 2, 8, 2, [4, 4]),
        (3, 4, 8, 3, [3, 3, 2]),
        (8, 2, 8, 2, [4] * 8),
        (8, 3, 8, 3, [2] * 8),  # which three run together nobody knows
        (2, 2, 1, 1, [1, 1]),  # one connection stays one: one shard after the other
        (4, 4, 3, 3, [1] * 4),
    ],
)
def test_shards_together_never_send_more_requests_at_a_time_than_asked_for(
    shards: int, cores: int, concurrency: int, at_once: int, each: list[int], tmp_path: Path
) -> None:
    assert most_at_once(shards, cores, concurrency) == at_once
    runs = split(quick_run("", tmp_path, concurrency=concurrency), [1] * shards, ["http://a/v1"], at_once)
    assert [run.run.concurrency for run in runs] == each
    assert sum(sorted(each)[-at_once:]) <= concurrency


def test_a_run_travels_to_its_worker_unchanged(tmp_path: Path) -> None:
    run = quick_run("http://a/v1", tmp_path, api_key=MARKER_KEY, model_params={"temperature": 0, "stop": ["\n"]})
    line = shard_line(run, tmp_path / "log")
    assert read_shard(line) == (run, tmp_path / "log")
    assert line.count(b"\n") == 1


def test_runs_of_another_harness_are_not_taken_for_a_shards_own(tmp_path: Path) -> None:
    (shard_run,) = split(quick_run("http://a/v1", tmp_path), [1], ["http://a/v1"], 1)
    for harness, run_id in (("bfcl_chat", "20260101-1"), ("bfcl_chat", "20260102-1"), ("openai_chat", "20260103-1")):
        folder = shard_run.folder / f"m_bfcl_{harness}" / run_id
        folder.mkdir(parents=True)
        (folder / "run_info.json").write_text('{"request": {}}')
    assert shard_run.previous() == shard_run.folder / "m_bfcl_bfcl_chat" / "20260102-1"
    assert shard_run.complete() is None  # its metrics.json is not there


def test_a_worker_that_died_while_it_waited_takes_no_shard(tmp_path: Path) -> None:
    first, second = split(quick_run("http://127.0.0.1:9/v1", tmp_path), [1, 1], ["http://127.0.0.1:9/v1"], 1)
    worker = Worker(first)
    worker.signal(signal.SIGKILL)
    worker.wait(10)
    ended = worker.ended()
    assert ended is not None
    assert "SIGKILL" in ended.trouble
    assert worker.ended() is None
    assert not worker.give(second)
    assert worker.shard_run is None
    assert not second.log.exists()


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


def test_attempts_and_a_single_connection_survive_the_splitting(dataset: Dataset, tmp_path: Path) -> None:
    mistakes = parse_mistakes("wrong_value=20,http_500=10")
    options = ("--attempts", "2", "--concurrency", "1")
    with running_endpoint(dataset, mistakes=mistakes, seed=3, latency=0.02) as slow:
        in_one = run_json(slow, tmp_path / "one", *options, "--shards", "1")
        in_two = run_json(slow, tmp_path / "two", *options, "--shards", "2")
        assert slow.stats()["most_waiting"] == 1
    assert in_two["extra"].pop("shards")
    assert in_two == in_one
    assert (in_one["counts"]["total"], in_one["extra"]["concurrency"]) == (2 * ROWS, 1)


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
        (("--executor", "ray"), "--executor ray runs several shards"),
        (("--shard", "0/2", "--executor", "ray"), "--executor ray runs several shards"),
        (("--shards", "2", "--ray-address", "auto"), "--ray-address is for --executor ray"),
        (
            ("--shards", "2", "--results-dir", "/dev/null/r"),
            "--results-dir /dev/null/r: nothing can be written there (Not a directory)",
        ),
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


def shards_begun(results: Path) -> int:
    """Count the runs below a folder that have finished some rows."""
    return sum(rows_done(path.parent) >= 2 for path in results.glob("*/*/*/run_info.json"))


def descendants(pid: int) -> list[int]:
    return [found for child in children(pid) for found in (child, *descendants(child))]


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
        eventually(lambda: shards_begun(tmp_path / "r") == 2)
        victim = next(
            pid for pid in children(process.pid) if b"shard_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        assert all(
            MARKER_KEY.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(process.pid)
        )
        os.kill(victim, signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    death, end = err.splitlines()
    (log,) = re.findall(r"shard [01]/2: ended by SIGKILL.* \(log: (.*\.worker\.log)\)", death)
    assert (tmp_path / log).is_file()
    assert re.search(r"no result of shard [01]/2; the same command with --reuse repeats only what is missing", end)
    finished = list(tmp_path.glob("r/*/*/*/metrics.json"))
    assert len(finished) == 1
    with driver(slow, tmp_path, "--results-dir", "r", "--reuse", "--json") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["counts"] == {"total": ROWS, "evaluated": ROWS, "error": 0}
    # Of all rows only the one the killed shard was waiting for was asked again.
    assert len(slow.stats()["rows"]) == ROWS <= slow.stats()["requests"] <= ROWS + 1
    # Once all are complete none is started again, and the result says how they were run, not how they might have been.
    asked = slow.stats()["requests"]
    with driver(slow, tmp_path, "--results-dir", "r", "--reuse", "--json", "--concurrency", "9") as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert (slow.stats()["requests"] - asked, json.loads(out)["extra"]["concurrency"]) == (0, 1)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or MARKER_KEY.encode() not in path.read_bytes(), path


@needs_proc
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_worker_outlives_its_driver(
    number: signal.Signals, code: int, slow: RunningEndpoint, tmp_path: Path
) -> None:
    with driver(slow, tmp_path) as process:
        eventually(lambda: slow.stats()["requests"] >= 4)
        workers = descendants(process.pid)
        assert len(workers) >= 2
        assert len(children(process.pid)) == 2
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == code
    eventually(lambda: not any(alive(pid) for pid in workers))


def test_shards_that_cannot_run_are_named_and_one_worker_has_them_one_after_the_other(tmp_path: Path) -> None:
    runs = split(quick_run("", tmp_path, run_name="x"), [2, 1], ["nonsense"], 1)
    said = io.StringIO()
    ended = run_processes(runs, at_once=1, progress=Progress(said, shown=False))
    for run, end, line in zip(runs, ended, said.getvalue().splitlines(), strict=True):
        assert not end.has_result
        assert f"shard {run.shard}: ended with status 1; base_url is 'nonsense'" in end.trouble
        assert line == f"agentcompass-bfcl: {end.trouble}"
    first, second = (run.log.stat() for run in runs)
    assert second.st_mtime >= first.st_mtime
    assert [run.log.read_text().count("base_url is") for run in runs] == [1, 1]


@needs_proc
def test_after_a_death_another_worker_takes_up_the_shards_that_wait(slow: RunningEndpoint, tmp_path: Path) -> None:
    with driver(slow, tmp_path, "--results-dir", "r", "--shards", "3", "--concurrency", "1") as process:
        eventually(lambda: shards_begun(tmp_path / "r") == 1)
        (victim,) = children(process.pid)
        os.kill(victim, signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    death, end = err.splitlines()
    assert "shard 0/3: ended by SIGKILL" in death
    assert "no result of shard 0/3;" in end
    finished = {path.parent.parent.parent.name[-4:] for path in tmp_path.glob("r/*/*/*/metrics.json")}
    assert finished == {"1of3", "2of3"}


# How far it is.


def test_progress_counts_finished_rows_and_is_not_written_twice(tmp_path: Path) -> None:
    runs = split(quick_run("http://a/v1", tmp_path), [3, 2], ["http://a/v1"], 2)
    folder = runs[0].folder / "m_bfcl_bfcl_chat" / runs[0].run.run_id
    for task in ("normal/a", "normal/b", "error/c", "running/d"):
        (folder / "details" / task).mkdir(parents=True)
    assert rows_done(None) == 0
    line = "3 of 5 rows; shard 0/2: 3 of 3, shard 1/2: 0 of 2"
    assert progress_line(runs[::-1]) == line
    out, now = io.StringIO(), [0.0]
    progress = Progress(out, clock=lambda: now[0])
    for moment in (0.0, 1.0, 6.0):
        now[0] = moment
        progress.update(runs)
    assert out.getvalue() == f"{line}\n"
    (folder / "details" / "error" / "c").rename(folder / "details" / "c")
    progress.update(runs)
    assert out.getvalue() == f"{line}\n"  # not yet time
    progress.finish(runs)
    assert out.getvalue() == f"{line}\n2 of 5 rows; shard 0/2: 2 of 3, shard 1/2: 0 of 2\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_progress_stays_on_one_line_which_ends_before_anything_else(tmp_path: Path) -> None:
    runs = split(quick_run("http://a/v1", tmp_path), [3, 2], ["http://a/v1"], 2)
    out = Terminal()
    progress = Progress(out, clock=lambda: 0.0, columns=lambda _: 20)
    progress.update(runs)
    progress.say("shard 1/2: ended by SIGKILL")
    progress.finish(runs)
    progress.say("and so on")
    clear, line = "\r\x1b[K", "0 of 5 rows; shard "
    assert len(line) == 19
    assert out.getvalue() == (
        f"{clear}{line}{clear}agentcompass-bfcl: shard 1/2: ended by SIGKILL\n{line}\nagentcompass-bfcl: and so on\n"
    )
    plain = Terminal()
    Progress(plain, plain=True, clock=lambda: 0.0).update(runs)
    assert plain.getvalue() == f"{progress_line(runs)}\n"


def test_progress_says_how_the_shards_score_so_far_and_warns_once(dataset: Dataset, tmp_path: Path) -> None:
    entries = dataset.rows["multiple"][:60]
    runs = split(quick_run("http://a/v1", tmp_path), [30, 30], ["http://a/v1"], 2)
    missed = AttemptRecord(verdict="miss", error_type="value_error:string", output=[{"f": "{}"}])
    out, now = io.StringIO(), [0.0]
    progress = Progress(out, clock=lambda: now[0], provisional=Provisional(dataset, clock=lambda: now[0]))
    progress.update(runs)
    assert out.getvalue() == "0 of 60 rows; shard 0/2: 0 of 30, shard 1/2: 0 of 30\n"
    for run, rows in zip(runs, (entries[:20], entries[20:25]), strict=True):
        found: dict[Entry, AttemptRecord | str] = dict.fromkeys(rows, missed)
        if run is runs[1]:
            found[rows[0]] = "transport_timeout"
        params = {"draw": "full", "subsets": "multiple", "shard": str(run.shard)}
        write_run(run.folder / "m_bfcl_bfcl_chat" / run.run.run_id, found, params=params)
    for moment in (10.0, 20.0):
        now[0] = moment
        progress.update(runs)
    assert out.getvalue().splitlines()[1:] == [
        "agentcompass-bfcl: warning: multiple: no hit in 24 rows",
        "25 of 60 rows; 0 of 24 right so far, 0.00 % (0.00 to 13.80), 1 error; shard 0/2: 20 of 30, shard 1/2: 5 of 30",
    ]


def test_what_an_endpoint_says_moves_no_cursor(tmp_path: Path) -> None:
    out = io.StringIO()
    Progress(out, shown=False).say("shard 0/2: \x1b]0;owned\x07\x1b[2J\nnext")
    assert out.getvalue() == "agentcompass-bfcl: shard 0/2: ]0;owned [2J next\n"


def test_a_worker_ended_by_a_signal_without_a_name_is_named(tmp_path: Path) -> None:
    (run,) = split(quick_run("http://a/v1", tmp_path), [3], ["http://a/v1"], 1)
    assert "shard 0/1: ended by signal 40 (log:" in how_it_ended(run, -40, died=True).trouble


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_no_worker_is_left_where_nobody_reads_any_more(slow: RunningEndpoint, tmp_path: Path) -> None:
    register()
    runs = split(quick_run(slow.base_url, tmp_path), [96, 96], [slow.base_url], 2)
    before = set(children(os.getpid()))
    with pytest.raises(BrokenPipeError):
        run_processes(runs, at_once=2, progress=Progress(Closed(), plain=True))
    eventually(lambda: not set(children(os.getpid())) - before)


def test_without_progress_only_deaths_are_said(tmp_path: Path) -> None:
    out = Terminal()
    progress = Progress(out, shown=False)
    runs = split(quick_run("http://a/v1", tmp_path), [3, 2], ["http://a/v1"], 2)
    progress.update(runs)
    progress.say("one died")
    progress.finish(runs)
    assert out.getvalue() == "agentcompass-bfcl: one died\n"


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
        tarfile.TarInfo("a/../inside"),
        tarfile.TarInfo("/absolute"),
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
    (there / "left out").write_bytes(b"")
    unpack(pack(there, [there / "deep"]), back)
    assert (back / "deep" / "er" / "file").read_bytes() == b"\x00content"
    assert [path.name for path in back.iterdir()] == ["deep"]


@pytest.mark.parametrize("broken", [b"", b"no archive", packed((tarfile.TarInfo("a"), b"content" * 99))[:-20]])
def test_what_is_no_whole_archive_is_refused_in_one_line(broken: bytes, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="cannot be unpacked") as refusal:
        unpack(broken, tmp_path)
    assert "\n" not in str(refusal.value)


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

"""Looking at a run while it goes on: the numbers of its files, early warnings, and nothing touched."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint import parse_mistakes, running_endpoint
from agentcompass_bfcl.report.progress import render_progress
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.watching import open_watched, tallies, totals, warnings
from host_runs import Finished
from records import record
from result_trees import write_run
from test_run_dir import contents

CALL = [{"f": "{}"}]
HIT = AttemptRecord(verdict="hit", output=CALL)
MISS = AttemptRecord(verdict="miss", error_type="value_error:string", output=CALL)


def run_of(folder: Path, rows: dict[Entry, AttemptRecord | str], **params: object) -> Path:
    """Write a run whose attempts were finished in the order given, a second apart."""
    write_run(folder, rows, params={"draw": "full", **params})
    for moment, entry in enumerate(rows):
        (result,) = folder.glob(f"details/*/{entry.id}--*/attempt-1/result.json")
        os.utime(result, (moment, moment))
    return folder


def warned(folder: Path, dataset: Dataset) -> list[str]:
    watched = open_watched(folder, dataset)
    watched.look()
    return list(warnings([watched]).values())


def test_the_counts_are_those_of_the_files_and_nothing_is_written(lean: Finished, dataset: Dataset) -> None:
    before = contents(lean.run_dir)
    watched = open_watched(lean.run_dir, dataset)
    watched.look()
    assert tallies([watched]) == lean.result.tallies()
    assert totals([watched]) == {name: tally.drawn for name, tally in lean.result.tallies().items()}
    assert watched.is_over
    assert contents(lean.run_dir) == before


def test_what_is_half_written_is_left_for_the_next_look(dataset: Dataset, tmp_path: Path) -> None:
    first, second = dataset.rows["multiple"][:2]
    run_dir = run_of(tmp_path, {first: HIT, second: MISS})
    (result,) = run_dir.glob(f"details/*/{second.id}--*/attempt-1/result.json")
    whole = result.read_text()
    watched = open_watched(run_dir, dataset)
    for content in ("", whole[: len(whole) // 2], "null", "[" * 10**5):
        result.write_text(content)
        watched.look()
        assert len(watched.finished) == 1
    result.write_text(whole)
    watched.look()
    watched.look()
    assert tallies([watched])["multiple"].n == 2


def test_a_task_that_is_moved_by_the_host_is_counted_once(dataset: Dataset, tmp_path: Path) -> None:
    entry = dataset.rows["multiple"][0]
    run_dir = run_of(tmp_path, {entry: HIT})
    watched = open_watched(run_dir, dataset)
    watched.look()
    (run_dir / "details" / "normal").rename(run_dir / "details" / "error")
    watched.look()
    assert len(watched.finished) == 1


def test_twenty_replies_without_a_call_are_noticed_and_one_call_among_them_is_enough(
    dataset: Dataset, tmp_path: Path
) -> None:
    silent = AttemptRecord(verdict="miss", error_type="x:wrong_count", output=[])
    rows = dataset.rows["multiple"][:21]
    said = "no tool call in the first 20 replies that were asked for one"
    assert any(said in text for text in warned(run_of(tmp_path / "a", dict.fromkeys(rows, silent)), dataset))
    assert not any(said in text for text in warned(run_of(tmp_path / "b", dict.fromkeys(rows[:19], silent)), dataset))
    one = {**dict.fromkeys(rows[:20], silent), rows[7]: MISS}
    assert not any(said in text for text in warned(run_of(tmp_path / "c", one), dataset))
    prompt = run_of(tmp_path / "d", dict.fromkeys(rows, silent), mode="prompt")
    assert not any(said in text for text in warned(prompt, dataset))
    irrelevance = dict.fromkeys(dataset.rows["irrelevance"][:30], AttemptRecord(verdict="hit", output=[]))
    assert warned(run_of(tmp_path / "e", irrelevance), dataset) == []


def test_a_subset_without_a_hit_in_twenty_rows_is_named(dataset: Dataset, tmp_path: Path) -> None:
    rows = {**dict.fromkeys(dataset.rows["multiple"][:20], MISS), **dict.fromkeys(dataset.rows["parallel"][:19], MISS)}
    assert warned(run_of(tmp_path / "a", rows), dataset) == ["multiple: no hit in 20 rows"]


def test_of_several_attempts_at_few_rows_no_subset_is_called_hopeless(dataset: Dataset, tmp_path: Path) -> None:
    entry = dataset.rows["multiple"][0]
    run_dir = write_run(tmp_path, {entry: MISS}, params={"draw": "full"}, k=20)
    (first,) = run_dir.glob("details/*/*/attempt-1")
    for number in range(2, 21):
        shutil.copytree(first, first.with_name(f"attempt-{number}"))
    assert warned(run_dir, dataset) == []


def test_a_merged_run_is_not_counted_beside_its_shards(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = dataset.rows["multiple"]
    for index in range(2):
        run_of(
            tmp_path / f"a-shard{index}" / "m" / "1", {entries[index]: HIT}, subsets=["multiple"], shard=f"{index}/2"
        )
    merged = run_of(tmp_path / "a" / "m" / "1", dict.fromkeys(entries[:2], HIT), subsets=["multiple"])
    document = record(dataset, shards=[{"shard": "0/2"}, {"shard": "1/2"}]).document
    extra = {**document.extra, **document.model_dump(mode="json", exclude={"extra"})}
    (merged / "metrics.json").write_text(json.dumps({"extra": extra}))
    assert main(["watch", str(tmp_path), "--once"]) == 0
    assert re.search(r"^all +2 +200 ", capsys.readouterr().out, re.MULTILINE)
    assert main(["watch", str(merged), "--once"]) == 0
    assert re.search(r"^all +2 +200 ", capsys.readouterr().out, re.MULTILINE)


def test_errors_that_become_more_are_noticed_and_a_steady_share_is_not(dataset: Dataset, tmp_path: Path) -> None:
    rows = dataset.rows["multiple"][:150]
    rising = {entry: ("transport_timeout" if place >= 140 else HIT) for place, entry in enumerate(rows)}
    assert warned(run_of(tmp_path / "a", rising), dataset) == [
        "errors are rising: 10 of the last 50 rows, 0 of the 100 before"
    ]
    steady = {entry: ("transport_timeout" if place % 5 == 0 else HIT) for place, entry in enumerate(rows)}
    assert warned(run_of(tmp_path / "b", steady), dataset) == []


def test_replies_cut_off_are_noticed(dataset: Dataset, tmp_path: Path) -> None:
    cut = AttemptRecord(verdict="hit", output=CALL, finish_reason="length")
    rows = dataset.rows["multiple"][:20]
    assert warned(run_of(tmp_path / "a", {**dict.fromkeys(rows, HIT), rows[0]: cut, rows[1]: cut}), dataset) == [
        "2 of 20 replies cut off at the token limit: is max_tokens too small?"
    ]


def test_shards_are_shown_together(dataset: Dataset, tmp_path: Path) -> None:
    entries = dataset.rows["multiple"]
    for index in range(2):
        run_of(tmp_path / f"s{index}", {entries[index]: HIT}, subsets=["multiple"], shard=f"{index}/2")
    watched = [open_watched(tmp_path / f"s{index}", dataset) for index in range(2)]
    for run in watched:
        run.look()
    text = render_progress(watched)
    assert re.search(r"^multiple +2 +200 +2 +0 +100.00 +34.24 to 100.00$", text, re.MULTILINE)
    assert "shard 0/2: 1 of 100, shard 1/2: 1 of 100" in text


def test_what_is_no_run_is_refused_once_and_waited_for_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(tmp_path), "--once"]) == 1
    assert capsys.readouterr().out == f"{tmp_path}: nothing there yet\n"
    assert main(["watch", str(tmp_path / "to\ncome"), str(tmp_path), "--once"]) == 1
    assert capsys.readouterr() == (f"{tmp_path}/to come: nothing there yet\n{tmp_path}: nothing there yet\n", "")
    (tmp_path / "run_info.json").write_text("{")
    assert main(["watch", str(tmp_path), "--once"]) == 1
    assert "not the description of a run" in capsys.readouterr().err
    assert main(["watch", str(tmp_path), "--seconds", "0"]) == 1


def test_a_live_run_is_watched_in_a_terminal_to_its_end(dataset: Dataset, tmp_path: Path) -> None:
    with running_endpoint(dataset, mistakes=parse_mistakes("wrong_value=20"), latency=0.2) as endpoint:
        limits = ["--draw", "mini", "--limit", "30", "--concurrency", "2", "--progress", "none"]
        run = [sys.executable, "-m", "agentcompass_bfcl", "run", "m", "--base-url", endpoint.base_url, *limits]
        with subprocess.Popen([*run, "--results-dir", "r"], cwd=tmp_path, stdout=subprocess.DEVNULL) as running:
            shown = terminal([sys.executable, "-m", "agentcompass_bfcl", "watch", "r", "--seconds", "0.5"], tmp_path)
            assert running.wait(timeout=120) == 0
    (metrics,) = tmp_path.glob("r/*/*/*/metrics.json")
    done = [int(found) for found in re.findall(r"^all +(\d+) +30 ", shown, re.MULTILINE)]
    assert done == sorted(done)
    assert len(set(done)) > 2  # it was seen to grow
    last = shown.rpartition("\x1b[H\x1b[2J")[2]
    tally = sum((tally.hits for tally in read_result(metrics.parent).tallies().values()), 0)
    assert re.search(rf"^all +30 +30 +{tally} +0 ", last, re.MULTILINE)


def terminal(command: list[str], folder: Path) -> str:
    """Run a command on a pseudo-terminal and give all it showed."""
    ours, theirs = pty.openpty()
    pieces: list[bytes] = []

    def collect() -> None:
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                return
            if not piece:
                return
            pieces.append(piece)

    reader = threading.Thread(target=collect, daemon=True)
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        reader.start()
        assert process.wait(timeout=150) == 0
    time.sleep(0.1)
    reader.join(5)
    os.close(ours)
    return b"".join(pieces).decode().replace("\r\n", "\n")

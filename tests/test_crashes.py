"""The crash campaign in short, and what it found: runs go on after anything, ask nothing twice, and say one line."""

from __future__ import annotations

import io
import json
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agentcompass_bfcl.errors import RunFailedError
from agentcompass_bfcl.host import run_in_host
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.workers.plan import split
from agentcompass_bfcl.workers.processes import run_processes
from agentcompass_bfcl.workers.progress import Progress
from agentcompass_bfcl.workers.worker import last_line
from host_runs import MakeEndpoint, quick_run

sys.path.append(str(Path(__file__).parents[1]))  # the campaign is a script of the project's folder, and not installed

from benchmarks.crash_moments import moments
from benchmarks.crash_page import BEGIN, END, Outcome, Struck, write_section

ROOT = Path(__file__).parents[1]
ROWS = 12
FEW = {"draw": "mini", "limit": ROWS}
STRUCK = Struck("1-0", 1, "SIGKILL", "driver", "asking", "", True, 7, 0, 1, 1, 9.4, ())


def test_moments_are_spread_over_the_whole_life_and_the_same_every_time() -> None:
    for shards in (1, 2):
        drawn = moments(50, shards, 3)
        assert drawn == moments(50, shards, 3) != moments(50, shards, 4)
        assert sorted(int(moment.fraction * 50) for moment in drawn) == list(range(50))
        assert set(Counter(moment.signal for moment in drawn).values()) == {16, 17}
    assert {(moment.signal, moment.target) for moment in drawn} == {
        (number, target)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
        for target in ("driver", "worker", "all")
    }


def test_the_tables_stand_between_their_markers_and_a_broken_rule_in_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nbefore\n\n## Crashes\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    outcome = Outcome(1, "a | b\nc", "12 rows", title="disk full", shards=2)
    write_section(page, [STRUCK], [outcome], "mini", 48)
    text = page.read_text()
    assert text.startswith("# Title\n\nbefore\n\n## Crashes\n")
    assert text.endswith(f"{END}\n\nafter\n")
    assert "old" not in text
    assert "| one process | SIGKILL | while rows were asked | 1 | 0 | 1 | 7 | 0 | 1 | 9 |" in text
    assert "| disk full | 2 shards | 1 | a \\| b c | 12 rows |" in text
    assert "Every rule was kept." in text
    write_section(page, [replace(STRUCK, complaints=("x",))], [replace(outcome, complaints=("lost",))], "mini", 48)
    assert "In 2 cases a rule was broken." in page.read_text()
    assert "**BROKEN: lost**" in page.read_text()
    fresh = tmp_path / "docs" / "fresh.md"
    write_section(fresh, [STRUCK], [], "mini", 48)
    assert "## Crashes" in fresh.read_text()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted, and looked for in /proc")
def test_a_run_that_is_killed_at_some_moment_and_again_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.crashes", "--moments", "1", "--limit", "24", "--seed", "5"]
    page = tmp_path / "page.md"
    done = subprocess.run(
        [*command, "--only", "single", "sharded", "--scratch", str(tmp_path / "scratch"), "--write", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(": the same, ") == 2
    assert page.read_text().count(" | 1 | 0 | 1 | ") == 4  # each moment in a line of its own and in its sum


# What it found.


@pytest.mark.usefixtures("agentcompass")
def test_a_run_killed_while_it_took_over_rows_costs_no_request(endpoint_with: MakeEndpoint, tmp_path: Path) -> None:
    with endpoint_with() as endpoint:
        first = run_in_host(quick_run(endpoint.base_url, tmp_path, benchmark_params=FEW))
        killed = first.with_name("killed")
        killed.mkdir()
        info = json.loads((first / "run_info.json").read_bytes())
        info |= {"run_id": "killed", "reused_from": {"run_id": first.name, "path": str(first)}}
        info["started_at"] = "2099-01-01T00:00:00+00:00"  # the host would take it for the last
        (killed / "run_info.json").write_text(json.dumps(info))
        assert endpoint.stats()["requests"] == ROWS
        last = run_in_host(quick_run(endpoint.base_url, tmp_path, benchmark_params=FEW, run_id="last", reuse=True))
        assert endpoint.stats()["requests"] == ROWS
    assert read_result(last).to_json() == read_result(first).to_json()


@pytest.mark.usefixtures("agentcompass")
def test_a_run_whose_results_were_removed_under_it_does_not_stand_in_the_way_of_the_next(
    endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    run = quick_run("", tmp_path, benchmark_params=FEW, reuse=True)
    left = tmp_path / run.run_name / "some-model_bfcl_bfcl_chat" / "gone"
    left.mkdir(parents=True)
    (left / "run_info.json").write_text(
        json.dumps(
            {"schema_version": "agentcompass.run_info.v3", "run_id": "gone", "status": "failed", "error": "gone"}
        )
    )
    with endpoint_with() as endpoint:
        result = read_result(run_in_host(replace(run, base_url=endpoint.base_url)))
    assert result.counts.evaluated == ROWS


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let this process write no file that is larger, as a quota or a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_why_a_shard_ended_is_said_also_where_its_log_cannot_be_written(tmp_path: Path) -> None:
    run = quick_run("http://127.0.0.1:9/v1", tmp_path, run_name="x")
    (shard_run,) = split(run, [ROWS], [run.base_url], 1)
    said = io.StringIO()
    with no_file_beyond(0):
        (ended,) = run_processes([shard_run], at_once=1, progress=Progress(said, shown=False))
    assert not ended.has_result
    assert f"--results-dir {tmp_path}: nothing can be written there (File too large)" in ended.trouble
    assert said.getvalue() == f"agentcompass-bfcl: {ended.trouble}\n"
    assert shard_run.log.read_bytes() == b""
    shard_run.log.unlink()
    assert last_line(shard_run.log) == ""  # removed under the run


@pytest.mark.usefixtures("agentcompass")
def test_a_disk_that_is_full_ends_a_run_in_one_line_and_nothing_that_was_scored_is_lost(
    endpoint_with: MakeEndpoint, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with endpoint_with() as endpoint:
        run = quick_run(endpoint.base_url, tmp_path, benchmark_params=FEW, concurrency=2)
        with no_file_beyond(8 * 1024), pytest.raises(RunFailedError, match="File too large") as failure:
            run_in_host(run)
        assert "\n" not in str(failure.value)
        assert str(tmp_path / run.run_name) in str(failure.value)
        assert "run again with --reuse" in str(failure.value)
        assert capfd.readouterr() == ("", "")
        scored = list(tmp_path.glob("*/*/*/details/normal/*"))
        asked = endpoint.stats()["requests"]
        assert 0 < len(scored) < ROWS
        last = run_in_host(replace(run, run_id="last", reuse=True))
        assert endpoint.stats()["requests"] - asked <= ROWS - len(scored)
        whole = run_in_host(replace(run, run_name="undisturbed", concurrency=2))
    assert read_result(last).to_json() == read_result(whole).to_json()
    shutil.rmtree(tmp_path / "undisturbed")

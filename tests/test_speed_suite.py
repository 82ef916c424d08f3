"""The speed suite in pieces: what it measures is there, what is finished is not measured again. No time is asserted."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint import running_endpoint

sys.path.append(str(Path(__file__).parents[1]))  # the suite is a script of the project's folder, and not installed

from benchmarks.speed import Finished, take_runs
from benchmarks.speed_commands import PARTS_REFERENCE, parts
from benchmarks.speed_floor import draw_params, main, requests_of, run_bare
from benchmarks.speed_measure import MeasurementError, Usage, measure, measure_together, median, with_requests
from benchmarks.speed_runs import Extent, Run, bare_floor, ideal_seconds, instant_runs, slow_runs
from benchmarks.speed_table import BEGIN, END, commands_table, instant_table, replace_section, slow_table

BUSY = [sys.executable, "-c", "x = bytearray(60_000_000); s = sum(range(2_000_000))"]
SOME = Usage(wall=4.0, cpu=2.0, peak_mb=50.0, start_up=1.0, requests=3.0)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_a_process_is_measured_with_its_memory_and_processor_time() -> None:
    usage = measure(BUSY)
    assert usage.wall > 0
    assert usage.cpu > 0
    assert usage.peak_mb > 57
    assert (usage.start_up, usage.requests) == (None, None)


def test_processes_side_by_side_add_up_but_for_memory() -> None:
    both = measure_together([BUSY, [sys.executable, "-c", "pass"]])
    assert 57 < both.peak_mb < 200


def test_the_memory_of_who_measures_is_not_counted() -> None:
    held = bytearray(300_000_000)
    assert measure([sys.executable, "-c", "pass"]).peak_mb < 100
    assert len(held) == 300_000_000


def test_a_process_that_ends_badly_is_no_measurement_and_its_last_words_are_told() -> None:
    with pytest.raises(MeasurementError, match=r"status 3 .*no such luck"):
        measure([sys.executable, "-c", "import sys; print('no such luck', file=sys.stderr); sys.exit(3)"])
    assert measure([sys.executable, "-c", "raise SystemExit(3)"], allowed=(3,)).wall > 0


def test_the_median_is_of_each_figure_and_memory_is_the_most() -> None:
    others = [replace(SOME, wall=9.0, cpu=1.0, peak_mb=70.0), replace(SOME, wall=1.0, cpu=9.0, requests=None)]
    assert median([SOME, *others]) == Usage(4.0, 2.0, 70.0, 1.0, 3.0)


def test_start_up_and_requests_are_told_apart_by_when_attempts_were_made(tmp_path: Path) -> None:
    begun = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - as the host writes its times
    for row, (first, last) in enumerate([(5, 6), (3, 4), (4, 9)]):
        attempt = tmp_path / f"run/details/normal/row{row}/attempt-1"
        attempt.mkdir(parents=True)
        times = {"started_at": begun + timedelta(seconds=first), "finished_at": begun + timedelta(seconds=last)}
        (attempt / "result.json").write_text(json.dumps({"trajectory": times}, default=str))
    usage = with_requests(SOME, tmp_path, begun)
    assert (usage.start_up, usage.requests) == (3.0, 6.0)
    with pytest.raises(MeasurementError, match="no attempt"):
        with_requests(SOME, tmp_path / "nowhere", begun)


def test_what_is_finished_is_not_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "finished.json"
    assert Finished(file).get("one", lambda: 1) == 1
    again = Finished(file)
    assert again.get("one", lambda: 2) == 1
    assert again.get("two", lambda: 2) == 2
    assert json.loads(file.read_text()) == {"one": 1, "two": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["finished.json"]


def test_runs_that_are_all_finished_need_no_endpoint(tmp_path: Path) -> None:
    def take(base_url: str, folder: Path) -> Usage:
        raise AssertionError("measured again")

    run = Run("instant", "some", 24, take)
    finished = Finished(None)
    finished.get(run.key, SOME.to_json)
    assert take_runs([run], finished, tmp_path) == {run.key: SOME}


def test_a_run_that_ends_badly_is_named_and_the_others_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(base_url: str, folder: Path) -> Usage:
        raise MeasurementError("status 1 of something")

    def work(base_url: str, folder: Path) -> Usage:
        assert base_url.startswith("http://127.0.0.1")
        assert folder.is_dir()
        return SOME

    runs, finished = [Run("instant", "bad", 24, fail), Run("instant", "good", 24, work)], Finished(None)
    assert take_runs(runs, finished, tmp_path) == {"instant: good, 24": SOME}
    assert "instant: bad, 24: FAILED, status 1 of something" in capsys.readouterr().err
    assert "instant: bad, 24" not in finished


@pytest.mark.parametrize("extent", Extent)
def test_every_measurement_has_a_name_of_its_own(extent: Extent) -> None:
    keys = [run.key for run in [*instant_runs((200, 995, 3625), extent), *slow_runs(995, extent)]]
    assert len(set(keys)) == len(keys)


def test_one_process_over_everything_is_only_run_when_everything_is_wanted() -> None:
    usual = [run.name for run in instant_runs((3625,))]
    assert usual == ["`bfcl_chat`, as `run` splits it", "floor: bare asyncio loop, `openai`"]
    assert "`openai_chat`, 1 shard" in [run.name for run in instant_runs((3625,), Extent.EVERYTHING)]


@pytest.mark.parametrize(
    ("rows", "params"), [(995, {"draw": "golden"}), (3625, {"draw": "full"}), (7, {"draw": "full", "limit": 7})]
)
def test_a_number_of_rows_names_a_draw(rows: int, params: dict[str, object]) -> None:
    assert draw_params(rows) == params
    assert len(requests_of(rows)) == rows


@pytest.mark.parametrize("client", ["openai", "httpx"])
def test_the_bare_loop_sends_every_request_once(dataset: Dataset, client: str) -> None:
    bodies = requests_of(24)
    with running_endpoint(dataset) as served:
        assert asyncio.run(run_bare(served.base_url, bodies, 4, client)) > 0
        stats = served.stats()
    assert stats["requests"] == 24
    assert stats["served"] == {"right": 24}


def test_the_bare_loop_is_measured_as_a_process(dataset: Dataset, tmp_path: Path) -> None:
    with running_endpoint(dataset) as served:
        usage = bare_floor("instant", "httpx", 24, 4).take(served.base_url, tmp_path)
    assert usage.requests is not None
    assert 0 < usage.requests < usage.wall


@pytest.mark.slow
def test_the_host_runs_what_does_nothing_and_says_how_long_it_took(tmp_path: Path) -> None:
    told = tmp_path / "told"
    options = ["--rows", "6", "--concurrency", "2", "--results-dir", str(tmp_path), "--latency", "0.01"]
    assert main(["host", *options, "--out", str(told)]) == 0
    assert float(told.read_text()) > 0.01 * 3
    (result,) = tmp_path.glob("*/*/metrics.json")
    assert json.loads(result.read_text())["series"][0]["value"] == 1.0


def test_the_parts_are_measured_beside_their_reference() -> None:
    measured = parts(rows=24, rounds=1)
    assert PARTS_REFERENCE in measured
    assert {"scoring", "aggregating"} < set(measured)
    assert all(seconds >= 0 for seconds in measured.values())


def test_the_instant_table_compares_with_plain_openai_chat_of_the_same_size() -> None:
    runs = [run for run in instant_runs((200, 995)) if "1 shard" in run.name]
    taken = {run.key: replace(SOME, wall=run.samples / (10 if "openai" in run.name else 25)) for run in runs}
    taken[runs[-1].key] = replace(taken[runs[-1].key], cpu=2.0 * 995 / 200 * 1.5)
    rows = cells(instant_table(runs, taken))
    assert [row[2] for row in rows[2:]] == ["10.0", "25.0", "10.0", "25.0"]
    assert [row[3] for row in rows[2:]] == ["1.00", "2.50", "1.00", "2.50"]
    assert rows[-1][5] == "1.50"


def test_the_slow_table_is_in_times_of_the_ideal() -> None:
    assert ideal_seconds(995) == pytest.approx(6.4)
    run = slow_runs(995)[0]
    (row,) = cells(slow_table([run], {run.key: replace(SOME, requests=12.8, wall=19.2)}))[2:]
    assert (row[2], row[3], row[5]) == ("12.8", "2.00", "3.00")


def test_without_its_reference_a_table_has_no_ratio() -> None:
    (row,) = cells(commands_table({"`--help`": SOME}))[2:]
    assert row == ["`--help`", "4.00", "2.00", "-", "50"]


def test_a_section_is_replaced_between_its_marks_and_nothing_else() -> None:
    page = f"# Speed\n\nwords\n\n{BEGIN}\n\nold\n\n{END}\nafter\n"
    assert replace_section(page, "new") == f"# Speed\n\nwords\n\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert replace_section("", "new") == f"{BEGIN}\n\nnew\n\n{END}\n"
    assert replace_section("# Speed\n", "new").startswith(f"# Speed\n\n{BEGIN}")

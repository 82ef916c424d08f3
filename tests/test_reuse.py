"""Which run ``--reuse`` goes on with: of the family begun last the one with the most verdicts."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.host import require_writable
from agentcompass_bfcl.host_log import failures_said_once
from agentcompass_bfcl.reuse import run_to_go_on_with

DAY = "2026-12-01T{:02}:00:00+00:00"


def write_run(
    folder: Path, name: str, hour: int, *, source: str = "", normal: int = 0, running: int = 0, error: int = 0
) -> Path:
    """Leave a directory as a run does that began at ``hour`` and has so many rows in each state."""
    run_dir = folder / "m_bfcl_bfcl_chat" / name
    run_dir.mkdir(parents=True)
    info: dict[str, Any] = {"run_id": name, "started_at": DAY.format(hour), "request": {}}
    if source:
        info["reused_from"] = {"run_id": source, "path": str(run_dir.with_name(source))}
    (run_dir / "run_info.json").write_text(json.dumps(info))
    for state, count in (("normal", normal), ("running", running), ("error", error)):
        for number in range(count):
            attempt = run_dir / "details" / state / f"row-{number}" / "attempt-1"
            attempt.mkdir(parents=True)
            (attempt / "result.json").write_text("{}")
    return run_dir


def chosen(folder: Path) -> str | None:
    found = run_to_go_on_with(folder, "bfcl_chat")
    return None if found is None else found.name


def test_without_a_run_there_is_none_to_go_on_with(tmp_path: Path) -> None:
    assert chosen(tmp_path / "nothing") is None
    assert chosen(tmp_path) is None


def test_a_run_killed_while_it_took_over_rows_is_passed_over_for_the_one_that_has_them(tmp_path: Path) -> None:
    write_run(tmp_path, "a", 1, normal=9)
    write_run(tmp_path, "b", 2, source="a", normal=4)
    write_run(tmp_path, "c", 3, source="a")
    assert chosen(tmp_path) == "a"
    write_run(tmp_path, "d", 4, source="a", normal=10)
    assert chosen(tmp_path) == "d"


def test_a_clock_set_back_does_not_hide_what_was_scored_since(tmp_path: Path) -> None:
    write_run(tmp_path, "z", 23, normal=5)
    write_run(tmp_path, "a", 1, source="z", normal=8)
    write_run(tmp_path, "b", 2, source="a", normal=9)
    assert chosen(tmp_path) == "b"


def test_rows_of_a_run_that_was_begun_anew_are_not_mixed_with_an_older_ones(tmp_path: Path) -> None:
    write_run(tmp_path, "a", 1, normal=9)
    write_run(tmp_path, "b", 2, source="a", normal=9)
    write_run(tmp_path, "c", 3, normal=1)
    assert chosen(tmp_path) == "c"
    write_run(tmp_path, "d", 4, source="b", normal=9)  # goes on with the older one all the same
    assert chosen(tmp_path) == "c"


def test_a_family_stays_one_when_its_first_run_is_removed(tmp_path: Path) -> None:
    write_run(tmp_path, "b", 2, source="a", normal=9)
    write_run(tmp_path, "c", 3, source="a", normal=4)
    assert chosen(tmp_path) == "b"


def test_finished_rows_count_more_than_begun_ones_and_failed_ones_not_at_all(tmp_path: Path) -> None:
    write_run(tmp_path, "a", 1, normal=2, error=7)
    write_run(tmp_path, "b", 2, source="a", normal=2, running=1)
    write_run(tmp_path, "c", 3, source="a", normal=1, running=9)
    assert chosen(tmp_path) == "b"


def test_of_equal_runs_it_is_the_newest(tmp_path: Path) -> None:
    for hour, name in ((1, "a"), (3, "b"), (2, "c")):
        write_run(tmp_path, name, hour, source="" if name == "a" else "a", normal=3)
    assert chosen(tmp_path) == "b"


def test_runs_that_name_each_other_as_their_source_do_not_hold_anything_up(tmp_path: Path) -> None:
    write_run(tmp_path, "a", 1, source="b", normal=1)
    write_run(tmp_path, "b", 2, source="a", normal=2)
    write_run(tmp_path, "c", 3, source="c", normal=3)
    assert chosen(tmp_path) == "c"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"{}", b'{"run_id": "b", "status": "failed"}']
)
def test_what_the_host_could_not_read_is_passed_over(content: bytes, tmp_path: Path) -> None:
    write_run(tmp_path, "a", 1, normal=1)
    torn = write_run(tmp_path, "b", 2, normal=5)
    (torn / "run_info.json").write_bytes(content)
    assert chosen(tmp_path) == "a"


@pytest.mark.parametrize("began", [None, 7, "yesterday", "9999-99-99", DAY.format(1)])
def test_without_a_time_the_name_decides(began: object, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run_dir = write_run(tmp_path, name, 1)
        (run_dir / "run_info.json").write_text(json.dumps({"started_at": began, "reused_from": "x", "request": {}}))
    assert chosen(tmp_path) == "b"


# Where nothing can be written, and what the host says about it.


def test_a_folder_for_results_is_made_and_left_empty(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "er")
    assert list((tmp_path / "new" / "er").iterdir()) == []


def test_a_folder_that_cannot_be_written_into_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder, why in ((tmp_path / "file" / "r", "Not a directory"), (Path("/proc/none"), "No such file")):
        with pytest.raises(ConfigError, match=why) as refusal:
            require_writable(folder)
        assert str(refusal.value).startswith(f"--results-dir {folder}: ")
        assert "name another" in str(refusal.value)


def test_failures_of_the_host_go_into_its_log_only_and_other_warnings_to_the_terminal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("agentcompass.runtime.orchestration")
    full = OSError(28, "No space left on device")
    caplog.set_level(logging.INFO)
    with failures_said_once():
        assert not logging.raiseExceptions
        logger.warning("worth a look | task=%s", "a")
        logger.warning("Progress sink failed: %s", full)
        try:
            raise full
        except OSError:
            logger.exception("Benchmark task failed")
        logging.getLogger("agentcompass_bfcl.harness").warning("no call in the first 20 replies: %s", full)
    logger.warning("afterwards: %s", full)
    assert logging.raiseExceptions
    shown = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert shown == [
        "worth a look | task=a",
        f"no call in the first 20 replies: {full}",
        f"afterwards: {full}",
    ]
    (failure,) = (record for record in caplog.records if record.exc_info)
    assert (failure.levelname, failure.exc_info[1] if failure.exc_info else None) == ("INFO", full)

"""What else may happen to a run: a full disk, no right to write, a folder removed, a second process, a wrong clock."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.crash_page import Outcome
from benchmarks.crash_runs import Command, Driver, Ended, Endpoint, finished_rows, run_dirs, scored_rows

_FEW_FILES = 64
_SMALL_FILE = 24 * 1024  # bytes; a run_info.json of some twenty rows
_SMALL_DISK = "700k"
_LARGE_DISK = "200m"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a condition is made in. ``undisturbed`` is the canonical result of a run that nothing happens to."""

    server: Endpoint
    command: Command
    folder: Path
    undisturbed: str

    @property
    def results(self) -> Path:
        """Name the folder for results."""
        return self.folder / "results"

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """Make an empty folder and remove it at the end, with what is mounted in it."""
        self._clear()
        self.folder.mkdir(parents=True)
        try:
            yield
        finally:
            self._clear()

    def _clear(self) -> None:
        while os.path.ismount(self.results):
            subprocess.run(["umount", str(self.results)], check=True)  # noqa: S607 - wherever it is
        shutil.rmtree(self.folder, ignore_errors=True)

    def mount(self, *options: str) -> bool:
        """Mount a file system in memory where results go; False where that is not allowed."""
        self.results.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(self.results)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def remount(self, *options: str) -> None:
        """Change the mounted file system's options."""
        command = ["mount", "-o", f"remount,{','.join(options)}", str(self.results)]
        subprocess.run(command, check=True)

    def begun(self, rows: int, *options: str) -> Driver:
        """Start a run, and return once it has finished so many rows."""
        known = run_dirs(self.results) if self.results.exists() else []
        driver = self.command.start(self.results, *options)
        driver.wait_until(lambda: finished_rows(self.results, since=known) >= rows)
        return driver

    def refused(self, ended: Ended, lift: Callable[[], None]) -> Outcome:
        """Judge a command that a condition ended, lift it, and go on."""
        complaints = _one_line(ended)
        if ended.code != 1:
            complaints.append(f"exit code {ended.code} instead of 1")
        if ended.stdout:
            complaints.append("a result is printed")
        return self.gone_on(ended, lift, complaints)

    def gone_on(self, ended: Ended, lift: Callable[[], None], complaints: list[str]) -> Outcome:
        """Go on once the condition is lifted: the same result, and nothing asked that has a verdict."""
        scored, before = scored_rows(self.results), self.server.requests()
        lift()
        last = self.command.run(self.results, "--reuse")
        asked = self.server.requests() - before
        again = sorted(row for row in scored if asked[row])
        if last.code != 0:
            complaints.append(f"--reuse: exit code {last.code}: {last.stderr[-500:]}")
        if last.canonical != self.undisturbed:
            complaints.append("the result differs from that of an undisturbed run")
        if again:
            complaints.append(f"asked again though scored: {', '.join(again)}")
        then = f"{len(scored)} rows had a verdict; `--reuse` asked {asked.total()}"
        then += ", same result" if last.canonical == self.undisturbed else ""
        return Outcome(ended.code, self._said(ended), then, tuple(complaints))

    def _said(self, ended: Ended) -> str:
        if ended.code <= 0:
            return "the result" if ended.code == 0 else "nothing"
        return " / ".join(ended.stderr.strip().splitlines()).replace(f"{self.folder}/", "")[:1200]


def _one_line(ended: Ended) -> list[str]:
    """Complain of anything but lines of our own: one, and with shards one more for each that died."""
    lines = ended.stderr.splitlines()
    foreign = [line for line in lines if not line.startswith("agentcompass-bfcl: ")]
    complaints = [f"{len(foreign)} lines that are not ours, the first {foreign[0][:200]}"] if foreign else []
    return complaints + ([] if lines else ["nothing is said"])


def disk_full_on_the_way(here: Surroundings) -> Outcome:
    """Let a small disk fill up during the run."""
    if here.mount(f"size={_SMALL_DISK}"):
        ended = here.command.run(here.results)
        return here.refused(ended, lambda: here.remount(f"size={_LARGE_DISK}"))
    return file_limit(here)


def disk_full_from_the_start(here: Surroundings) -> Outcome:
    """Start a run where there is no room at all."""
    if not here.mount("size=64k"):
        return Outcome(None, "not tried", "mounting is not allowed here")
    filling = here.results / "filling"
    with contextlib.suppress(OSError), filling.open("wb") as file:
        file.write(bytes(64 * 1024))
    ended = here.command.run(here.results)

    def lift() -> None:
        filling.unlink()
        here.remount(f"size={_LARGE_DISK}")

    return here.refused(ended, lift)


def file_limit(here: Surroundings) -> Outcome:
    """Let no file grow beyond some size, as a quota would."""
    ended = here.command.start(here.results, limits=[(resource.RLIMIT_FSIZE, _SMALL_FILE)]).ended()
    return here.refused(ended, lambda: None)


def read_only(here: Surroundings) -> Outcome:
    """Start a run where nothing can be written; to root a mode says nothing, so the file system is read-only then."""
    if here.mount("size=1m", "ro"):
        return here.refused(here.command.run(here.results), lambda: here.remount("rw", f"size={_LARGE_DISK}"))
    here.results.chmod(0o555)
    if os.access(here.results, os.W_OK):
        return Outcome(None, "not tried", "root may write anywhere, and mounting is not allowed here")
    return here.refused(here.command.run(here.results), lambda: here.results.chmod(0o755))


def removed_under_the_run(here: Surroundings) -> Outcome:
    """Remove the results while rows are asked; with them the verdicts go."""
    driver = here.begun(here.command.limit // 3)
    _removed(here.results)
    return here.refused(driver.ended(), lambda: None)


def two_at_once(here: Surroundings) -> Outcome:
    """Give the same command twice at the same time, in the same place."""
    first, second = here.command.start(here.results), here.command.start(here.results)
    ended = [first.ended(), second.ended()]
    complaints = [f"exit code {end.code}: {end.stderr[-300:]}" for end in ended if end.code != 0]
    complaints += ["a result differs" for end in ended if end.canonical != here.undisturbed]
    return here.gone_on(ended[0], lambda: None, complaints)


def two_going_on_at_once(here: Surroundings) -> Outcome:
    """Kill a run, and go on with it twice at the same time."""
    driver = here.begun(here.command.limit // 2)
    _kill_all(driver)
    before, scored = here.server.requests(), scored_rows(here.results)
    first, second = (here.command.start(here.results, "--reuse") for _ in range(2))
    ended = [first.ended(), second.ended()]
    asked = here.server.requests() - before
    complaints = [f"exit code {end.code}: {end.stderr[-300:]}" for end in ended if end.code != 0]
    complaints += ["a result differs" for end in ended if end.canonical != here.undisturbed]
    complaints += [f"asked again though scored: {row}" for row in sorted(scored) if asked[row]]
    return here.gone_on(ended[0], lambda: None, complaints)


def clock_set_back(here: Surroundings) -> Outcome:
    """Kill a run that seems to have begun in a year, go on and kill it again, and go on: which of them is the last?"""
    _kill_all(here.begun(here.command.limit // 3))
    for path in run_dirs(here.results):
        _begun_later(path, timedelta(days=365))
    before = here.server.requests()
    scored = scored_rows(here.results)
    driver = here.begun(here.command.limit * 2 // 3, "--reuse")
    _kill_all(driver)
    asked = here.server.requests() - before
    complaints = [f"asked again though scored: {row}" for row in sorted(scored) if asked[row]]
    return here.gone_on(Ended(-9, "", "", 0.0), lambda: None, complaints)


def killed_while_taking_over(here: Surroundings) -> Outcome:
    """Kill a run, and what goes on with it as soon as that has a directory, with few or no rows in it."""
    _kill_all(here.begun(here.command.limit * 2 // 3))
    known = run_dirs(here.results)
    driver = here.command.start(here.results, "--reuse")
    driver.wait_until(lambda: len(run_dirs(here.results)) > len(known))
    _kill_all(driver)
    return here.gone_on(Ended(-9, "", "", 0.0), lambda: None, [])


def few_open_files(here: Surroundings) -> Outcome:
    """Run with at most 64 open files, as ``ulimit -n 64`` has it."""
    ended = here.command.start(here.results, limits=[(resource.RLIMIT_NOFILE, _FEW_FILES)]).ended()
    if ended.code == 0:
        complaints = [] if ended.canonical == here.undisturbed else ["a result differs"]
        return here.gone_on(ended, lambda: None, complaints)
    return here.refused(ended, lambda: None)


CONDITIONS: tuple[tuple[str, Callable[[Surroundings], Outcome]], ...] = (
    ("disk full on the way", disk_full_on_the_way),
    ("disk full from the start", disk_full_from_the_start),
    ("no file may grow beyond 24 KiB", file_limit),
    ("results read-only", read_only),
    ("results removed under the run", removed_under_the_run),
    ("the same command twice at once", two_at_once),
    ("killed, then `--reuse` twice at once", two_going_on_at_once),
    ("killed, clock set back by a year, killed again", clock_set_back),
    ("killed, then killed while taking over its rows", killed_while_taking_over),
    ("at most 64 open files", few_open_files),
)


def _kill_all(driver: Driver) -> None:
    for pid in driver.everybody():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    driver.ended()


def _removed(folder: Path) -> None:
    while folder.exists():  # the run makes new files in the meantime
        shutil.rmtree(folder, ignore_errors=True)


def _begun_later(run_dir: Path, by: timedelta) -> None:
    """Let a run seem to have begun later: its directory is named by time, and its description has it."""
    path = run_dir / "run_info.json"
    info = json.loads(path.read_text(encoding="utf-8"))
    info["started_at"] = (datetime.fromisoformat(info["started_at"]) + by).isoformat()
    name = f"{int(run_dir.name[:4]) + 1}{run_dir.name[4:]}"
    info["run_id"] = name
    path.write_text(json.dumps(info), encoding="utf-8")
    run_dir.rename(run_dir.with_name(name))

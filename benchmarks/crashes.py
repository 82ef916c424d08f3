"""Kill a run at any moment of its life, go on with ``--reuse``: is the result the same, and is nothing asked twice?

From the project's folder: ``python -m benchmarks.crashes [--moments 50] [--draw mini] [--write docs/reliability.md]``.
Runs of one process and runs in two shards get SIGKILL, SIGTERM and SIGINT in turn, at random moments spread evenly over
a run's life: three tenths before its first row is stored, six while rows are, one until the result is out. With shards
the driver is struck, a worker, or all of them at once. Every third run is struck again while it goes on with
``--reuse``. Then come a full disk and other conditions (``crash_conditions``).
The endpoint is a process of its own, and lives. ``--resume`` does not repeat what an earlier campaign finished. Some 30
minutes on two cores. Linux only. Exits with 1 when a result differs, a scored row is asked again or a process stays.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.crash_conditions import CONDITIONS, Surroundings
from benchmarks.crash_page import Outcome, Struck, page_text, write_section
from benchmarks.crash_runs import (
    Command,
    Driver,
    Ended,
    Endpoint,
    adopt_orphans,
    endpoint,
    finished_rows,
    left_behind,
    run_dirs,
    scored_rows,
)

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TARGETS = ("driver", "worker", "all")
_ASKING, _RESULT = 0.3, 0.9  # where in its life a run has stored its first row, and its last
_MOST_RUNS = 3
_MOST_TRIES = 4
_STRUCK_AGAIN = 3
# What a shell sees as 128 + n is n negative where the interpreter had no say, or gave its default way.
_ENDS = {signal.SIGKILL: (-9,), signal.SIGTERM: (143, -15), signal.SIGINT: (130, -2)}
_FAILED = 1  # of a driver whose worker was struck


@dataclass(frozen=True, slots=True)
class Moment:
    """When and what to strike. ``fraction`` and ``again`` are places in a run's life; None: not struck again."""

    number: int
    shards: int
    signal: signal.Signals
    target: str
    fraction: float
    again: float | None

    @property
    def name(self) -> str:
        """Name it as the campaign's state does."""
        return f"{self.shards}-{self.number}"


def moments(count: int, shards: int, seed: int) -> list[Moment]:
    """Spread moments over a run's life, one in each of ``count`` equal parts, and shuffle them."""
    drawn = random.Random(f"{seed}-{shards}")  # noqa: S311 - moments, not secrets
    fractions = [(place + drawn.random()) / count for place in range(count)]
    drawn.shuffle(fractions)
    return [
        Moment(
            number=number,
            shards=shards,
            signal=SIGNALS[number % len(SIGNALS)],
            target="driver" if shards == 1 else TARGETS[number // len(SIGNALS) % len(TARGETS)],
            fraction=fraction,
            again=drawn.random() if number % _STRUCK_AGAIN == _STRUCK_AGAIN - 1 else None,
        )
        for number, fraction in enumerate(fractions)
    ]


@dataclass(slots=True)
class Campaign:
    """One way of running. ``undisturbed`` is the canonical result.

    ``start_up`` and ``end`` are how long a run takes to its first row, and from its last; in seconds.
    """

    server: Endpoint
    command: Command
    scratch: Path
    undisturbed: str = ""
    start_up: float = 0.0
    end: float = 0.0

    def prepare(self) -> None:
        """Run once undisturbed."""
        results = self._fresh("undisturbed")
        driver = self.command.start(results)
        driver.wait_until(lambda: finished_rows(results) > 0)
        self.start_up = driver.seconds()
        driver.wait_until(lambda: finished_rows(results) == self.command.limit)
        last = driver.seconds()
        ended = driver.ended()
        if ended.canonical is None:
            raise SystemExit(f"the undisturbed run failed: {ended.stderr[-2000:]}")
        self.undisturbed, self.end = ended.canonical, ended.seconds - last
        shutil.rmtree(results)

    def strike(self, moment: Moment) -> Struck:
        """Strike at a moment, go on with ``--reuse`` until there is a result, and say what came of it."""
        begun = time.monotonic()
        for _ in range(_MOST_TRIES):
            results = self._fresh(moment.name)
            before = self.server.requests()
            driver = self.command.start(results)
            phase = self._strike(driver, moment, moment.fraction, results)
            ended = driver.ended()
            if phase:
                break
            self.end /= 2  # it had ended before; the machine has become faster
        complaints = self._looked_at(moment, phase, ended)
        scored = scored_rows(results)
        watched = [(scored, self.server.requests())]
        phases = [phase]
        if moment.again is not None:
            driver = self.command.start(results, "--reuse")
            phases.append(self._strike(driver, moment, moment.again, results))
            complaints += self._looked_at(moment, phases[-1], driver.ended())
            watched.append((scored_rows(results), self.server.requests()))
        runs = 0
        while runs < _MOST_RUNS:
            runs += 1
            ended = self.command.run(results, "--reuse")
            complaints += [f"stays: {name}" for name in left_behind([self.server.process.pid])]
            if ended.code == 0:
                break
            complaints.append(f"--reuse: exit code {ended.code}: {ended.stderr[-500:]}")
        after = self.server.requests()
        again = {row for rows, asked in watched for row in rows if after[row] > asked[row]}
        complaints += [f"asked again though scored: {', '.join(sorted(again))}"] if again else []
        identical = ended.canonical == self.undisturbed
        if not identical:
            complaints.append("the result differs from that of an undisturbed run")
        twice = sum(max(0, count - before[row] - 1) for row, count in after.items())
        if not complaints:
            shutil.rmtree(results)
        return Struck(
            name=moment.name,
            shards=moment.shards,
            signal=moment.signal.name,
            target=moment.target,
            phase=phases[0],
            again=phases[1] if len(phases) > 1 else "",
            identical=identical,
            scored=len(scored),
            scored_asked_again=len(again),
            asked_twice=twice,
            runs=runs,
            seconds=time.monotonic() - begun,
            complaints=tuple(complaints),
        )

    def _strike(self, driver: Driver, moment: Moment, fraction: float, results: Path) -> str:
        """Wait for the moment and strike; the phase the run was in, empty if it had ended before."""
        known = run_dirs(results)
        if not self._wait(driver, fraction, lambda: finished_rows(results, since=known)):
            return ""
        rows = finished_rows(results, since=known)
        workers = driver.workers()
        hit = {"driver": [driver.process.pid], "worker": workers[moment.number % 2 :][:1], "all": driver.everybody()}
        for pid in hit[moment.target] or hit["driver"]:  # before there are workers, the driver
            try:
                os.kill(pid, moment.signal)
            except ProcessLookupError:
                continue
        return "start-up" if not rows else "asking" if rows < self.command.limit else "result"

    def _wait(self, driver: Driver, fraction: float, rows: Callable[[], int]) -> bool:
        """Wait until a run has come so far in its life; False when it ended first."""
        if fraction < _ASKING:
            return driver.wait(fraction / _ASKING * self.start_up)
        share = min(1.0, (fraction - _ASKING) / (_RESULT - _ASKING))
        if not driver.wait_until(lambda: rows() >= max(1, math.ceil(share * self.command.limit))):
            return False
        return fraction < _RESULT or driver.wait((fraction - _RESULT) / (1 - _RESULT) * self.end)

    def _looked_at(self, moment: Moment, phase: str, ended: Ended) -> list[str]:
        """Say what is wrong with how a struck run ended. With a code of 0 it must have printed the whole result."""
        complaints = [f"stays: {name}" for name in left_behind([self.server.process.pid])]
        expected = _ENDS[moment.signal] if moment.target == "driver" else (*_ENDS[moment.signal], _FAILED)
        if ended.code == 0:
            complaints += [] if ended.canonical == self.undisturbed else ["exit code 0 with another result"]
            if phase in ("start-up", "asking") and moment.target != "worker":
                complaints.append(f"{moment.signal.name} was not heeded")
        elif ended.code not in expected:
            complaints.append(f"exit code {ended.code} after {moment.signal.name}: {ended.stderr[-500:]}")
        if "Traceback" in ended.stderr:
            complaints.append(f"a traceback after {moment.signal.name}: {ended.stderr[-1500:]}")
        return complaints

    def _fresh(self, name: str) -> Path:
        results = self.scratch / name
        shutil.rmtree(results, ignore_errors=True)
        return results


def main() -> int:
    """Run what is asked for, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=50, help="for each way of running")
    parser.add_argument("--draw", default="mini")
    parser.add_argument("--limit", type=int, default=48, help="rows of a run")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds before each answer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=("single", "sharded", "conditions"), help="parts; all")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a Markdown page to write the tables into")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "bfcl-crashes")
    parser.add_argument("--resume", action="store_true", help="take over what an earlier campaign finished")
    arguments = parser.parse_args()
    adopt_orphans()
    # A shell starts background jobs with SIGINT ignored, and what is ignored here would be in the runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    parts = arguments.only or ["single", "sharded", "conditions"]
    state = State(arguments.scratch / f"{arguments.draw}-{arguments.limit}-{arguments.moments}-{arguments.seed}.json")
    if arguments.resume:
        state.read()
    try:
        with endpoint(arguments.latency) as server:
            for shards, part in ((1, "single"), (2, "sharded")):
                command = Command(server.base_url, arguments.draw, arguments.limit, shards)
                campaign = Campaign(server, command, arguments.scratch / part)
                if part in parts:
                    _strike_all(campaign, moments(arguments.moments, shards, arguments.seed), state)
                if "conditions" in parts:
                    _check_all(campaign, state)
    finally:
        left_behind((), 0.0)
    struck, outcomes = list(state.struck.values()), list(state.outcomes.values())
    print(page_text(struck, outcomes, arguments.draw, arguments.limit))
    if arguments.write is not None:
        write_section(arguments.write, struck, outcomes, arguments.draw, arguments.limit)
    return 1 if any(row.complaints for row in struck) or any(row.complaints for row in outcomes) else 0


class State:
    """What is finished, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.struck: dict[str, Struck] = {}
        self.outcomes: dict[str, Outcome] = {}

    def read(self) -> None:
        """Take over what is there."""
        if self._path.is_file():
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            self.struck = {name: Struck.read(fields) for name, fields in stored["struck"].items()}
            self.outcomes = {name: Outcome.read(fields) for name, fields in stored["outcomes"].items()}

    def write(self) -> None:
        """Keep it."""
        content = {
            "struck": {name: asdict(row) for name, row in self.struck.items()},
            "outcomes": {name: asdict(row) for name, row in self.outcomes.items()},
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(content, indent=1), encoding="utf-8")
        fresh.replace(self._path)


def _strike_all(campaign: Campaign, all_moments: Sequence[Moment], state: State) -> None:
    for moment in all_moments:
        if moment.name not in state.struck:
            _prepared(campaign)
            state.struck[moment.name] = campaign.strike(moment)
            state.write()
        _say(state.struck[moment.name].line())


def _check_all(campaign: Campaign, state: State) -> None:
    for title, check in CONDITIONS:
        name = f"{campaign.command.shards}-{title}"
        if name not in state.outcomes:
            _prepared(campaign)
            surroundings = Surroundings(
                campaign.server, campaign.command, campaign.scratch / "condition", campaign.undisturbed
            )
            state.outcomes[name] = _checked(title, check, surroundings)
            state.write()
        _say(state.outcomes[name].line())


def _checked(title: str, check: Callable[[Surroundings], Outcome], surroundings: Surroundings) -> Outcome:
    with surroundings.fresh():
        outcome = check(surroundings)
    stays = left_behind([surroundings.server.process.pid])
    return replace(
        outcome,
        title=title,
        shards=surroundings.command.shards,
        complaints=(*outcome.complaints, *(f"stays: {name}" for name in stays)),
    )


def _prepared(campaign: Campaign) -> None:
    if not campaign.undisturbed:
        campaign.prepare()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The campaign's moments, and what is done and looked at in each."""

from __future__ import annotations

import contextlib
import math
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crash_page import Struck
from benchmarks.crash_runs import Command, Driver, Ended, Endpoint, finished_rows, left_behind, run_dirs, scored_rows

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
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, moment.signal)
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

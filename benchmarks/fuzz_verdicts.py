"""Judge very many odd outputs and report whatever should not happen.

    python benchmarks/fuzz_verdicts.py --outputs 1000000 --seed 0 --jobs 2

Each output is a reference answer that was spoiled, in either mode and any subset, or nonsense. It is judged as in a
run, by ``bounded.Judge``, and once more by upstream's functions in the official evaluator's order. Three things must
not happen, and end the campaign with status 1: official code reaches out of its module (a file opened for writing, a
process, a socket, an environment variable, code executed); a verdict takes too long; the two judges disagree.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from odd_outputs import Outputs
from official_steps import OfficialJudge, in_the_same_words

from agentcompass_bfcl.bounded import Judge, can_run_away
from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.official import load_official
from agentcompass_bfcl.score import Hit, Miss, Verdict, score_output
from agentcompass_bfcl.sources import load_sources, open_pinned
from agentcompass_bfcl.subsets import Language, subset_named
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value

# The promise is 0.1 s of processor time in this process; twice and a half of it allows for a busy machine.
HERE_SECONDS = 0.25
# Beyond the limit a process is killed; reading, writing and killing may take this much more.
KILL_SECONDS = 1.0
SHOWN = 10


def harmless_text(entry: Entry, output: Json) -> bool:
    """Tell whether text may be decoded in this process, to see what decoding does: nothing in it multiplies."""
    python = subset_named(entry.subset).language is Language.PYTHON
    return python and isinstance(output, str) and len(output) < 2_000 and "*" not in output and "<<" not in output


class Watch:
    """Counts what official code should never do, while it is on. The interpreter keeps such a hook for good."""

    # fmt: off
    FORBIDDEN = (
        "exec", "subprocess.", "socket.", "shutil.", "tempfile.", "ctypes.dlopen", "pty.", "urllib.", "http.",
        "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.putenv", "os.unsetenv", "os.remove",
        "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.kill",
        "os.listdir", "os.scandir", "pickle.find_class", "marshal.loads",
    )
    # fmt: on

    def __init__(self) -> None:
        self.on = False
        self.events: Counter[str] = Counter()
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
            self.events["open for writing"] += 1
        elif event.startswith(self.FORBIDDEN):
            self.events[event] += 1


@dataclass
class Findings:
    """What a campaign, or a part of it, came upon."""

    outputs: int = 0
    here: int = 0
    watched: int = 0
    hits: int = 0
    compared: int = 0
    misses: Counter[str] = field(default_factory=Counter)
    unscored: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    slowest_here: float = 0.0
    slowest_away: float = 0.0
    late: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            self.outputs + other.outputs,
            self.here + other.here,
            self.watched + other.watched,
            self.hits + other.hits,
            self.compared + other.compared,
            self.misses + other.misses,
            self.unscored + other.unscored,
            self.events + other.events,
            max(self.slowest_here, other.slowest_here),
            max(self.slowest_away, other.slowest_away),
            self.late + other.late,
            self.differences + other.differences,
        )

    @property
    def clean(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.events or self.late or self.differences)


def campaign(outputs: int, seed: str, limit_seconds: float) -> Findings:
    """Judge a number of outputs twice, and compare."""
    sources, wheel = load_sources(), open_pinned()
    made = Outputs(sources.dataset, random.Random(seed))  # noqa: S311 - repeatable, not secret
    second = OfficialJudge(load_official(wheel), limit_seconds)
    watch, findings = Watch(), Findings(outputs=outputs)
    for subset in ("simple_python", "simple_java", "simple_javascript"):  # loads what is loaded at first use
        score_output(sources.dataset.rows[subset][0], "[f(x=1)]", sources.official, Mode.PROMPT)
    with Judge(sources.official, wheel.path, limit_seconds=limit_seconds) as judge:
        for _ in range(outputs):
            entry, mode, output = made.next()
            here = not can_run_away(entry, output, mode)
            harmless = mode is Mode.PROMPT and harmless_text(entry, output)
            if not here and judge.process_id is None:  # its start is not counted against an output
                judge.verdict(entry, "[]", Mode.PROMPT)
            watch.on = here
            verdict, seconds = _timed(judge, entry, output, mode, here=here)
            watch.on = False
            _count(verdict, seconds, findings, here=here)
            if seconds > (HERE_SECONDS if here else limit_seconds + KILL_SECONDS):
                findings.late.append(f"{seconds:.3f} s: {entry.id} {mode} {output!r:.300}")
            theirs = second.verdict(entry, output, mode, here=here or harmless)
            _compare(verdict, theirs, "official steps", entry, output, findings)
            if harmless:
                watch.on = True
                again = score_output(entry, output, sources.official, mode)
                watch.on = False
                findings.watched += 1
                _compare(verdict, in_the_same_words(again), "this process", entry, output, findings)
    second.close()
    findings.events = watch.events
    return findings


def _timed(judge: Judge, entry: Entry, output: Json, mode: Mode, *, here: bool) -> tuple[Verdict, float]:
    """Judge, and tell the seconds: of processor time in this process, of anybody's time in another."""
    clock = time.thread_time if here else time.monotonic
    begin = clock()
    verdict = judge.verdict(entry, output, mode)
    return verdict, clock() - begin


def _count(verdict: Verdict, seconds: float, findings: Findings, *, here: bool) -> None:
    if here:
        findings.here += 1
        findings.watched += 1
        findings.slowest_here = max(findings.slowest_here, seconds)
    else:
        findings.slowest_away = max(findings.slowest_away, seconds)
    if isinstance(verdict, Hit):
        findings.hits += 1
    elif isinstance(verdict, Miss):
        findings.misses[verdict.error_type.partition(":")[0]] += 1
    else:
        findings.unscored[verdict.reason] += 1


def _compare(verdict: Verdict, other: str | None, who: str, entry: Entry, output: Json, findings: Findings) -> None:
    ours = in_the_same_words(verdict)
    if ours is None or other is None:
        return
    findings.compared += 1
    if ours != other:
        findings.differences.append(f"{entry.id}: {ours}, but {who}: {other}; {output!r:.300}")


def report(findings: Findings, seconds: float, jobs: int) -> str:
    """Write the findings as a table."""
    rows = [
        ("outputs", f"{findings.outputs:,}"),
        ("per second and job", f"{findings.outputs / seconds / jobs:,.0f}"),
        ("judged in this process", f"{findings.here:,}"),
        ("watched for escapes", f"{findings.watched:,}"),
        ("compared", f"{findings.compared:,}"),
        ("hits", f"{findings.hits:,}"),
        *((f"misses: {family}", f"{number:,}") for family, number in findings.misses.most_common()),
        *((f"unscored: {reason}", f"{number:,}") for reason, number in findings.unscored.most_common()),
        ("slowest in this process", f"{findings.slowest_here * 1000:.1f} ms"),
        ("slowest in the judge process", f"{findings.slowest_away * 1000:.1f} ms"),
        ("escapes", f"{findings.events.total():,}"),
        ("beyond the limit", f"{len(findings.late):,}"),
        ("differences", f"{len(findings.differences):,}"),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value:>12}" for name, value in rows]
    lines += [f"escape: {event} ({number} times)" for event, number in findings.events.items()]
    lines += [f"late: {text}" for text in findings.late[:SHOWN]]
    lines += [f"difference: {text}" for text in findings.differences[:SHOWN]]
    return "\n".join(lines).encode("ascii", "backslashreplace").decode("ascii")


def main() -> int:
    """Run a campaign as the command line asks for."""
    parser = argparse.ArgumentParser(description="Judge very many odd outputs and report whatever should not happen.")
    parser.add_argument("--outputs", type=int, default=100_000, help="how many to make (default 100000)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed and jobs make the same outputs (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that judge side by side (default 1)")
    parser.add_argument("--limit", type=float, default=0.5, help="seconds a judge process gets for one (default 0.5)")
    chosen = parser.parse_args()
    shares = [len(range(job, chosen.outputs, chosen.jobs)) for job in range(chosen.jobs)]
    begin = time.monotonic()
    with ProcessPoolExecutor(chosen.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = [pool.submit(campaign, share, f"{chosen.seed}:{job}", chosen.limit) for job, share in enumerate(shares)]
        findings = sum((part.result() for part in parts), Findings())
    print(report(findings, time.monotonic() - begin, chosen.jobs))
    return 0 if findings.clean else 1


if __name__ == "__main__":
    sys.exit(main())

"""Run a draw against an endpoint with each kind of fault: what does the user see, and does the result keep the rules?

From the project's folder: ``python -m benchmarks.faults [--draw mini] [--only NAME...] [--write docs/reliability.md]``.
Every run is the real command in a process of its own. Each kind strikes about one request in ten, the same rows every
time, or all of them; ``fault_kinds`` says what a struck row may count as. What came of a kind is kept in the
scratch folder: ``--resume`` runs only what is missing there or broke a rule, and ``--only`` replaces some of it. Golden
takes about an hour, mini a quarter of that. Exits with 1 when a rule was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from agentcompass_bfcl.dataset import Dataset, Entry, read_dataset
from agentcompass_bfcl.draw import PRESETS, select
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.run_record import read_record
from agentcompass_bfcl.sources import open_pinned
from benchmarks.fault_checks import complaints, leaks
from benchmarks.fault_endpoint import Outage, Plan, fault_endpoint
from benchmarks.fault_kinds import BREAKDOWNS, FAULTS, Breakdown, Fault
from benchmarks.fault_page import Ran, render, write_section

KEY = "bfcl-fault-campaign-key-5d1f7c2a90"
CONCURRENCY = 8
_GRACE_SECONDS = 60.0
_LIMITS = ("--retries", "1", "--retry-seconds", "20", "--timeout", "30")
_RUN_LINE = re.compile(r"^run +(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Said:
    """One command that ended, or was killed: ``code`` is None then."""

    code: int | None
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Campaign:
    """What all runs have in common. ``scratch`` keeps finished kinds, and the results of those that broke a rule."""

    dataset: Dataset
    draw: str
    entries: tuple[Entry, ...]
    scratch: Path

    def run_fault(self, fault: Fault) -> list[Ran]:
        """Run against an endpoint that strikes some rows."""
        struck = fault.struck(self.entries)
        plan: Plan = lambda entry: fault.reaction if entry.id in struck else None  # noqa: E731 - a name says what it is
        results = self._fresh(fault.name)
        with fault_endpoint(self.dataset, plan, key=KEY) as endpoint:
            said = self._command(endpoint.base_url, results, fault.options, len(struck) * fault.waits)
        ran = self._finished(fault.title, said, results, struck, endpoint.requests)
        return [self._tidied(ran, results)]

    def run_breakdown(self, breakdown: Breakdown) -> list[Ran]:
        """Run against an endpoint that is broken as a whole, then, where it can be mended, again with ``--reuse``."""
        results, requests = self._fresh(breakdown.name), Counter[str]()
        port = _free_port()
        base_url = f"http://{breakdown.host}:{port}/v1"
        with ExitStack() as stack:
            if breakdown.is_up:
                seconds = breakdown.outage
                outage = None if seconds is None else Outage(len(self.entries) // 2, seconds or None)
                plan: Plan = lambda _: breakdown.reaction  # noqa: E731 - as above
                requests = stack.enter_context(
                    fault_endpoint(self.dataset, plan, key=KEY, port=port, outage=outage)
                ).requests
            said = self._command(base_url, results, breakdown.options, 60, KEY if breakdown.has_key else None)
        if not breakdown.says:
            return [self._tidied(self._finished(breakdown.title, said, results, {}, requests), results)]
        runs = [self._ended(breakdown, said, results)]
        if breakdown.recovers:
            with fault_endpoint(self.dataset, lambda _: None, key=KEY, port=port) as mended:
                said = self._command(base_url, results, (*breakdown.options, "--reuse"), 0)
            asked = Counter({entry.id: 1 for entry in self.entries}) | mended.requests
            runs.append(self._finished(f"{breakdown.title}; then mended, `--reuse`", said, results, {}, asked))
        return [self._tidied(ran, results) for ran in runs]

    def _command(
        self, base_url: str, results: Path, options: Sequence[str], waiting: float, key: str | None = KEY
    ) -> Said:
        command = [sys.executable, "-m", "agentcompass_bfcl", "run", "some-model", "--base-url", base_url]
        command += ["--draw", self.draw, "--concurrency", str(CONCURRENCY), "--progress", "none"]
        command += ["--results-dir", str(results), *_LIMITS, *options]
        environ = {name: value for name, value in os.environ.items() if name not in ("OPENAI_API_KEY", "COLUMNS")}
        environ |= {} if key is None else {"OPENAI_API_KEY": key}
        bound = 180 + 0.5 * len(self.entries) + 2 * waiting / CONCURRENCY
        return _run_bounded(command, environ, bound)

    def _finished(
        self, title: str, said: Said, results: Path, struck: Mapping[str, Fault], requests: Mapping[str, int]
    ) -> Ran:
        found = _RUN_LINE.search(said.stdout)
        broken = leaks(KEY, results, (said.stdout, said.stderr))
        if said.code != 0 or found is None:
            last = said.stderr.strip().splitlines()[-1:] or ["nothing"]
            broken.append(f"no result: exit code {said.code}, {said.seconds:.0f} s; last line: {last[0]}")
            return Ran(title, _last_line(said), said.code, len(struck), None, said.seconds, tuple(broken))
        document = read_result(Path(found[1]))
        broken += complaints(document, self.entries, struck, requests)
        tallies = document.tallies().values()
        hits = sum(tally.hits for tally in tallies)
        counts = (hits, sum(tally.n for tally in tallies) - hits, sum(tally.errors for tally in tallies))
        return Ran(title, _result_lines(said), said.code, len(struck), counts, said.seconds, tuple(broken))

    def _ended(self, breakdown: Breakdown, said: Said, results: Path) -> Ran:
        broken = leaks(KEY, results, (said.stdout, said.stderr))
        if said.code != 1:
            broken.append(f"exit code {said.code} instead of 1, after {said.seconds:.0f} s")
        if breakdown.says not in said.stderr:
            broken.append(f"does not say {breakdown.says!r}")
        # A shard that was complete before the endpoint went keeps its result, which says that it is a shard's.
        whole = [path for path in results.rglob("metrics.json") if read_record(path.parent).shard.is_whole]
        broken += [f"there is a result, {path.relative_to(results)}" for path in whole]
        if "overall" in said.stdout:
            broken.append("a score is printed")
        return Ran(breakdown.title, _last_line(said), said.code, None, None, said.seconds, tuple(broken))

    def _fresh(self, name: str) -> Path:
        results = self.scratch / self.draw / name
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        return results

    def _tidied(self, ran: Ran, results: Path) -> Ran:
        if not ran.complaints:
            shutil.rmtree(results, ignore_errors=True)
        return ran


def main() -> int:
    """Run what is asked for, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds: dict[str, Fault | Breakdown] = {fault.name: fault for fault in FAULTS}
    kinds |= {breakdown.name: breakdown for breakdown in BREAKDOWNS}
    parser.add_argument("--draw", choices=("golden", "mini"), default="golden")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(kinds), help=", ".join(kinds))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a Markdown page to write the table into")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "bfcl-faults")
    parser.add_argument(
        "--resume", action="store_true", help="leave out the kinds that an earlier campaign finished well"
    )
    arguments = parser.parse_args()
    dataset = read_dataset(open_pinned())
    campaign = Campaign(dataset, arguments.draw, select(PRESETS[arguments.draw], dataset), arguments.scratch)
    state = arguments.scratch / f"{arguments.draw}.json"
    done: dict[str, list[Ran]] = _read_state(state) if arguments.resume or arguments.only else {}
    for name in arguments.only or kinds:
        if not arguments.resume or not _kept_every_rule(done.get(name, [])):
            kind = kinds[name]
            done[name] = campaign.run_fault(kind) if isinstance(kind, Fault) else campaign.run_breakdown(kind)
            _write_state(state, done)
        for ran in done[name]:
            print(f"{name}: {ran.line()}", file=sys.stderr, flush=True)
    rows = [ran for name in kinds for ran in done.get(name, [])]
    print(render(rows))
    if arguments.write is not None:
        write_section(arguments.write, rows, arguments.draw, [entry.id for entry in campaign.entries])
    return 1 if any(ran.complaints for ran in rows) else 0


def _kept_every_rule(runs: Sequence[Ran]) -> bool:
    return bool(runs) and not any(ran.complaints for ran in runs)


def _read_state(state: Path) -> dict[str, list[Ran]]:
    stored = json.loads(state.read_text(encoding="utf-8")) if state.is_file() else {}
    return {name: [Ran.read(fields) for fields in runs] for name, runs in stored.items()}


def _write_state(state: Path, done: Mapping[str, Sequence[Ran]]) -> None:
    whole = json.dumps({name: [asdict(ran) for ran in runs] for name, runs in done.items()}, indent=1)
    fresh = state.with_suffix(".new")
    fresh.write_text(whole, encoding="utf-8")
    fresh.replace(state)


def _run_bounded(command: Sequence[str], environ: Mapping[str, str], bound: float) -> Said:
    """Run a command, and end it after ``bound`` seconds, or when this campaign is interrupted."""
    begun = time.perf_counter()
    code: int | None = None
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=bound)
            code = process.returncode
        except subprocess.TimeoutExpired:
            # With shards it is the driver that stops its workers, each of which leads a group of its own.
            process.send_signal(signal.SIGTERM)
            try:
                stdout, stderr = process.communicate(timeout=_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                stdout, stderr = process.communicate()
        finally:
            process.terminate()
    return Said(code, stdout, stderr, time.perf_counter() - begun)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _result_lines(said: Said) -> str:
    """Give what the table says below the scores: samples, misses, errors, what was truncated."""
    below = said.stdout.partition("\nsamples ")[2]
    lines = re.split(r"^(?:clusters|draw) ", f"samples {below}", maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    return "; ".join(" ".join(line.split()) for line in lines).replace(":;", ":")


def _last_line(said: Said) -> str:
    lines = (said.stderr.strip() or said.stdout.strip()).splitlines()
    return re.sub(r"(127\.0\.0\.1|\.invalid):\d+", r"\1:PORT", lines[-1]) if lines else ""


if __name__ == "__main__":
    sys.exit(main())

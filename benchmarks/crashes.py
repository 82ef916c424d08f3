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
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.crash_conditions import CONDITIONS, Surroundings
from benchmarks.crash_moments import Campaign, Moment, moments
from benchmarks.crash_page import Outcome, Struck, page_text, write_section
from benchmarks.crash_runs import Command, adopt_orphans, endpoint, left_behind


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

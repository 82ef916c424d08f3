"""Shards in processes: a worker for each core, with one shard after the other, and none of them left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from types import FrameType

from agentcompass_bfcl.workers.plan import ShardRun
from agentcompass_bfcl.workers.progress import Progress
from agentcompass_bfcl.workers.worker import Ended, Worker

_GRACE_SECONDS = 15.0
_LOOK_SECONDS = 0.1


def cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_processes(runs: Sequence[ShardRun], *, at_once: int, progress: Progress) -> list[Ended]:
    """Run shards in at most ``at_once`` workers and return how each shard ended, in their order.

    A worker that dies is named at once with its shard; the others finish, and another takes up what it would have had
    next. Raises ``EndpointError``, once, when an endpoint serves no sample at all, and ``WorkerError`` when no worker
    can be started. No worker is left when this returns or raises, also after Ctrl-C and SIGTERM; after SIGKILL the
    workers notice and end themselves.
    """
    waiting = list(runs)
    workers: list[Worker] = []
    ended: dict[int, Ended] = {}
    with sigterm_raises():
        try:
            while len(ended) < len(runs):
                _hand_out(waiting, workers, at_once)
                time.sleep(_LOOK_SECONDS)
                for worker in list(workers):
                    end = worker.ended()
                    if end is not None:
                        ended[end.shard_run.shard.index] = end
                        if end.trouble:
                            progress.say(end.trouble)
                    if worker.shard_run is None and (worker.is_over() or not waiting):
                        worker.end()  # it has said how its last shard ended, and only waits
                        workers.remove(worker)
                progress.update(runs)
        finally:
            try:
                progress.finish(runs)
            finally:  # also where nobody reads any more what is said
                _stop(workers)
    return [ended[shard_run.shard.index] for shard_run in runs]


def _hand_out(waiting: list[ShardRun], workers: list[Worker], at_once: int) -> None:
    for worker in [worker for worker in workers if worker.shard_run is None]:
        if waiting and worker.give(waiting[0]):
            waiting.pop(0)
        else:
            worker.end()
            workers.remove(worker)
    while waiting and len(workers) < at_once:
        workers.append(Worker(waiting.pop(0)))


def _stop(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.signal(signal.SIGINT)
    deadline = time.monotonic() + _GRACE_SECONDS
    for worker in workers:
        worker.wait(max(0.0, deadline - time.monotonic()))
        worker.signal(signal.SIGKILL)
        worker.wait(_GRACE_SECONDS)
        worker.close()


@contextlib.contextmanager
def sigterm_raises() -> Iterator[None]:
    """Let SIGTERM end the driver as Ctrl-C does, with its workers stopped."""
    codes: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        codes.append(128 + number)
        raise SystemExit(codes[0])

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except SystemExit as ending:
        raise SystemExit(codes[0] if codes else ending.code) from None  # Ray's functions make it a 1
    finally:
        signal.signal(signal.SIGTERM, before)

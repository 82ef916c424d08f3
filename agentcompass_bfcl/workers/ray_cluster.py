"""Shards as tasks of a Ray cluster: they may run on any machine of it, and their run directories come back."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentcompass_bfcl.errors import ConfigError, WorkerError
from agentcompass_bfcl.host import HostRun
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.workers.packing import pack, unpack
from agentcompass_bfcl.workers.plan import ShardRun
from agentcompass_bfcl.workers.processes import sigterm_raises
from agentcompass_bfcl.workers.progress import Progress
from agentcompass_bfcl.workers.shard_process import NO_MORE, shard_line
from agentcompass_bfcl.workers.worker import Ended, how_it_ended, start_worker

_LOOK_SECONDS = 1.0
_POLL_SECONDS = 0.1
_CONNECT_SECONDS = 10.0
_CANCEL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Brought:
    """What a task brings back: how its worker ended, and its log and run directory packed."""

    code: int
    content: bytes


def run_on_ray(runs: Sequence[ShardRun], address: str | None, *, at_once: int, progress: Progress) -> list[Ended]:
    """Run each shard as a Ray task of one core and unpack what comes back below the results folder.

    ``address`` is that of a cluster; without one Ray starts on this machine. The package has to be installed on every
    machine. A shard's rows count as done once they are here. Raises ``ConfigError`` without Ray, ``WorkerError`` when
    the cluster cannot be reached, and ``EndpointError``, at once, when an endpoint serves no sample at all.
    """
    with _connected(address) as ray, sigterm_raises():
        # A shard that failed is repeated by the user, with --reuse, and not by Ray without a word.
        task = ray.remote(num_cpus=1, max_retries=0)(run_and_pack)
        waiting, running = list(runs), dict[Any, ShardRun]()
        ended: dict[Shard, Ended] = {}
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    shard_run = waiting.pop(0)
                    running[task.remote(_portable(shard_run.run), _previous(shard_run))] = shard_run
                over, _ = ray.wait(list(running), timeout=_LOOK_SECONDS)
                for reference in over:
                    end = _ended(running.pop(reference), ray, reference)
                    ended[end.shard_run.shard] = end
                    if end.trouble:
                        progress.say(end.trouble)
                progress.update(runs)
        finally:
            try:
                progress.finish(runs)
            finally:  # also where nobody reads any more what is said
                _cancel(ray, list(running))
    return [ended[shard_run.shard] for shard_run in runs]


def run_and_pack(run: HostRun, previous: bytes) -> Brought:
    """Run a shard in a process of its own in a scratch folder, and pack what it made; on whichever machine."""
    with tempfile.TemporaryDirectory(prefix="bfcl-shard-", ignore_cleanup_errors=True) as scratch:
        here = ShardRun(Shard(), replace(run, results_dir=Path(scratch)), 0)
        here.folder.mkdir(parents=True)
        if previous:
            unpack(previous, here.folder)
        with start_worker(here.log) as process:
            try:
                _hand_over(process, here)
                while process.poll() is None:  # Ray cancels a task between two instructions, not inside a wait
                    time.sleep(_POLL_SECONDS)
            finally:  # also when the task is cancelled; whatever the worker started itself goes as well
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        made = here.run_dir()
        return Brought(process.returncode, pack(here.folder, [here.log, *([made] if made else [])]))


def _hand_over(process: subprocess.Popen[bytes], shard_run: ShardRun) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # it died at once, and its log says why
            process.stdin.write(shard_line(shard_run.run, shard_run.log) + NO_MORE)
            process.stdin.flush()


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Give Ray, connected to a cluster or to one of its own."""
    try:
        import ray
    except ImportError:
        raise ConfigError("--executor ray needs Ray: pip install 'agentcompass-bfcl[ray]'") from None
    place = address or "this machine"
    _refuse_where_nobody_is(address)
    try:
        ray.init(
            address=address,
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise WorkerError(f"Ray at {place} cannot be used: {' '.join(str(error).split())}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _refuse_where_nobody_is(address: str | None) -> None:
    """Raise ``WorkerError`` for an address where nobody listens: Ray itself tries for minutes."""
    text = address or ""
    parts = urlsplit(text if "://" in text else f"//{text}")
    try:
        if parts.hostname and parts.port:
            socket.create_connection((parts.hostname, parts.port), _CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise WorkerError(f"Ray at {address} cannot be reached: {error}") from None


def _portable(run: HostRun) -> HostRun:
    """Leave the driver's own paths behind; the wheel is found or fetched wherever the task runs."""
    params = {name: value for name, value in run.benchmark_params.items() if name != "wheel"}
    return replace(run, benchmark_params=params, model_params=dict(run.model_params), results_dir=Path())


def _previous(run: ShardRun) -> bytes:
    """Pack the run whose rows are to be used again."""
    previous = run.previous() if run.run.reuse else None
    return b"" if previous is None else pack(run.folder, [previous])


def _ended(shard_run: ShardRun, ray: Any, reference: Any) -> Ended:
    try:
        brought: Brought = ray.get(reference)
        shard_run.folder.mkdir(parents=True, exist_ok=True)
        unpack(brought.content, shard_run.folder)
    except (ray.exceptions.RayError, WorkerError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Ended(shard_run, False, f"shard {shard_run.shard}: its Ray task failed ({lines[-1][-300:]})")
    except OSError as error:
        raise WorkerError(f"{shard_run.folder}: cannot be written ({error.strerror})") from None
    return how_it_ended(shard_run, brought.code, died=False)


def _cancel(ray: Any, references: Sequence[Any]) -> None:
    """Stop tasks that run, and give them a moment to clear their scratch folders away."""
    for reference in references:
        ray.cancel(reference)
    if references:
        ray.wait(list(references), num_returns=len(references), timeout=_CANCEL_SECONDS)

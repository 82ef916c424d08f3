"""Shards as tasks of a Ray cluster: they may run on any machine of it, and their run directories come back."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentcompass_bfcl.errors import ConfigError, EndpointError, WorkerError
from agentcompass_bfcl.host import HostRun
from agentcompass_bfcl.workers.plan import ShardRun
from agentcompass_bfcl.workers.processes import Ended, last_line
from agentcompass_bfcl.workers.shard_process import (
    EXIT_DONE,
    EXIT_RUN_FAILED,
    EXIT_UNUSABLE_ENDPOINT,
    command,
    run_line,
)


@dataclass(frozen=True, slots=True)
class Brought:
    """What a task brings back: how its worker ended, what it said last, and the shard's folder packed."""

    code: int
    words: str
    folder: bytes


def run_on_ray(runs: Sequence[ShardRun], address: str | None) -> list[Ended]:
    """Run each shard as a Ray task of one core and unpack what comes back below the results folder.

    ``address`` is that of a cluster; without one Ray starts on this machine. The package has to be installed on every
    machine. Raises ``ConfigError`` without Ray, ``WorkerError`` when the cluster cannot be reached, and
    ``EndpointError`` when an endpoint serves no sample at all.
    """
    try:
        import ray
    except ImportError:
        raise ConfigError("--executor ray needs Ray: pip install 'agentcompass-bfcl[ray]'") from None
    try:
        ray.init(address=address, log_to_driver=False, include_dashboard=None if address else False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise WorkerError(f"Ray at {address or 'this machine'} cannot be used: {error}") from None
    try:
        # A shard that failed is repeated by the user, with --reuse, and not by Ray without a word.
        task = ray.remote(num_cpus=1, max_retries=0)(run_and_pack)
        pending = [task.remote(_portable(run.run), _previous(run)) for run in runs]
        return [_ended(run, ray, reference) for run, reference in zip(runs, pending, strict=True)]
    finally:
        ray.shutdown()


def run_and_pack(run: HostRun, previous: bytes) -> Brought:
    """Run a shard in a process of its own in a scratch folder, and pack what it made; on whichever machine."""
    with tempfile.TemporaryDirectory(prefix="bfcl-shard-") as scratch:
        here = replace(run, results_dir=Path(scratch))
        folder = here.results_dir / here.run_name
        folder.mkdir(parents=True)
        if previous:
            unpack(previous, folder)
        log = folder / f"{run.run_id}.worker.log"
        with (
            log.open("wb") as said,
            subprocess.Popen(
                command(sys.path), stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT
            ) as process,
        ):
            if process.stdin is None:
                raise WorkerError("a worker needs a pipe for its standard input")
            with contextlib.suppress(OSError):  # it died at once, and its log says why
                process.stdin.write(run_line(here))
                process.stdin.flush()
            code = process.wait()
        return Brought(code, last_line(log), pack(folder))


def pack(folder: Path) -> bytes:
    """Pack the content of a folder."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1) as archive:
        archive.add(folder, arcname=".")
    return content.getvalue()


def unpack(content: bytes, folder: Path) -> None:
    """Unpack below a folder. Raises ``WorkerError`` for anything but plain files and folders inside it."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            if not (member.isfile() or member.isdir()):
                raise WorkerError(f"a shard brought {member.name[:80]!a}, which is no file and no folder")
            try:
                archive.extract(member, folder, filter="data")
            except tarfile.FilterError as error:
                raise WorkerError(f"a shard brought {member.name[:80]!a}, which lies outside its folder") from error


def _portable(run: HostRun) -> HostRun:
    """Leave the driver's own paths behind; the wheel is found or fetched wherever the task runs."""
    params = {name: value for name, value in run.benchmark_params.items() if name != "wheel"}
    return replace(run, benchmark_params=params, model_params=dict(run.model_params), results_dir=Path())


def _previous(run: ShardRun) -> bytes:
    return pack(run.folder) if run.run.reuse and run.folder.is_dir() else b""


def _ended(shard_run: ShardRun, ray: Any, reference: Any) -> Ended:
    name = f"shard {shard_run.shard}"
    try:
        brought: Brought = ray.get(reference)
    except ray.exceptions.RayError as error:
        return Ended(shard_run, False, f"{name}: its Ray task failed ({' '.join(str(error).split())[:300]})")
    shard_run.folder.mkdir(parents=True, exist_ok=True)
    unpack(brought.folder, shard_run.folder)
    if brought.code == EXIT_UNUSABLE_ENDPOINT:
        raise EndpointError(brought.words)
    trouble = "" if brought.code == EXIT_DONE else f"{name}: ended with status {brought.code}; {brought.words}"
    return Ended(shard_run, brought.code in (EXIT_DONE, EXIT_RUN_FAILED), trouble)

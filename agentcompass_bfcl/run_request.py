"""What a run was asked to do, read from its directory; also of one that was killed, which has no result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.errors import RunDirError, shortened
from agentcompass_bfcl.identity import expected_entries, without_credentials
from agentcompass_bfcl.json_files import LARGEST_RUN_INFO, fault_in, read_json
from agentcompass_bfcl.settings import FIELDS, RunSettings, parse_settings

RUN_INFO = "run_info.json"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run's settings and model. ``sample_ids`` narrows the draw where the host was asked to.

    ``attempts`` is the host's ``{"k", "strategy"}``.
    """

    settings: RunSettings
    sample_ids: tuple[str, ...] | None
    model: str
    base_url: str
    harness: str
    params: Mapping[str, Any]
    attempts: Mapping[str, Any]
    concurrency: int | None = None
    harness_params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def k(self) -> int:
        """Count the attempts per sample."""
        return int(self.attempts["k"])

    def expected(self, dataset: Dataset) -> tuple[Entry, ...]:
        """List the rows the run has to score."""
        return expected_entries(self.settings, dataset, self.sample_ids)


def require_single_attempt(request: RunRequest) -> None:
    """Raise ``RunDirError`` for a run of several attempts per sample: there is one verdict, and one line, a row."""
    if request.k != 1:
        raise RunDirError(f"the run made {request.k} attempts per sample; this works for runs of one attempt only")


def is_run_dir(path: Path) -> bool:
    """Tell whether a path is the directory of a run of the host."""
    return os.path.isfile(path / RUN_INFO)  # noqa: PTH113  # Path.is_file may raise, as for a name that is too long


def read_request(run_dir: Path) -> RunRequest:
    """Read a run's request from its run_info.json.

    Raises ``RunDirError`` when it cannot be read or is another benchmark's, ``ConfigError`` for settings that this
    version does not know.
    """
    path = run_dir / RUN_INFO
    try:
        request = read_json(path, LARGEST_RUN_INFO)["request"]
        if (fault := fault_in(request)) is not None:
            raise RunDirError(f"{path}: not the description of a run (request.{fault})")
        benchmark, model = request["benchmark"], request["model"]
        if benchmark["id"] != "bfcl":
            raise RunDirError(f"{path}: a run of benchmark {shortened(repr(benchmark['id']))}, not of bfcl")
        params = benchmark.get("params") or {}
        return RunRequest(
            settings=parse_settings({name: value for name, value in params.items() if name in FIELDS}),
            sample_ids=_sample_ids(params.get("sample_ids")),
            model=str(model["id"]),
            base_url=without_credentials(model.get("base_url") or ""),
            harness=str(request["harness"]["id"]),
            params=dict(model.get("params") or {}),
            attempts=_attempts(request["execution"]["attempts"]),
            concurrency=request["execution"].get("task_concurrency"),
            harness_params=dict(request["harness"].get("params") or {}),
        )
    except FileNotFoundError:
        raise RunDirError(f"{path}: no such file; give the directory of a run") from None
    except OSError as error:
        raise RunDirError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = shortened(f"{type(error).__name__}: {error}")
        raise RunDirError(f"{path}: not the description of a run ({what})") from None


def _attempts(value: Mapping[str, Any]) -> dict[str, Any]:
    return {"k": int(value["k"]), "strategy": str(value.get("strategy"))}


def _sample_ids(value: Any) -> tuple[str, ...] | None:
    items = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(str(item).strip() for item in items) or None

"""What ``rescore`` is to judge: from its paths and options to one source of stored outputs per model."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentcompass_bfcl.cli.settings import benchmark_params
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.drawn_rows import only_attempts
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.official_results import ModelResults, ResultFault, StoredRow, find_results, read_rows
from agentcompass_bfcl.rescore import result_facts, run_facts, run_rows, run_scope
from agentcompass_bfcl.run_request import is_run_dir, read_request
from agentcompass_bfcl.scope import Drawn, RowsPresent, Scope, WholeSubsets
from agentcompass_bfcl.settings import RunSettings, parse_settings

_DRAW_OPTIONS = ("draw", "categories", "category_pct", "subset_floor", "subsets", "limit", "shard")


@dataclass(frozen=True, slots=True)
class Source:
    """One model's stored outputs, of bfcl-eval or of a run; ``settings`` say how they are judged and errors count.

    ``ignored`` are result files of other test categories; where there are no others the source ``is_empty``.
    """

    name: str
    folder: Path
    items: Iterable[StoredRow | ResultFault]
    scope: Scope
    facts: Mapping[str, Any]
    settings: RunSettings
    ignored: tuple[Path, ...] = ()
    is_empty: bool = False


def judging_settings(namespace: argparse.Namespace) -> RunSettings:
    """Check the options. Raises ``ConfigError`` for those that contradict each other."""
    if namespace.partial and _names_a_draw(namespace):
        raise ConfigError("--partial takes the rows that are there; leave it out with a draw")
    # Parts of a draw that was not named are parts of everything, not of the draw that ``run`` takes by default.
    return parse_settings({"draw": "all", **benchmark_params(namespace)})


def find_sources(namespace: argparse.Namespace, settings: RunSettings, dataset: Dataset) -> Iterator[Source]:
    """Find what lies at each path, in the order given; nothing is read from the result files yet."""
    for path in namespace.paths:
        if is_run_dir(path):
            yield _of_run(path, namespace, settings, dataset)
        else:
            for results in find_results(path):
                yield _of_results(results, namespace, settings, dataset)


def _of_run(path: Path, namespace: argparse.Namespace, settings: RunSettings, dataset: Dataset) -> Source:
    request = read_request(path)
    asked = request.settings
    if namespace.mode is not None and settings.mode is not asked.mode:
        raise ConfigError(f"{path}: its mode is {asked.mode}; leave out --mode {settings.mode}")
    # A run that cut off its replies' reasoning has stored what was left.
    on_error = asked.on_error if namespace.on_error is None else settings.on_error
    return Source(
        name=request.model,
        folder=path,
        items=run_rows(only_attempts(path, dataset)),
        scope=_scope(namespace, settings, run_scope(request)),
        facts=run_facts(request) | {"strip_think": asked.strip_think or settings.strip_think},
        settings=replace(settings, mode=asked.mode, on_error=on_error),
    )


def _of_results(
    results: ModelResults, namespace: argparse.Namespace, settings: RunSettings, dataset: Dataset
) -> Source:
    return Source(
        name=results.model,
        folder=results.folder,
        items=read_rows(results, dataset, official_errors=namespace.official_errors),
        scope=_scope(namespace, settings, WholeSubsets(tuple(sorted(results.files)))),
        facts=result_facts(results.model, settings, official_errors=namespace.official_errors),
        settings=settings,
        ignored=results.ignored,
        is_empty=not results.files,
    )


def _scope(namespace: argparse.Namespace, settings: RunSettings, otherwise: Scope) -> Scope:
    if namespace.partial:
        return RowsPresent()
    return Drawn(settings.spec, settings.shard) if _names_a_draw(namespace) else otherwise


def _names_a_draw(namespace: argparse.Namespace) -> bool:
    return any(getattr(namespace, name) is not None for name in _DRAW_OPTIONS)

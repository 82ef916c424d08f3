"""``compare``: what changed between runs of the same rows, and what may be concluded."""

from __future__ import annotations

import argparse
import os
import sys

from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import compare, repeat_spread
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.errors import CompareError, ConfigError, one_line
from agentcompass_bfcl.identity import QUESTION_KEYS
from agentcompass_bfcl.report.comparison import render_comparison, render_spread, render_table
from agentcompass_bfcl.report.comparison_document import comparison_document, to_json
from agentcompass_bfcl.run_record import read_record
from agentcompass_bfcl.sources import open_pinned

_EXIT_NOT_COMPARABLE = 4


def run_command(namespace: argparse.Namespace) -> int:
    """Compare every further run with the first. 0 whatever comes out, 4 when the runs cannot be compared."""
    _require_sense(namespace)
    first, *others = (read_record(path) for path in (namespace.first, *namespace.others))
    repeats = [read_record(path) for path in namespace.same_build]
    named = clusters(read_dataset(open_pinned(namespace.wheel)).by_id.values())
    try:
        comparisons = [compare(first, other, named, allow=namespace.allow) for other in others]
        spread = repeat_spread([first, *repeats], named, allow=namespace.allow) if repeats else None
    except CompareError as error:
        print(f"agentcompass-bfcl: {one_line(str(error))}", file=sys.stderr)
        return _EXIT_NOT_COMPARABLE
    if namespace.json:
        print(to_json(comparison_document(comparisons, spread)), end="")
        return 0
    if len(comparisons) == 1:
        print(render_comparison(comparisons[0], every_flip=namespace.all, markdown=namespace.markdown), end="")
    else:
        print(render_table(comparisons, markdown=namespace.markdown), end="")
    if spread is not None:
        print(f"\n{render_spread(spread, comparisons, markdown=namespace.markdown)}", end="")
    return 0


def _require_sense(namespace: argparse.Namespace) -> None:
    if unknown := sorted(set(namespace.allow) - set(QUESTION_KEYS)):
        raise ConfigError(f"--allow {unknown[0]}: what must agree is {', '.join(QUESTION_KEYS)}")
    # Path.resolve() raises RuntimeError for a symlink to itself.
    places = [os.path.realpath(path) for path in (namespace.first, *namespace.same_build)]
    if twice := next((path for path in places if places.count(path) > 1), None):
        raise ConfigError(f"--same-build: {twice} is there twice; a run compared with itself changes in nothing")

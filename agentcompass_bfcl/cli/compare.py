"""``compare``: what changed between runs of the same rows, and what may be concluded."""

from __future__ import annotations

import argparse
import sys

from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import compare, repeat_spread
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.errors import CompareError, ConfigError
from agentcompass_bfcl.report.comparison import comparison_json, render_comparison, render_spread, render_table
from agentcompass_bfcl.run_record import read_record
from agentcompass_bfcl.sources import open_pinned

_EXIT_NOT_COMPARABLE = 4


def run_command(namespace: argparse.Namespace) -> int:
    """Compare every further run with the first. 0 whatever comes out, 4 when the runs cannot be compared."""
    if len(namespace.runs) < 2:
        raise ConfigError("give two runs at least")
    first, *others = (read_record(path) for path in namespace.runs)
    repeats = [read_record(path) for path in namespace.same_build]
    dataset = read_dataset(open_pinned(namespace.wheel))
    named = clusters(dataset.by_id.values())
    try:
        comparisons = [compare(first, other, named, allow=namespace.allow) for other in others]
        spread = repeat_spread([first, *repeats], named, allow=namespace.allow) if repeats else None
    except CompareError as error:
        print(f"agentcompass-bfcl: {' '.join(str(error).split())}", file=sys.stderr)
        return _EXIT_NOT_COMPARABLE
    if namespace.json:
        print(comparison_json(comparisons, spread), end="")
        return 0
    tablefmt = "github" if namespace.markdown else "simple"
    if len(comparisons) == 1:
        print(render_comparison(comparisons[0], every_flip=namespace.all, tablefmt=tablefmt), end="")
    else:
        print(render_table(comparisons, tablefmt=tablefmt), end="")
    if spread is not None:
        print(f"\n{render_spread(spread, comparisons)}", end="")
    return 0

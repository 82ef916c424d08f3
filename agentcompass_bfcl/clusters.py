"""Which rows belong together: they offer the same functions, so a model tends to get all of them right, or none."""

from __future__ import annotations

from collections.abc import Iterable

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.subsets import subset_named


def clusters(entries: Iterable[Entry]) -> dict[str, str]:
    """Name each row's cluster, by id. A cluster never spans subsets.

    In live subsets it is the function document group, the middle number of an id such as ``live_simple_106-63-0``
    (upstream's own grouping: most groups hold one list of functions, some hold several versions of it); elsewhere rows
    with equal lists of functions form one.
    """
    return {entry.id: _cluster(entry) for entry in entries}


def _cluster(entry: Entry) -> str:
    if subset_named(entry.subset).group == "live":
        return f"{entry.subset}:{entry.id.rpartition('_')[2].split('-')[1]}"
    return f"{entry.subset}:{entry.functions_json}"

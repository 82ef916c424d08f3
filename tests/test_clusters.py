from __future__ import annotations

from collections import Counter

from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.draw import PRESETS, select


def test_live_rows_of_one_function_group_belong_together(dataset: Dataset) -> None:
    named = clusters(dataset.rows["live_simple"])
    assert named["live_simple_106-63-0"] == "live_simple:63"
    assert all(cluster == f"live_simple:{sample_id.split('-')[1]}" for sample_id, cluster in named.items())


def test_the_88_live_irrelevance_rows_of_golden_are_three_clusters_of_which_one_has_76(dataset: Dataset) -> None:
    rows = [entry for entry in select(PRESETS["golden"], dataset) if entry.subset == "live_irrelevance"]
    sizes = Counter(clusters(rows).values())
    assert (len(rows), sorted(sizes.values())[-1], len(sizes)) == (88, 76, 3)


def test_other_rows_belong_together_when_they_offer_the_same_functions(dataset: Dataset) -> None:
    rows = dataset.rows["parallel"]
    named = clusters(rows)
    sizes = Counter(named.values())
    shared = [entry for entry in rows if sizes[named[entry.id]] > 1]
    assert len(sizes) == 198
    assert len(shared) == 4
    assert all(any(a.functions() == b.functions() for b in shared if b is not a) for a in shared)


def test_a_cluster_never_spans_subsets(dataset: Dataset) -> None:
    entries = [entry for rows in dataset.rows.values() for entry in rows]
    subsets: dict[str, set[str]] = {}
    for entry in entries:
        subsets.setdefault(clusters([entry])[entry.id], set()).add(entry.subset)
    assert all(len(found) == 1 for found in subsets.values())

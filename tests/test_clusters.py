from __future__ import annotations

import re
from collections import Counter, defaultdict

from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.draw import PRESETS, select


def test_live_rows_with_the_same_middle_number_belong_together_and_no_others(dataset: Dataset) -> None:
    for subset, rows in dataset.rows.items():
        if not subset.startswith("live_"):
            continue
        named = clusters(rows)
        by_number, by_cluster = defaultdict(set), defaultdict(set)
        for entry in rows:
            number = re.fullmatch(rf"{subset}_\d+-(\d+)-\d+", entry.id)
            assert number is not None, entry.id
            by_number[number[1]].add(entry.id)
            by_cluster[named[entry.id]].add(entry.id)
        assert sorted(map(sorted, by_number.values())) == sorted(map(sorted, by_cluster.values()))


def test_a_live_group_may_hold_several_lists_of_functions(dataset: Dataset) -> None:
    named = clusters(dataset.rows["live_simple"])
    group = [entry for entry in dataset.rows["live_simple"] if named[entry.id] == named["live_simple_4-3-0"]]
    assert (len(group), len({entry.functions_json for entry in group})) == (16, 7)


def test_the_88_live_irrelevance_rows_of_golden_are_three_clusters_of_which_one_has_76(dataset: Dataset) -> None:
    rows = [entry for entry in select(PRESETS["golden"], dataset) if entry.subset == "live_irrelevance"]
    assert sorted(Counter(clusters(rows).values()).values()) == [2, 10, 76]


def test_other_rows_belong_together_when_they_offer_the_same_functions(dataset: Dataset) -> None:
    named = clusters(dataset.by_id.values())
    offered = {sample_id: entry.functions() for sample_id, entry in dataset.by_id.items()}
    assert [function["name"] for function in offered["parallel_61"]] == ["math.hypot"]
    assert offered["parallel_61"] == offered["parallel_183"]
    assert named["parallel_61"] == named["parallel_183"] != named["parallel_62"]
    assert offered["irrelevance_6"] == offered["irrelevance_7"]
    assert named["irrelevance_6"] == named["irrelevance_7"] != named["irrelevance_8"]


def test_outside_live_subsets_equal_lists_and_clusters_are_the_same_thing(dataset: Dataset) -> None:
    for subset, rows in dataset.rows.items():
        if subset.startswith("live_"):
            continue
        named, lists = clusters(rows), []
        for entry in rows:
            functions = entry.functions()
            if functions not in lists:  # as values: texts may differ in blanks or the order of keys
                lists.append(functions)
        assert len(set(named.values())) == len(lists) == {"parallel": 198, "irrelevance": 239}.get(subset, len(rows))


def test_a_cluster_never_spans_subsets(dataset: Dataset) -> None:
    named = clusters(dataset.by_id.values())
    subsets = defaultdict(set)
    for sample_id, entry in dataset.by_id.items():
        subsets[named[sample_id]].add(entry.subset)
    assert all(len(found) == 1 for found in subsets.values())
    # Though functions do: their rows count as independent all the same.
    simple, parallel = dataset.by_id["simple_python_2"], dataset.by_id["parallel_61"]
    assert simple.functions() == parallel.functions()
    assert named[simple.id] != named[parallel.id]

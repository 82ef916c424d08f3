"""Shards on a Ray cluster of two workers on this machine; left out where Ray is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint import parse_mistakes, running_endpoint
from test_workers import run_json

ray = pytest.importorskip("ray", reason="the extra [ray] is not installed")

# Ray 2.x leaves files and sockets to the garbage collector, and warns of its own changes to come.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]


def test_two_workers_of_a_cluster_give_the_result_of_processes(dataset: Dataset, tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    mistakes = parse_mistakes("wrong_value=8,missing_call=8,extra_call=8,http_500=4")
    with running_endpoint(dataset, mistakes=mistakes, seed=3) as endpoint:
        cluster = Cluster()
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1)
            results = [
                run_json(endpoint, tmp_path / name, "--shards", "3", "--executor", *executor)
                for name, executor in (
                    ("process", ["process"]),
                    ("ray", ["ray", "--ray-address", cluster.address]),
                )
            ]
        finally:
            cluster.shutdown()
    provenance = [result["extra"].pop("shards") for result in results]
    assert [[part["shard"] for part in parts] for parts in provenance] == [["0/3", "1/3", "2/3"]] * 2
    assert results[0] == results[1]

"""Shards on a Ray cluster of two nodes on this machine; left out where Ray is not installed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.endpoint import RunningEndpoint, parse_mistakes, running_endpoint
from host_runs import MARKER_KEY
from test_cli import only_line, started
from test_workers import DRAW, PATIENCE, ROWS, eventually, run_json, shards_begun

ray = pytest.importorskip("ray", reason="the extra [ray] is not installed")

pytestmark = [
    pytest.mark.slow,
    # Ray 2.x leaves files and sockets to the garbage collector, and warns of its own changes to come.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="workers are looked for in /proc"),
]


@dataclass(frozen=True)
class Nodes:
    """A cluster, where its tasks have their scratch folders, and where Ray keeps its own files."""

    address: str
    scratch: Path
    ray_files: Path

    def workers(self) -> list[int]:
        """Find this cluster's shard processes by their scratch folder."""
        mark = f"TMPDIR={self.scratch}\0".encode()
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _is_worker(path, mark)]


def _is_worker(path: Path, mark: bytes) -> bool:
    try:
        return b"shard_process" in (path / "cmdline").read_bytes() and mark in (path / "environ").read_bytes()
    except OSError:  # it ended meanwhile
        return False


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    from ray.cluster_utils import Cluster

    scratch = tmp_path_factory.mktemp("scratch")
    # Ray puts sockets there, whose paths may have no more than 107 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as short,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", str(scratch))
        patch.setenv("RAY_TMPDIR", short)
        cluster = Cluster()
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1)
            yield Nodes(cluster.address, scratch, Path(short))
        finally:
            cluster.shutdown()  # type: ignore[no-untyped-call]  # Ray's own annotations have holes


@pytest.fixture
def slow(dataset: Dataset) -> Iterator[RunningEndpoint]:
    with running_endpoint(dataset, latency=0.5, api_key=MARKER_KEY) as running:
        yield running


def on(nodes: Nodes, *urls: str, shards: int = 2) -> list[str]:
    addresses = [part for url in urls for part in ("--base-url", url)]
    cluster = ("--executor", "ray", "--ray-address", nodes.address)
    return ["run", "m", *addresses, *DRAW, "--shards", str(shards), "--concurrency", "2", *cluster]


def test_two_nodes_give_the_result_of_processes(nodes: Nodes, dataset: Dataset, tmp_path: Path) -> None:
    mistakes = parse_mistakes("wrong_value=8,missing_call=8,extra_call=8,http_500=4")
    with running_endpoint(dataset, mistakes=mistakes, seed=3) as endpoint:
        results = [
            run_json(endpoint, tmp_path / name, "--shards", "3", "--executor", *executor)
            for name, executor in (("process", ["process"]), ("ray", ["ray", "--ray-address", nodes.address]))
        ]
    provenance = [result["extra"].pop("shards") for result in results]
    assert [[part["shard"] for part in parts] for parts in provenance] == [["0/3", "1/3", "2/3"]] * 2
    assert results[0] == results[1]
    assert not list(nodes.scratch.iterdir())


def test_a_killed_worker_is_named_and_reuse_repeats_only_what_is_missing(
    nodes: Nodes, slow: RunningEndpoint, tmp_path: Path
) -> None:
    with started(*on(nodes, slow.base_url), cwd=tmp_path, OPENAI_API_KEY=MARKER_KEY) as process:
        eventually(lambda: sum(map(shards_begun, nodes.scratch.iterdir())) == 2)
        os.kill(nodes.workers()[0], signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, ""), err
    (log,) = re.findall(r"shard [01]/2: ended by SIGKILL.* \(log: (.*\.worker\.log)\)", err)
    assert (tmp_path / log).is_file()
    assert re.search(r"no result of shard [01]/2; the same command with --reuse repeats only what is missing", err)
    again = [*on(nodes, slow.base_url), "--reuse", "--json"]
    with started(*again, cwd=tmp_path, OPENAI_API_KEY=MARKER_KEY) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["counts"] == {"total": ROWS, "evaluated": ROWS, "error": 0}
    assert len(slow.stats()["rows"]) == ROWS <= slow.stats()["requests"] <= ROWS + 1
    for folder in (tmp_path, nodes.ray_files):
        for path in folder.rglob("*"):
            assert not path.is_file() or MARKER_KEY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_nothing_is_left_on_the_cluster_when_the_driver_ends(
    number: signal.Signals, code: int, nodes: Nodes, slow: RunningEndpoint, tmp_path: Path
) -> None:
    with started(*on(nodes, slow.base_url), cwd=tmp_path, OPENAI_API_KEY=MARKER_KEY) as process:
        eventually(lambda: slow.stats()["requests"] >= 4)
        assert len(nodes.workers()) == 2
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == code
    eventually(lambda: not nodes.workers())
    if number is not signal.SIGKILL:
        assert not list(nodes.scratch.iterdir())


def test_an_address_that_cannot_be_used_ends_all_shards_at_once(nodes: Nodes, dataset: Dataset, tmp_path: Path) -> None:
    with running_endpoint(dataset, latency=4) as slowest:
        with started(*on(nodes, slowest.base_url, "http://127.0.0.1:9/v1"), cwd=tmp_path) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (1, "")
        assert "http://127.0.0.1:9/v1 cannot be used" in err.splitlines()[-1]
        assert slowest.stats()["requests"] < ROWS // 2  # the other shard was not waited for
    eventually(lambda: not nodes.workers())


def test_a_cluster_that_nobody_runs_is_said_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = f"127.0.0.1:{taken.getsockname()[1]}"
    begun = time.monotonic()
    cluster = ("--shards", "2", "--executor", "ray", "--ray-address", free)
    with started("run", "m", "--base-url", "http://127.0.0.1:9/v1", *DRAW, *cluster, cwd=tmp_path) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    assert f"Ray at {free} cannot be reached" in only_line(err)
    assert time.monotonic() - begun < 30

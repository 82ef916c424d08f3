from __future__ import annotations

import json

import pytest

from agentcompass_bfcl.cli import main
from agentcompass_bfcl.errors import ShardError
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.shard_env import shard_from_environment


@pytest.mark.parametrize(
    ("environ", "shard"),
    [
        ({"BFCL_SHARD_INDEX": "1", "BFCL_SHARD_COUNT": "4"}, Shard(1, 4)),
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "4"}, Shard(3, 4)),
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "1"}, Shard(2, 3)),
        (
            {
                "SLURM_ARRAY_TASK_ID": "8",
                "SLURM_ARRAY_TASK_COUNT": "5",
                "SLURM_ARRAY_TASK_MIN": "0",
                "SLURM_ARRAY_TASK_STEP": "2",
            },
            Shard(4, 5),
        ),
        ({"JOB_COMPLETION_INDEX": "2", "BFCL_SHARD_COUNT": "3"}, Shard(2, 3)),
        # What was said on purpose counts before what the cluster says.
        (
            {"BFCL_SHARD_INDEX": "0", "BFCL_SHARD_COUNT": "2", "SLURM_ARRAY_TASK_ID": "5", "JOB_COMPLETION_INDEX": "7"},
            Shard(0, 2),
        ),
        ({"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "2", "BFCL_SHARD_COUNT": "2"}, Shard(1, 2)),
        ({"SLURM_ARRAY_TASK_ID": "1", "BFCL_SHARD_COUNT": "2"}, Shard(1, 2)),
        (
            {
                "SLURM_ARRAY_TASK_ID": "5",
                "SLURM_ARRAY_TASK_COUNT": "3",
                "SLURM_ARRAY_TASK_MIN": "1",
                "SLURM_ARRAY_TASK_MAX": "5",
                "SLURM_ARRAY_TASK_STEP": "2",
            },
            Shard(2, 3),
        ),
    ],
)
def test_the_cluster_says_which_shard(environ: dict[str, str], shard: Shard) -> None:
    assert shard_from_environment(environ) == shard


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({}, "no shard in the environment; set BFCL_SHARD_INDEX and BFCL_SHARD_COUNT"),
        ({"BFCL_SHARD_INDEX": "1"}, "BFCL_SHARD_COUNT is not set"),
        ({"JOB_COMPLETION_INDEX": "1"}, "BFCL_SHARD_COUNT is not set"),
        ({"JOB_COMPLETION_INDEX": "3", "BFCL_SHARD_COUNT": "3"}, "indices are 0-based, so 0 to 2"),
        ({"BFCL_SHARD_COUNT": "3"}, "set BFCL_SHARD_INDEX as well"),
        ({"SLURM_ARRAY_TASK_ID": "1"}, "SLURM_ARRAY_TASK_COUNT is not set"),
        ({"BFCL_SHARD_INDEX": "4", "BFCL_SHARD_COUNT": "4"}, "indices are 0-based, so 0 to 3"),
        ({"BFCL_SHARD_INDEX": "one", "BFCL_SHARD_COUNT": "4"}, "BFCL_SHARD_INDEX is 'one'; a whole number"),
        ({"BFCL_SHARD_INDEX": "-1", "BFCL_SHARD_COUNT": "4"}, "BFCL_SHARD_INDEX is '-1'; a whole number"),
        ({"BFCL_SHARD_INDEX": "\u0663", "BFCL_SHARD_COUNT": "4"}, "a whole number is expected"),
        # An array such as --array=0,5: two tasks, of which one would be the sixth of two.
        ({"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_COUNT": "2"}, "an array with holes leaves rows out"),
        # Its first task is told as well.
        (
            {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MAX": "5"},
            "an array with holes leaves rows out",
        ),
        # The third of four submitted again by itself would be the first of one.
        (
            {
                "SLURM_ARRAY_TASK_ID": "2",
                "SLURM_ARRAY_TASK_MIN": "2",
                "SLURM_ARRAY_TASK_COUNT": "1",
                "BFCL_SHARD_COUNT": "4",
            },
            "SLURM_ARRAY_TASK_COUNT is 1 and BFCL_SHARD_COUNT is 4; .* set BFCL_SHARD_INDEX as well",
        ),
        ({"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_MIN": "2"}, "SLURM_ARRAY_TASK_ID=1 does not fit"),
        (
            {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_STEP": "2"},
            "SLURM_ARRAY_TASK_ID=3 does not fit",
        ),
        (
            {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_STEP": "0"},
            "SLURM_ARRAY_TASK_STEP=0",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named(environ: dict[str, str], fault: str) -> None:
    with pytest.raises(ShardError, match=fault) as refusal:
        shard_from_environment(environ)
    assert "\n" not in str(refusal.value)


def test_draw_shows_the_clusters_shard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BFCL_SHARD_INDEX", "1")
    monkeypatch.setenv("BFCL_SHARD_COUNT", "3")
    assert main(["draw", "--draw", "mini", "--shard", "auto", "--json"]) == 0
    automatic = json.loads(capsys.readouterr().out)
    assert automatic["shard"] == "1/3"
    assert main(["draw", "--draw", "mini", "--shard", "1/3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == automatic

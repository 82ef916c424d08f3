from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.draw import PRESETS, DrawSpec, fingerprint, select
from agentcompass_bfcl.identity import (
    expected_entries,
    question_identity,
    short_identity,
    spec_json,
    without_credentials,
)
from agentcompass_bfcl.settings import parse_settings

REQUEST = {"temperature": 0.0, "seed": 42}


def test_a_run_is_identified_by_what_was_asked_and_how_it_is_judged(dataset: Dataset) -> None:
    identity = question_identity(parse_settings({"draw": "mini", "tool_choice": "auto"}), dataset, REQUEST)
    mini = PRESETS["mini"]
    assert identity == {
        "draw": "mini",
        "spec": {
            "categories": ["non_live", "live", "hallucination"],
            "category_pct": {"hallucination": 2.0, "live": 2.0, "non_live": 12.5},
            "subset_floor": 5,
            "subsets": [],
            "limit": None,
        },
        "draw_fingerprint": fingerprint(mini, [entry.id for entry in select(mini, dataset)]),
        "dataset": dataset.identity,
        "checker": identity["checker"],
        "mode": "fc",
        "tool_choice": "auto",
        "strip_think": False,
        "request": REQUEST,
        "on_error": "fail",
    }
    assert identity["checker"].startswith("bfcl-eval==2026.3.23;ast_checker-sha256:")
    assert json.loads(json.dumps(identity)) == identity


def test_all_shards_of_a_run_and_all_models_share_one_identity(dataset: Dataset) -> None:
    identities = [
        question_identity(parse_settings({"draw": "mini", "shard": shard}), dataset, REQUEST)
        for shard in ("0/1", "0/3", "2/3")
    ]
    assert identities[0] == identities[1] == identities[2]


def test_the_same_draw_written_in_another_way_is_the_same_run(dataset: Dataset) -> None:
    written = {
        "draw": "all",
        "categories": "hallucination,live,non_live",
        "category_pct": {"live": "10.0", "hallucination": 10, "non_live": 62},
        "subset_floor": "25",
    }
    named, spelled = (question_identity(parse_settings(params), dataset, REQUEST) for params in ({}, written))
    assert named == spelled
    assert short_identity(named) == short_identity(spelled)


@pytest.mark.parametrize(
    ("params", "request_params"),
    [
        ({"draw": "mini", "limit": 100}, REQUEST),
        ({"draw": "golden"}, REQUEST),
        ({"draw": "mini", "on_error": "exclude"}, REQUEST),
        ({"draw": "mini", "tool_choice": "required"}, REQUEST),
        ({"draw": "mini", "mode": "prompt"}, REQUEST),
        ({"draw": "mini", "mode": "prompt", "strip_think": True}, REQUEST),
        ({"draw": "mini"}, {"temperature": 0.7, "seed": 42}),
        ({"draw": "mini"}, {}),
    ],
)
def test_runs_that_differ_in_what_decides_the_score_never_share_an_identity(
    params: dict[str, Any], request_params: dict[str, Any], dataset: Dataset
) -> None:
    base = question_identity(parse_settings({"draw": "mini"}), dataset, REQUEST)
    other = question_identity(parse_settings(params), dataset, request_params)
    assert other != base
    assert short_identity(other) != short_identity(base)


IDENTITIES = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=5)


@given(identity=IDENTITIES, data=st.data())
def test_a_short_identity_does_not_depend_on_the_order_of_its_facts(
    identity: dict[str, Any], data: st.DataObject
) -> None:
    reordered = dict(data.draw(st.permutations(list(identity.items()))))
    assert short_identity(reordered) == short_identity(identity)
    assert len(short_identity(identity)) == 8
    assert set(short_identity(identity)) <= set("0123456789abcdef")


@given(first=IDENTITIES, second=IDENTITIES)
def test_a_short_identity_tells_runs_apart(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert (short_identity(first) == short_identity(second)) == (first == second)


def test_the_rows_of_a_run_are_its_shard_of_the_draw(dataset: Dataset) -> None:
    whole = expected_entries(parse_settings({"draw": "mini"}), dataset, None)
    assert whole == select(PRESETS["mini"], dataset)
    parts = [expected_entries(parse_settings({"draw": "mini", "shard": f"{i}/4"}), dataset, None) for i in range(4)]
    assert sorted(entry.id for part in parts for entry in part) == sorted(entry.id for entry in whole)


def test_sample_ids_narrow_a_run_and_never_widen_it(dataset: Dataset) -> None:
    settings = parse_settings({"draw": "mini", "shard": "0/2"})
    whole = expected_entries(settings, dataset, None)
    outside = [dataset.rows["multiple"][1].id, dataset.rows["multiple"][199].id]
    wanted = [whole[3].id, *outside, whole[0].id]
    assert expected_entries(settings, dataset, wanted) == (whole[0], whole[3])
    assert expected_entries(settings, dataset, iter(wanted)) == (whole[0], whole[3])
    assert expected_entries(settings, dataset, []) == ()


def test_a_rule_is_written_as_json_that_makes_the_same_rule() -> None:
    spec = DrawSpec(("live",), {"live": 12.5}, 3, ("live_simple", "live_parallel"), 7)
    written = json.loads(json.dumps(spec_json(spec)))
    assert DrawSpec(**written) == spec
    assert DrawSpec(**spec_json(DrawSpec())) == DrawSpec()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host.example:8000/v1?x=1#y", "https://host.example:8000/v1"),
        ("http://token@host.example/v1", "http://host.example/v1"),
        ("http://a:p@ss@host.example/v1", "http://host.example/v1"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://host.example/v1/@me", "http://host.example/v1/@me"),
        ("", ""),
    ],
)
def test_user_and_password_never_stand_in_a_result(url: str, shown: str) -> None:
    assert without_credentials(url) == shown

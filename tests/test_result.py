from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.errors import ResultError, TallyError
from agentcompass_bfcl.leaderboard import leaderboard
from agentcompass_bfcl.result import ResultDocument, build_document, read_document
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS
from agentcompass_bfcl.tally import Tally

TALLIES = {"multiple": Tally(3, 3, 1), "irrelevance": Tally(1, 2, 0), "live_relevance": Tally(0, 2)}


def document(
    tallies: dict[str, Tally], on_error: OnError = OnError.FAIL, extra: dict[str, Any] | None = None
) -> ResultDocument:
    return build_document(
        tallies,
        on_error=on_error,
        identity=extra or {"draw": "custom", "request": {"seed": 42}},
        miss_types={"value_error:string": 2, "irrelevance_error:decoder_success": 1},
        error_types={"http_500": 1},
        truncated=1,
    )


def test_a_result_says_everything_once_in_its_place() -> None:
    written = json.loads(document(TALLIES).to_json())
    weights = written["details"].pop("weights")
    assert written["details"].pop("leaderboard") == leaderboard(TALLIES).to_json()
    assert written == {
        "schema_version": 1,
        "metrics": {
            "overall_accuracy": 50.0,
            "normalized_single_turn_score": 62.5,
            "samples": 8,
            "subset.irrelevance.hits": 1,
            "subset.irrelevance.n": 2,
            "subset.irrelevance.errors": 0,
            "subset.live_relevance.hits": 0,
            "subset.live_relevance.n": 2,
            "subset.live_relevance.errors": 0,
            "subset.multiple.hits": 3,
            "subset.multiple.n": 3,
            "subset.multiple.errors": 1,
        },
        "counts": {"total": 8, "evaluated": 7, "error": 1},
        "details": {
            "subsets": {
                "irrelevance": {"category": "hallucination", "hits": 1, "n": 2, "errors": 0, "accuracy": 50.0},
                "live_relevance": {"category": None, "hits": 0, "n": 2, "errors": 0, "accuracy": 0.0},
                "multiple": {"category": "non_live", "hits": 3, "n": 3, "errors": 1, "accuracy": 75.0},
            },
            "categories": {"non_live": 75.0, "hallucination": 50.0},
            "scores": {
                "fail": {
                    "overall_accuracy": 50.0,
                    "normalized_single_turn_score": 62.5,
                    "categories": {"non_live": 75.0, "hallucination": 50.0},
                },
                "exclude": {
                    "overall_accuracy": 57.14,
                    "normalized_single_turn_score": 75.0,
                    "categories": {"non_live": 100.0, "hallucination": 50.0},
                },
            },
            "absent": sorted(set(SINGLE_TURN_SUBSETS) - set(TALLIES)),
            "miss_types": {"irrelevance_error:decoder_success": 1, "value_error:string": 2},
            "error_types": {"http_500": 1},
            "truncated": 1,
            "malformed_abstentions": 0,
            "statistics": None,
            "rows": {},
        },
        "extra": {"draw": "custom", "request": {"seed": 42}},
    }
    assert weights["normalized"] == {"combine": "mean", "children": ["non_live", "live", "hallucination"]}
    assert weights["live"]["combine"] == "pooled"
    assert set(weights) == {"simple", "non_live", "live", "hallucination", "normalized"}


def test_the_error_policy_chooses_the_headline_and_both_stay_in_the_details() -> None:
    failing, excluding = document(TALLIES, OnError.FAIL), document(TALLIES, OnError.EXCLUDE)
    assert excluding.metrics["overall_accuracy"] == 57.14
    assert excluding.details.categories == {"non_live": 100.0, "hallucination": 50.0}
    assert excluding.details.subsets["multiple"].accuracy == 100.0
    assert excluding.details.scores == failing.details.scores
    assert excluding.counts == failing.counts


@pytest.mark.parametrize("policy", OnError)
@pytest.mark.parametrize("tallies", [{}, {"multiple": Tally(errors=4), "irrelevance": Tally(errors=2)}])
def test_a_run_with_nothing_scored_has_no_score_which_is_not_zero(tallies: dict[str, Tally], policy: OnError) -> None:
    empty = document(tallies, policy)
    assert "overall_accuracy" not in empty.metrics
    assert "normalized_single_turn_score" not in empty.metrics
    assert empty.counts.evaluated == 0
    assert empty.counts.total == empty.counts.error == sum(tally.errors for tally in tallies.values())
    assert empty.details.categories == {}
    assert all(subset.accuracy is None for subset in empty.details.subsets.values())
    for scores in empty.details.scores.values():
        assert scores.overall_accuracy is None
        assert scores.normalized_single_turn_score is None
        assert scores.categories == {}


def test_live_relevance_alone_has_no_normalized_score() -> None:
    alone = document({"live_relevance": Tally(1, 2)})
    assert alone.metrics["overall_accuracy"] == 50.0
    assert "normalized_single_turn_score" not in alone.metrics


@st.composite
def tallies_by_subset(draw: st.DrawFn) -> dict[str, Tally]:
    sizes = draw(st.dictionaries(st.sampled_from(SINGLE_TURN_SUBSETS), st.integers(0, 300)))
    return {name: Tally(draw(st.integers(0, n)), n, draw(st.integers(0, 9))) for name, n in sizes.items()}


EXTRA = st.dictionaries(
    st.text(max_size=8), st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(-1e9, 1e9)
)


@given(tallies=tallies_by_subset(), policy=st.sampled_from(OnError), extra=EXTRA)
def test_a_result_reads_back_from_its_own_json_and_gives_the_same_bytes(
    tallies: dict[str, Tally], policy: OnError, extra: dict[str, Any]
) -> None:
    written = document(tallies, policy, extra)
    text = written.to_json()
    read = read_document(json.loads(text), "result.json")
    assert read == written
    assert read.to_json() == text
    assert text.endswith("}\n")
    if tallies:
        assert read.tallies() == tallies
        assert aggregate(read.tallies(), policy) == aggregate(tallies, policy)


@given(tallies=tallies_by_subset(), data=st.data())
def test_the_bytes_do_not_depend_on_the_order_things_were_counted_in(
    tallies: dict[str, Tally], data: st.DataObject
) -> None:
    reordered = dict(data.draw(st.permutations(list(tallies.items()))))
    assert document(reordered).to_json() == document(tallies).to_json()


def test_text_beyond_ascii_is_written_as_it_is() -> None:
    assert '"model": "模型"' in document(TALLIES, extra={"model": "模型"}).to_json()


def test_a_result_without_tallies_cannot_be_aggregated() -> None:
    with pytest.raises(ResultError, match="no tallies"):
        document({}).tallies()


def altered(place: str, value: Any) -> dict[str, Any]:
    """Write a good result and put a value at a dotted place in it; ``...`` takes the place away."""
    payload: dict[str, Any] = json.loads(document(TALLIES).to_json())
    *path, last = place.split("/")
    target = payload
    for part in path:
        target = target[part]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return payload


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        ("schema_version", 2, "schema_version: "),
        ("metrics", ..., "metrics: Field required"),
        ("metrics/overall_accuracy", float("nan"), "metrics.overall_accuracy"),
        ("metrics/overall_accuracy", float("inf"), "metrics.overall_accuracy"),
        ("metrics/overall_accuracy", "high", "metrics.overall_accuracy"),
        ("metrics/overall_accuracy", None, "metrics.overall_accuracy"),
        ("counts/total", -1, "counts.total: "),
        ("counts/total", 1.5, "counts.total: "),
        ("counts/evaluated", ..., "counts.evaluated: Field required"),
        ("details/categories/live", float("nan"), "details.categories.live: "),
        ("details/subsets/multiple/accuracy", float("inf"), "details.subsets.multiple.accuracy: "),
        ("details/subsets/multiple/hits", -1, "details.subsets.multiple.hits: "),
        ("details/truncated", "some", "details.truncated: "),
        ("extra", [], "extra: "),
        ("unheard_of", 1, "unheard_of: "),
        ("details/unheard_of", 1, "details.unheard_of: "),
    ],
)
def test_a_damaged_result_is_refused_with_its_source_and_first_fault(place: str, value: Any, fault: str) -> None:
    with pytest.raises(ResultError) as refusal:
        read_document(altered(place, value), "runs/a/result.json")
    message = str(refusal.value)
    assert message.startswith("runs/a/result.json: not a result of this package: ")
    assert fault in message
    assert "\n" not in message


@pytest.mark.parametrize("payload", [None, [], "text", 5])
def test_what_is_no_object_is_no_result(payload: Any) -> None:
    with pytest.raises(ResultError, match=r"stdin: not a result of this package: the document: "):
        read_document(payload, "stdin")


def test_stored_tallies_that_contradict_each_other_do_not_become_a_score() -> None:
    payload = altered("metrics/subset.multiple.hits", 9)
    with pytest.raises(TallyError, match="impossible tally: hits=9 n=3"):
        read_document(payload, "result.json").tallies()

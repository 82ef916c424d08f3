from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.errors import TallyError
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS
from agentcompass_bfcl.tally import (
    Outcome,
    Tally,
    attempt_outcome,
    attempt_payload,
    count,
    tallies_from_metrics,
    tallies_to_metrics,
    union,
)


@st.composite
def tally_values(draw: st.DrawFn) -> Tally:
    n = draw(st.integers(0, 1000))
    return Tally(draw(st.integers(0, n)), n, draw(st.integers(0, 50)))


TALLIES = st.dictionaries(st.sampled_from(SINGLE_TURN_SUBSETS), tally_values(), max_size=13)


@given(a=tally_values(), b=tally_values(), c=tally_values())
def test_tallies_add_up_in_any_order_and_grouping(a: Tally, b: Tally, c: Tally) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Tally() == a
    assert (a + b).drawn == a.drawn + b.drawn


@given(parts=st.lists(TALLIES, max_size=4), data=st.data())
def test_the_union_does_not_depend_on_how_the_parts_are_grouped(
    parts: list[dict[str, Tally]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(parts)))
    whole = union(*parts)
    assert union(union(*parts[:cut]), union(*parts[cut:])) == whole
    assert union(*data.draw(st.permutations(parts))) == whole
    assert list(whole) == sorted({name for part in parts for name in part})


@given(outcomes=st.lists(st.tuples(st.sampled_from(SINGLE_TURN_SUBSETS), st.sampled_from(Outcome)), max_size=60))
def test_counting_puts_every_outcome_into_its_subset_once(outcomes: list[tuple[str, Outcome]]) -> None:
    counted = count(outcomes)
    assert sum(tally.drawn for tally in counted.values()) == len(outcomes)
    for name, tally in counted.items():
        own = [outcome for subset, outcome in outcomes if subset == name]
        assert tally == Tally(
            own.count(Outcome.HIT), own.count(Outcome.HIT) + own.count(Outcome.MISS), own.count(Outcome.ERROR)
        )


@pytest.mark.parametrize(
    ("hits", "n", "errors", "complaint"),
    [
        (2, 1, 0, "impossible tally: hits=2 n=1 errors=0"),
        (-1, 1, 0, "impossible tally"),
        (0, -1, 0, "impossible tally"),
        (0, 1, -1, "impossible tally"),
        (1.0, 1, 0, r"counts in integers: hits=1\.0"),
        (True, 1, 0, "counts in integers: hits=True"),
        (0, None, 0, "counts in integers: .*n=None"),
        (0, 1, "2", "counts in integers: .*errors='2'"),
    ],
)
def test_counts_that_cannot_be_are_refused(hits: Any, n: Any, errors: Any, complaint: str) -> None:
    with pytest.raises(TallyError, match=complaint):
        Tally(hits, n, errors)


@given(tallies=TALLIES)
def test_flat_metrics_read_back_as_the_same_tallies(tallies: dict[str, Tally]) -> None:
    metrics = tallies_to_metrics(tallies)
    assert tallies_from_metrics(metrics) == (tallies or None)
    as_floats = {name: float(value) for name, value in metrics.items()}
    assert tallies_from_metrics(as_floats) == (tallies or None)


def test_the_flat_form_names_subset_and_field() -> None:
    assert tallies_to_metrics({"multiple": Tally(1, 2, 3)}) == {
        "subset.multiple.hits": 1,
        "subset.multiple.n": 2,
        "subset.multiple.errors": 3,
    }


@pytest.mark.parametrize(
    "metrics",
    [
        {},
        {"overall_accuracy": 86.2, "samples": 995},
        {"subset.multiple.hits": 5},
        {"subset.multiple.n": 5},
        {"subset.multiple.errors": 5},
        {"subset.multiple.hits": 5, "subset.multiple.n": 6, "subset.parallel.hits": 1},
        {"subset.no_such_subset.hits": 5, "subset.no_such_subset.n": 5},
        {"subset.multiple.accuracy": 5, "multiple.hits": 5, "subset.hits": 1},
    ],
)
def test_metrics_without_whole_tallies_cannot_be_aggregated(metrics: dict[str, Any]) -> None:
    assert tallies_from_metrics(metrics) is None


def test_errors_may_be_absent_and_other_metrics_are_passed_over() -> None:
    metrics = {
        "overall_accuracy": 50.5,
        "subset.multiple.hits": 1,
        "subset.multiple.n": 2,
        "subset.multiple.share": 0.5,
    }
    assert tallies_from_metrics(metrics) == {"multiple": Tally(1, 2)}


@pytest.mark.parametrize("value", [62.5, "62", None, True, float("nan"), float("inf"), [62]])
def test_a_count_that_is_no_whole_number_is_refused_by_name_and_value(value: Any) -> None:
    with pytest.raises(TallyError, match=r"subset\.multiple\.n is .*, expected a whole number") as refusal:
        tallies_from_metrics({"subset.multiple.hits": 1, "subset.multiple.n": value})
    assert repr(value) in str(refusal.value)


def test_whole_floats_are_taken_as_counts() -> None:
    metrics = {"subset.multiple.hits": 62.0, "subset.multiple.n": 124.0}
    assert tallies_from_metrics(metrics) == {"multiple": Tally(62, 124)}


def test_stored_counts_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(TallyError, match="impossible tally: hits=3 n=2"):
        tallies_from_metrics({"subset.multiple.hits": 3, "subset.multiple.n": 2})


def attempt(status: str = "completed", **metrics: Any) -> dict[str, Any]:
    return {"status": status, "metrics": metrics, "issues": []}


HIT, MISS, FAILED = attempt(correct=True), attempt(correct=False), attempt("run_error")


def detail(task_id: str, *attempts: Any, category: Any = "multiple") -> dict[str, Any]:
    return {
        "task_id": task_id,
        "category": category,
        "attempts": {str(number): payload for number, payload in enumerate(attempts, 1) if payload is not None},
    }


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        (HIT, Outcome.HIT),
        (MISS, Outcome.MISS),
        (attempt(correct=True, score=0.1), Outcome.HIT),
        (None, Outcome.ERROR),
        ({}, Outcome.ERROR),
        (attempt(), Outcome.ERROR),
        (attempt(correct=1), Outcome.ERROR),
        (attempt(correct=0), Outcome.ERROR),
        (attempt(correct=None), Outcome.ERROR),
        (attempt(correct="true"), Outcome.ERROR),
        (attempt(score=1.0), Outcome.ERROR),
        (attempt("run_error", correct=True), Outcome.ERROR),
        (attempt("run_error", correct=False), Outcome.ERROR),
        (attempt("eval_error", correct=True), Outcome.ERROR),
        (attempt("error", correct=True), Outcome.ERROR),
        (attempt("COMPLETED", correct=True), Outcome.ERROR),
        ({"metrics": {"correct": True}}, Outcome.ERROR),
        ({"status": "completed", "metrics": None}, Outcome.ERROR),
        ({"status": "completed", "metrics": [True]}, Outcome.ERROR),
    ],
)
def test_only_a_completed_attempt_with_a_real_truth_value_has_a_verdict(payload: Any, outcome: Outcome) -> None:
    assert attempt_outcome(payload) is outcome


def test_reading_an_attempt_gives_what_is_there_and_changes_nothing() -> None:
    task = detail("multiple_0", HIT, MISS)
    before = copy.deepcopy(task)
    assert attempt_payload(task, 1) == HIT
    assert attempt_payload(task, 2) == MISS
    assert attempt_payload(task, 3) is None
    assert attempt_payload(task, 0) is None
    attempt_outcome(attempt_payload(task, 1))
    assert task == before


@pytest.mark.parametrize("task", [{}, {"attempts": None}, {"attempts": {}}, {"attempts": []}])
def test_a_task_without_attempts_was_never_run(task: dict[str, Any]) -> None:
    assert attempt_payload(task, 1) is None


def test_an_attempt_that_is_no_record_is_refused_with_its_task() -> None:
    with pytest.raises(TallyError, match="task 'multiple_0': attempt 1 is str, not a mapping"):
        attempt_payload({"task_id": "multiple_0", "attempts": {"1": "completed"}}, 1)

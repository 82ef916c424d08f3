"""May a result pass? Bounds to the last digit, conditions, what cannot be judged, pairs of runs, and what CI reads."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from pathlib import Path
from statistics import mean
from statistics import variance as sample_variance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.baseline import Baseline, Bound
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, DrawSpec
from agentcompass_bfcl.errors import ResultError
from agentcompass_bfcl.gate import Check, Decision, Status, bounded, judge, worst
from agentcompass_bfcl.not_worse import not_worse
from agentcompass_bfcl.report.decision import decision_json, decision_junit, decision_markdown, render_decision
from agentcompass_bfcl.report.decision_document import DecisionDocument
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.tally import Outcome
from records import ERROR, HIT, MISS, edited, record, two_in_three

GOLDEN_FILES = Path(__file__).parent / "golden"
PASSED, FAILED, NOT_JUDGED = Status.PASSED, Status.FAILED, Status.NOT_JUDGED


def decide(found: RunRecord, *baselines: Baseline) -> Decision:
    return Decision(found.source, found.identity, judge(found, baselines))


def answer(found: RunRecord, *baselines: Baseline) -> Status:
    return decide(found, *baselines).status


def baseline(*, facts: dict[str, Any] | None = None, **metrics: dict[str, Any]) -> Baseline:
    return Baseline.model_validate({"draw": "mini", **(facts or {}), "metrics": metrics})


def hits_in_all(wanted: int, dataset: Dataset) -> RunRecord:
    """Make a run of mini with so many hits."""
    ids = [row.id for row in record(dataset).document.rows()]
    hit = set(ids[:wanted])
    return record(dataset, lambda entry: (HIT if entry.id in hit else MISS,))


# Bounds.


@pytest.mark.parametrize(
    ("bound", "status", "reason"),
    [
        # The overall score of these records is 68.75, by 132 of 192.
        ({"min": "68.75"}, PASSED, "68.75, at least 68.75 wanted, no noise: passes by 0"),
        ({"min": "68.76"}, FAILED, "68.75, at least 68.76 wanted, no noise: fails by 0.01"),
        ({"min": "60"}, PASSED, "68.75, at least 60 wanted, no noise: passes by 8.75"),
        ({"min": "69.15", "noise": "0.4"}, PASSED, "68.75, at least 69.15 wanted, noise 0.4: passes by 0"),
        ({"min": "69.16", "noise": "0.4"}, FAILED, "68.75, at least 69.16 wanted, noise 0.4: fails by 0.01"),
        (
            {"min": "68.750000000001"},
            FAILED,
            "68.75, at least 68.750000000001 wanted, no noise: fails by 0.000000000001",
        ),
        ({"max": "68.75"}, PASSED, "68.75, at most 68.75 wanted, no noise: passes by 0"),
        ({"max": "68.74"}, FAILED, "68.75, at most 68.74 wanted, no noise: fails by 0.01"),
        ({"max": "68.35", "noise": "0.4"}, PASSED, "68.75, at most 68.35 wanted, noise 0.4: passes by 0"),
        ({"max": "68.34", "noise": "0.4"}, FAILED, "68.75, at most 68.34 wanted, noise 0.4: fails by 0.01"),
        ({"min": "68.75", "max": "68.75"}, PASSED, "68.75, exactly 68.75 wanted: passes"),
        ({"min": "68.7", "max": "68.7"}, FAILED, "68.75, exactly 68.7 wanted: fails by 0.05"),
        ({"min": "60", "max": "70"}, PASSED, "68.75, at least 60 and at most 70 wanted, no noise: passes by 1.25"),
        ({"min": "69", "max": "70"}, FAILED, "68.75, at least 69 and at most 70 wanted, no noise: fails by 0.25"),
    ],
)
def test_a_bound_holds_to_the_last_digit_and_says_by_how_much(
    bound: dict[str, Any], status: Status, reason: str, dataset: Dataset
) -> None:
    found = record(dataset)
    assert found.document.metrics["overall_accuracy"] == 68.75
    (check,) = judge(found, [baseline(overall_accuracy=bound)])
    assert (check.name, check.status, check.reason) == ("overall_accuracy", status, reason)


@pytest.mark.parametrize(
    ("hits", "score", "noise"), [(63, 32.81, -0.4), (69, 35.94, 0.4), (124, 64.58, 0.1), (164, 85.42, -0.1)]
)
def test_value_and_noise_add_up_as_they_are_written_and_not_as_binary_fractions(
    hits: int, score: float, noise: float, dataset: Dataset
) -> None:
    end = Decimal(repr(score)) + Decimal(repr(noise))
    assert score + noise != float(end)  # binary fractions would get it wrong
    assert (score + noise < float(end)) == (noise > 0)
    found = hits_in_all(hits, dataset)
    assert found.document.metrics["overall_accuracy"] == score
    side = "min" if noise > 0 else "max"
    assert answer(found, baseline(overall_accuracy={side: end, "noise": abs(noise)})) is PASSED


NUMBERS = st.decimals(-(10**6), 10**6, places=3)
NOISES = st.decimals(0, 10, places=3)


@given(value=NUMBERS, least=NUMBERS, most=NUMBERS, noise=NOISES)
def test_a_bound_means_its_formula_and_noise_never_turns_a_pass_into_a_failure(
    value: Decimal, least: Decimal, most: Decimal, noise: Decimal
) -> None:
    for ends in ({"min": least}, {"max": most}, {"min": min(least, most), "max": max(least, most) + 1}):
        exact, noisy = (bounded("x", value, Bound(**ends, noise=amount)) for amount in (Decimal(0), noise))
        number, room = Fraction(value), Fraction(noise)
        low, high = (Fraction(ends[end]) if end in ends else number for end in ("min", "max"))
        assert (noisy.status is PASSED) == (low <= number + room and number - room <= high)
        assert exact.status is FAILED or noisy.status is PASSED
        assert noisy.measured is not None
        assert (noisy.measured.slack >= 0) == (noisy.status is PASSED)


@given(
    plays=st.lists(st.sampled_from([HIT, MISS, ERROR]), min_size=1, max_size=7),
    better=st.integers(0, 6),
    least=st.decimals(0, 100, places=2),
    noise=NOISES,
    policy=st.sampled_from(OnError),
)
def test_where_there_are_minima_only_a_row_that_becomes_a_hit_never_turns_a_pass_into_a_failure(
    plays: list[Outcome], better: int, least: Decimal, noise: Decimal, policy: OnError, dataset: Dataset
) -> None:
    def after(entry: Entry) -> tuple[Outcome, ...]:
        return (HIT,) if entry.row % 7 == better else before(entry)

    def before(entry: Entry) -> tuple[Outcome, ...]:
        return (plays[entry.row % len(plays)],)

    wanted = {"min": least, "noise": noise}
    asked = baseline(overall_accuracy=wanted, normalized_single_turn_score=wanted, **{"category.live": wanted})
    if answer(record(dataset, before, on_error=policy), asked) is PASSED:
        assert answer(record(dataset, after, on_error=policy), asked) is PASSED


# What is judged, and what is not.


ONE = {"samples": {"min": 1}}


@pytest.mark.parametrize(
    ("found", "baselines", "status", "said"),
    [
        (lambda d: record(d), [], NOT_JUDGED, "no baseline is about draw mini of model some-model"),
        (
            lambda d: record(d, spec=PRESETS["golden"]),
            [baseline(**ONE)],
            NOT_JUDGED,
            "no baseline is about draw golden",
        ),
        (lambda d: record(d, shard=Shard(0, 2)), [baseline(**ONE)], NOT_JUDGED, "shard 0/2 alone"),
        (lambda d: record(d, lambda e: (ERROR,)), [baseline(**ONE)], NOT_JUDGED, "no sample could be scored"),
        (lambda d: record(d), [baseline()], NOT_JUDGED, "no bound at all"),
        (
            lambda d: record(d, spec=DrawSpec(subsets=("multiple",)), draw="mini", draw_fingerprint="draw-sha256:0"),
            [baseline(**ONE)],
            NOT_JUDGED,
            "no baseline is about draw mini, narrowed to some of its rows,",
        ),
        (
            lambda d: record(d, lambda e: (ERROR if e.id.startswith("live") else HIT,), on_error=OnError.EXCLUDE),
            [baseline(**{"category.live": {"min": 1, "noise": 2}})],
            NOT_JUDGED,
            "the result does not have it; at least 1 wanted, noise 2",
        ),
        (
            lambda d: record(d),
            [baseline(facts={"model": "other"}, **ONE)],
            NOT_JUDGED,
            "(draw mini: draw mini, model other)",
        ),
        (
            lambda d: record(d),
            [baseline(facts={"fingerprint": "draw-sha256:00"}, **ONE)],
            NOT_JUDGED,
            "no baseline is about",
        ),
        (
            lambda d: record(d, concurrency=8),
            [baseline(facts={"conditions": {"concurrency": 1}}, **ONE)],
            NOT_JUDGED,
            "is 8, and the baseline holds for 1",
        ),
        (
            lambda d: record(d),
            [baseline(facts={"conditions": {"tool_choice": "auto"}}, **ONE)],
            NOT_JUDGED,
            'is null, and the baseline holds for "auto"',
        ),
        (
            lambda d: record(d),
            [baseline(**{"samples": {"min": 193}})],
            FAILED,
            "192, at least 193 wanted, no noise: fails by 1",
        ),
        (lambda d: record(d), [baseline(truncated={"max": 0})], PASSED, "0, at most 0 wanted, no noise: passes by 0"),
        (
            lambda d: record(d),
            [baseline(**ONE), baseline(facts={"name": "strict"}, samples={"min": 500})],
            FAILED,
            "strict      samples  192, at least 500 wanted",
        ),
        (
            lambda d: record(d),
            [baseline(facts={"model": "other"}, samples={"min": 500}), baseline(**ONE)],
            PASSED,
            "192, at least 1 wanted",
        ),
        (
            lambda d: record(d),
            [baseline(facts={"conditions": {"mode": "prompt"}}, samples={"min": 500})],
            NOT_JUDGED,
            "fails by 308",
        ),
    ],
)
def test_what_is_passed_failed_and_not_judged(
    found: Callable[[Dataset], RunRecord], baselines: list[Baseline], status: Status, said: str, dataset: Dataset
) -> None:
    decision = decide(found(dataset), *baselines)
    assert decision.status is status
    assert said in render_decision([decision])


@pytest.mark.parametrize(
    ("actual", "wanted", "status"),
    [
        ({"temperature": 0.0}, {"temperature": 0}, PASSED),
        ({"temperature": 0.1}, {"temperature": Decimal("0.10")}, PASSED),
        ({"temperature": 0, "seed": 42}, {"seed": 42}, PASSED),
        ({"temperature": 0}, {"temperature": 0, "seed": 42}, NOT_JUDGED),
        ({"temperature": 0}, {"temperature": False}, NOT_JUDGED),
        ({"seed": "42"}, {"seed": 42}, NOT_JUDGED),
        ({"seed": 42}, {}, NOT_JUDGED),
        ({}, {}, PASSED),
        ({"extra_body": {"top_k": 1}}, {"extra_body": {"top_k": 1}}, PASSED),
        ({"extra_body": {"top_k": 1}}, {"extra_body": {"top_k": 2}}, NOT_JUDGED),
        ({"extra_body": {"top_k": None}}, {"extra_body": {}}, PASSED),
        ({"stop": ["a", 1.0]}, {"stop": ["a", 1]}, PASSED),
        ({"stop": ["a"]}, {"stop": ["a", "b"]}, NOT_JUDGED),
        ({"stop": [True]}, {"stop": [1]}, NOT_JUDGED),
        ({"stop": [{"a": None}]}, {"stop": [{}]}, PASSED),
        ({"stop": [{"a": 1}]}, {"stop": [{"a": 2}]}, NOT_JUDGED),
        ({"seed": 1}, {"seed": Decimal("1e9999")}, NOT_JUDGED),
        ({"seed": "x" * 10_000}, {"seed": 1}, NOT_JUDGED),
    ],
)
def test_request_parameters_are_pinned_one_by_one(
    actual: dict[str, Any], wanted: dict[str, Any], status: Status, dataset: Dataset
) -> None:
    checks = judge(record(dataset, request=actual), [baseline(facts={"conditions": {"request": wanted}}, **ONE)])
    assert Decision(Path("run"), {}, checks).status is status
    assert all(len(check.reason) < 500 for check in checks)


def test_a_condition_is_named_with_both_values_and_with_who_set_it(dataset: Dataset) -> None:
    wanted = {"request": {"temperature": Decimal("0.10"), "stop": "é", "seed": date(2026, 1, 2), "top_p": 1}}
    facts = {"name": "strict", "conditions": {"mode": "fc", **wanted}}
    held = record(dataset, request={"temperature": 0, "stop": "é", "seed": 1, "top_p": 1})
    checks = judge(held, [baseline(facts=facts, **ONE)])
    assert [(check.name, check.status, check.reason) for check in checks] == [
        ("mode", PASSED, 'is "fc"'),
        ("request.temperature", NOT_JUDGED, "is 0, and the baseline holds for 0.1"),
        ("request.stop", PASSED, 'is "é"'),
        ("request.seed", NOT_JUDGED, 'is 1, and the baseline holds for "2026-01-02"'),
        ("request.top_p", PASSED, "is 1"),
        ("samples", PASSED, "192, at least 1 wanted, no noise: passes by 191"),
    ]
    assert {check.baseline for check in checks} == {"strict"}


@pytest.mark.parametrize(
    ("found", "baselines", "checks"),
    [
        (
            lambda d: record(d, lambda e: (ERROR,)),
            [baseline(**ONE)],
            [Check("counts.evaluated", NOT_JUDGED, "no sample could be scored")],
        ),
        (
            lambda d: record(d),
            [baseline(facts={"name": "bare"})],
            [Check("bounds", NOT_JUDGED, "the baseline has no bound at all", "bare")],
        ),
        (
            lambda d: record(d, lambda e: (ERROR if e.id.startswith("live") else HIT,), on_error=OnError.EXCLUDE),
            [baseline(**{"category.live": {"min": 1}})],
            [
                Check(
                    "category.live",
                    NOT_JUDGED,
                    "the result does not have it; at least 1 wanted, no noise",
                    "draw mini",
                )
            ],
        ),
        (
            lambda d: record(d),
            [],
            [Check("baseline", NOT_JUDGED, "no baseline is about draw mini of model some-model (none)")],
        ),
        (
            lambda d: record(d),
            [baseline(facts={"name": name, fact: "x"}, **ONE) for name, fact in (("a", "model"), ("b", "fingerprint"))],
            [
                Check(
                    "baseline",
                    NOT_JUDGED,
                    "no baseline is about draw mini of model some-model"
                    " (a: draw mini, model x; b: draw mini, fingerprint x)",
                )
            ],
        ),
    ],
)
def test_what_cannot_be_judged_says_why_and_whose_wish_it_was(
    found: Callable[[Dataset], RunRecord], baselines: list[Baseline], checks: list[Check], dataset: Dataset
) -> None:
    assert list(judge(found(dataset), baselines)) == checks


def test_a_baseline_for_a_model_or_for_certain_rows_is_about_these(dataset: Dataset) -> None:
    found = record(dataset)
    held = str(found.identity["fingerprint"])
    for facts, status in (
        ({"model": "some-model"}, PASSED),
        ({"fingerprint": held}, PASSED),
        ({"fingerprint": held, "draw": None}, PASSED),
        ({"fingerprint": held, "model": "other"}, NOT_JUDGED),
    ):
        assert answer(found, baseline(facts=facts, **ONE)) is status


def test_abstentions_that_hold_no_readable_call_can_be_bounded(dataset: Dataset) -> None:
    (check,) = judge(record(dataset, malformed_abstentions=3), [baseline(malformed_abstentions={"max": 2})])
    assert check.reason == "3, at most 2 wanted, no noise: fails by 1"


@pytest.mark.parametrize(
    ("rows", "refused"),
    [("193", True), ("999999999", True), ("192", False), ("000000192", False), ("0" * 10, True), ("9" * 5000, True)],
)
def test_a_result_without_rows_must_have_as_many_as_its_fingerprint_says(
    rows: str, refused: bool, dataset: Dataset
) -> None:
    def bare(payload: Payload) -> None:
        payload["details"].update(rows={}, statistics=None)
        payload["extra"].update(fingerprint=f"draw-sha256:0;n={rows}", draw_fingerprint=None)

    found = edited(record(dataset), bare)
    if refused:
        with pytest.raises(ResultError, match=rf"counts\.total is 192, and the fingerprint is of {rows[:50]}"):
            judge(found, [baseline(**ONE)])
    else:
        assert answer(found, baseline(**ONE)) is PASSED


@pytest.mark.parametrize("said", ["draw-sha256:0", "", "n=", "n=x;n=193"])
def test_a_fingerprint_without_a_number_of_rows_says_nothing_about_them(said: str, dataset: Dataset) -> None:
    def bare(payload: Payload) -> None:
        payload["details"].update(rows={}, statistics=None)
        payload["extra"].update(fingerprint=said, draw_fingerprint=None)

    assert answer(edited(record(dataset), bare), baseline(**ONE)) is PASSED


type Payload = dict[str, Any]


def fewer_rows(payload: Payload) -> None:
    """Leave out a subset wherever it stands, as somebody careful would."""
    for key in [key for key in payload["metrics"] if key.startswith("subset.irrelevance.")]:
        del payload["metrics"][key]
    for part in ("rows", "subsets"):
        del payload["details"][part]["irrelevance"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda p: p["metrics"].update(overall_accuracy=99.9), r"overall_accuracy is 99.9, and the rows give 68.75"),
        (lambda p: p["metrics"].update(samples=1000), "samples is 1000"),
        (
            lambda p: p["metrics"].update({"subset.multiple.hits": 25}),
            "subset.multiple: the tally is not that of the rows",
        ),
        (lambda p: p["metrics"].update({"subset.multiple.hits": 26}), "impossible tally"),
        (lambda p: p["details"]["categories"].update(live=99.0), "details.categories"),
        (lambda p: p["details"]["subsets"]["multiple"].update(accuracy=99.0), "details.subsets"),
        (lambda p: p["counts"].update(error=0, total=1), "counts is"),
        (lambda p: p["details"]["rows"].update(multiple="0:h"), "subset.multiple: the tally is not that of the rows"),
        (lambda p: p["details"]["rows"].update(multiple="0:x"), "is no row"),
        (fewer_rows, "overall_accuracy is 68.75|fingerprint is"),
        (
            lambda p: p["details"]["rows"].update(
                irrelevance=p["details"]["rows"]["irrelevance"].replace("0:", "99:", 1)
            ),
            "and the rows give draw-sha256",
        ),
        (
            lambda p: p["extra"].update(fingerprint="draw-sha256:31225a;n=995"),
            "fingerprint is draw-sha256:31225a;n=995",
        ),
        (
            lambda p: (p["details"].update(rows={}), p["extra"].update(fingerprint="draw-sha256:31225a;n=995")),
            "counts.total is 192, and the fingerprint is of 995 rows",
        ),
        (lambda p: p["extra"].update(shard="2/2"), "shard 2/2"),
        (lambda p: p["extra"].update(on_error="ignore"), "no error policy"),
    ],
)
def test_a_result_that_does_not_agree_with_itself_is_an_error_and_does_not_pass(
    change: Callable[[Payload], None], fault: str, dataset: Dataset
) -> None:
    found = record(dataset)
    damaged = edited(found, change)
    for decided in (lambda: judge(damaged, [baseline(**ONE)]), lambda: not_worse(found, damaged, None)):
        with pytest.raises(ResultError, match=f"^shard-0: .*({fault})"):
            decided()


def test_a_result_without_rows_is_judged_by_its_tallies(dataset: Dataset) -> None:
    bare = edited(record(dataset), lambda p: p["details"].update(rows={}, statistics=None))
    assert answer(bare, baseline(overall_accuracy={"min": 68.75}, **{"subset.multiple.hits": {"min": 1}})) is PASSED
    wrong = edited(bare, lambda p: p["metrics"].update({"subset.multiple.hits": 1}))
    with pytest.raises(ResultError, match=r"overall_accuracy is 68\.75, and the rows give"):
        judge(wrong, [baseline(**ONE)])


# Not worse than another run.


def worse_by(rows: int, dataset: Dataset, **identity: Any) -> RunRecord:
    hits = [entry.id for entry in dataset.by_id.values() if entry.row % 3 != 2 and entry.subset == "simple_python"]
    lost = set(hits[:rows])
    return record(
        dataset, lambda entry: (MISS,) if entry.id in lost else two_in_three(entry), source="candidate", **identity
    )


@pytest.mark.parametrize(
    ("lost", "margin", "status", "said"),
    [
        (0, None, PASSED, "not shown to be worse: +0.00 points against shard-0"),
        (0, Decimal(0), PASSED, "shown to be at most 0 points worse"),
        (
            1,
            None,
            PASSED,
            "-0.52 points against shard-0, 1.645 paired standard errors are 0.86: passes by 0.34",
        ),
        (1, Decimal("0.5"), FAILED, "not shown to be at most 0.5 points worse: -0.52 points"),
        (1, Decimal(2), PASSED, "passes by 0.62"),
        (12, None, FAILED, "shown to be worse: -6.25 points"),
        (12, Decimal(2), FAILED, "not shown to be at most 2 points worse"),
        (12, Decimal(20), PASSED, "shown to be at most 20 points worse: -6.25 points"),
    ],
)
def test_not_worse_means_not_shown_to_be_and_with_a_margin_shown_not_to_be(
    lost: int, margin: Decimal | None, status: Status, said: str, dataset: Dataset
) -> None:
    check = not_worse(worse_by(lost, dataset), record(dataset), margin)
    assert (check.status, check.name) == (status, "not worse")
    assert said in check.reason


def test_a_better_run_is_never_worse_and_the_other_way_round_it_is(dataset: Dataset) -> None:
    better, usual = record(dataset, lambda entry: (HIT,)), record(dataset)
    assert not_worse(better, usual, Decimal(0)).status is PASSED
    assert not_worse(usual, better, None).status is FAILED
    nothing = record(dataset, lambda entry: (MISS,))
    assert not_worse(nothing, better, None).status is FAILED  # every row lost: the standard error is 0


TWO_SUBSETS = DrawSpec(subsets=("multiple", "irrelevance"), limit=24)
TWELVE = st.lists(st.sampled_from([HIT, HIT, MISS]), min_size=12, max_size=12)


@given(
    before=st.tuples(TWELVE, TWELVE), after=st.tuples(TWELVE, TWELVE), margin=st.none() | st.decimals(0, 100, places=1)
)
def test_the_rule_is_the_documented_one(
    before: tuple[list[Outcome], ...], after: tuple[list[Outcome], ...], margin: Decimal | None, dataset: Dataset
) -> None:
    def run(came: tuple[list[Outcome], ...]) -> RunRecord:
        return record(dataset, lambda entry: (came[entry.subset == "multiple"][entry.row],), spec=TWO_SUBSETS)

    check = not_worse(run(after), run(before), margin)
    difference = variance = 0.0
    for old, new in zip(before, after, strict=True):
        flips = [(one is HIT) - (other is HIT) for one, other in zip(new, old, strict=True)]
        difference += mean(flips) / 2
        variance += sample_variance(flips) / 12 / 4
    bar = 1.6448536269514722 * sqrt(variance)
    edge = difference + bar if margin is None else difference - bar + float(margin) / 100
    if abs(edge) > 1e-9:
        assert (check.status is PASSED) == (edge > 0)
    else:
        assert before != after or check.status is PASSED


def tries(*outcomes: Outcome) -> Callable[[Entry], tuple[Outcome, ...]]:
    return lambda entry: outcomes


ONE_ROW = DrawSpec(subsets=("multiple",), limit=1)


@pytest.mark.parametrize(
    ("run", "other", "said"),
    [
        (lambda d: record(d, shard=Shard(0, 2)), lambda d: record(d, shard=Shard(0, 2)), "shard 0/2 alone"),
        (lambda d: record(d), lambda d: record(d, shard=Shard(1, 2)), "shard-1: shard 1/2 alone"),
        (lambda d: record(d, tries(ERROR)), lambda d: record(d, tries(ERROR)), "no sample could be scored"),
        (lambda d: record(d), lambda d: record(d, tries(ERROR)), "no sample could be scored"),
        (
            lambda d: record(d),
            lambda d: record(d, mode="prompt"),
            "not the same question: mode is fc here and prompt in",
        ),
        (lambda d: record(d), lambda d: record(d, request={"seed": 1}), "not the same question: request is"),
        (lambda d: record(d), lambda d: record(d, spec=PRESETS["golden"]), "not the same question: draw_fingerprint"),
        (
            lambda d: record(d),
            lambda d: record(d, lambda e: two_in_three(e) * 2, attempts={"k": 1, "strategy": "avg"}),
            "attempts are compared one by one",
        ),
        (
            lambda d: record(d),
            lambda d: record(d, spec=ONE_ROW, draw_fingerprint=record(d).identity["draw_fingerprint"]),
            "191 rows are in one of the runs only",
        ),
        (lambda d: record(d, tries(HIT), spec=ONE_ROW), lambda d: record(d, spec=ONE_ROW), "a single row"),
        (
            lambda d: record(d, lambda e: (HIT if e.row % 2 else ERROR,), on_error=OnError.EXCLUDE),
            lambda d: record(d, lambda e: (ERROR if e.row % 2 else HIT,), on_error=OnError.EXCLUDE),
            "no row has a verdict here and in",
        ),
        (
            lambda d: edited(record(d), lambda p: p["details"].update(rows={}, statistics=None)),
            lambda d: record(d),
            "does not say what came of each row",
        ),
    ],
)
def test_runs_that_cannot_be_held_against_each_other_are_not_judged(
    run: Callable[[Dataset], RunRecord], other: Callable[[Dataset], RunRecord], said: str, dataset: Dataset
) -> None:
    check = not_worse(run(dataset), other(dataset), None)
    assert check.status is NOT_JUDGED
    assert said in check.reason


def test_attempts_are_held_against_each_other_one_by_one_and_rows_are_their_clusters(dataset: Dataset) -> None:
    def play(entry: Entry) -> tuple[Outcome, ...]:
        return two_in_three(entry) * 3

    three, once = record(dataset, play, k=3), record(dataset)
    worse_three = record(dataset, lambda entry: (MISS,) * 3 if entry.row % 3 == 0 else play(entry), k=3)
    worse_once = record(dataset, lambda entry: (MISS,) if entry.row % 3 == 0 else two_in_three(entry))
    several, single = not_worse(worse_three, three, None), not_worse(worse_once, once, None)
    # Three equal attempts say no more than one: the same difference, and the same standard error.
    assert several.reason == single.reason
    assert several.status is FAILED


def test_under_exclude_only_rows_with_two_verdicts_count(dataset: Dataset) -> None:
    errors = record(
        dataset, lambda entry: (ERROR,) if entry.row == 0 else two_in_three(entry), on_error=OnError.EXCLUDE
    )
    assert "+0.00 points" in not_worse(errors, record(dataset, on_error=OnError.EXCLUDE), None).reason
    failing = record(dataset, lambda entry: (ERROR,) if entry.row == 0 else two_in_three(entry))
    assert "+0.00 points" not in not_worse(failing, record(dataset), None).reason


# The worst answer.


def test_the_worst_answer_counts_error_before_not_judged_before_failed_before_passed() -> None:
    answers = [Status.PASSED, Status.FAILED, Status.NOT_JUDGED, Status.ERROR]
    for place, expected in enumerate(answers):
        checks = tuple(Check("x", status, "") for status in answers[: place + 1])
        assert Decision(Path("run"), {}, checks).status is expected
        assert worst(Decision(Path("run"), {}, (check,)) for check in checks) is expected
    assert Decision(Path("run"), {}, ()).status is NOT_JUDGED


# What CI systems read.

HOSTILE = 'm|<script>alert(1)</script>\n# x ]]> & "\x00\x1b[31m'


@pytest.fixture
def decisions(dataset: Dataset) -> list[Decision]:
    strict = baseline(
        facts={"name": HOSTILE, "conditions": {"concurrency": 1}},
        overall_accuracy={"min": 60},
        samples={"min": 192, "max": 192},
        **{"category.live": {"min": 99, "noise": 0.5}},
    )
    hostile = record(dataset, model=HOSTILE, source=f"first {HOSTILE}")
    shard = record(dataset, shard=Shard(0, 2), source="second")
    unreadable = Decision(Path("third"), {}, (Check("result", Status.ERROR, f"third: {HOSTILE}"),))
    compared = not_worse(worse_by(12, dataset), record(dataset, source=HOSTILE), None)
    first = decide(hostile, strict)
    return [Decision(first.source, first.identity, (*first.checks, compared)), decide(shard, strict), unreadable]


@pytest.mark.parametrize(
    ("render", "file"), [(render_decision, "gate.txt"), (decision_markdown, "gate.md"), (decision_junit, "gate.xml")]
)
def test_text_summary_and_junit_are_the_golden_files(
    render: Callable[[list[Decision]], str], file: str, decisions: list[Decision]
) -> None:
    assert render(decisions) == (GOLDEN_FILES / file).read_text(encoding="utf-8")


def test_no_name_moves_a_terminals_cursor(decisions: list[Decision]) -> None:
    assert all(letter.isprintable() or letter == "\n" for letter in render_decision(decisions))


def test_nothing_in_the_summary_is_markup(decisions: list[Decision]) -> None:
    summary = decision_markdown(decisions)
    assert "<" not in summary
    assert [line for line in summary.splitlines() if line.startswith("#")] == [
        line for line in summary.splitlines() if line.startswith("### Gate ")
    ]
    rows = [line for line in summary.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {5}


def test_junit_says_failures_and_errors_and_survives_any_name(decisions: list[Decision]) -> None:
    root = ElementTree.fromstring(decision_junit(decisions))  # noqa: S314 - written just now
    first, second, third = root.findall("testsuite")
    assert (first.get("tests"), first.get("failures"), first.get("errors")) == ("5", "2", "0")
    failed = [case for case in first.findall("testcase") if case.find("failure") is not None]
    assert [case.get("name") for case in failed] == ["category.live", "not worse"]
    visible = HOSTILE.replace("\x00", "").replace("\x1b", "")
    assert [case.get("classname") for case in failed] == [visible, "gate"]
    assert visible in str(first.get("name"))
    assert [str(suite.get("errors")) for suite in (second, third)] == ["1", "1"]
    (error,) = third.findall("testcase/error")
    assert (error.get("type"), error.get("message")) == ("error", f"third: {visible}")


def test_machines_get_the_numbers_behind_each_reason(decisions: list[Decision]) -> None:
    text = decision_json(decisions)
    document = DecisionDocument.model_validate_json(text)
    assert json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n" == text
    assert (document.schema_version, document.status) == (1, Status.ERROR)
    assert [run.status for run in document.runs] == [Status.FAILED, Status.NOT_JUDGED, Status.ERROR]
    assert (document.runs[0].model, document.runs[2].model) == (HOSTILE, None)
    live = next(check for check in document.runs[0].checks if check.name == "category.live")
    assert (live.value, live.min, live.max, live.noise, live.slack) == (71.43, 99, None, 0.5, -27.07)
    assert live.reason == "71.43, at least 99 wanted, noise 0.5: fails by 27.07"
    assert document.runs[1].checks[0].value is None

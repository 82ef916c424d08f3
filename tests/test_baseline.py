"""Baselines: read from TOML with the place of every fault, built in, and written from a run."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.baseline import BUILT_IN, METRICS, Baseline, Bound, baseline_toml, read_baselines
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, DrawSpec
from agentcompass_bfcl.errors import GateError
from agentcompass_bfcl.gate import Decision, Status, judge, values
from agentcompass_bfcl.result import read_document
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.tally import Outcome
from records import ERROR, HIT, MISS, edited, record

PASSED, FAILED, NOT_JUDGED = Status.PASSED, Status.FAILED, Status.NOT_JUDGED
MINI = "[[baseline]]\ndraw = 'mini'\n"
SAMPLES = f"{MINI}[baseline.metrics.samples]\n"


def answer(found: RunRecord, *baselines: Baseline) -> Status:
    return Decision(found.source, found.identity, judge(found, baselines)).status


def read(text: str, folder: Path) -> tuple[Baseline, ...]:
    file = folder / "baselines.toml"
    file.write_text(text, encoding="utf-8")
    return read_baselines(file)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", r"\[\[baseline\]\] tables are expected"),
        ("x = ", "not TOML"),
        ("[baseline]\ndraw = 'mini'", r"\[\[baseline\]\] tables are expected"),
        ("baseline = [1]", "baseline 1: "),
        (f"other = 1\n{MINI}", "expected, and not 'other'"),
        ("[[baseline]]\nname = 'n'", "baseline 1: neither draw nor fingerprint"),
        ("[[baseline]]\ndraw = 'custom'", "baseline 1: draw 'custom' may be any rows"),
        (f"{MINI}speed = 1", "baseline 1, speed: "),
        (f"{MINI}[[baseline]]\ndraw = 1", "baseline 2, draw: "),
        (f"{MINI}metrics = 1", "baseline 1, metrics: "),
        (f"{MINI}[baseline.metrics.accuracy]\nmin = 1", "baseline 1: unknown metric 'accuracy'"),
        (f"{MINI}[baseline.metrics.category.alive]\nmin = 1", "unknown metric 'category.alive'"),
        (f"{MINI}[baseline.metrics.'subset.memory.hits']\nmin = 1", "unknown metric 'subset.memory.hits'"),
        (
            f"{MINI}[baseline.metrics.category.live]\nmin = 1\n[baseline.metrics.'category.live']\nmin = 2",
            "metrics.category.live: stands twice",
        ),
        (f"{MINI}[baseline.conditions]\nspeed = 1", "unknown condition 'speed'"),
        (SAMPLES, "metrics.samples: neither min nor max"),
        (f"{SAMPLES}noise = 1", "metrics.samples: neither min nor max"),
        (f"{SAMPLES}min = 2\nmax = 1", "metrics.samples: min 2 is above max 1"),
        (f"{SAMPLES}min = 5\nmax = 5\nnoise = 1", "metrics.samples: min and max .* would switch it off"),
        (f"{SAMPLES}min = 5\nmax = 5.0\nnoise = 0.1", "would switch it off"),
        (f"{SAMPLES}min = 5\nnoise = -1", "metrics.samples.noise: "),
        (f"{SAMPLES}min = 5\nnoise = -0.0000001", "metrics.samples.noise: "),
        (f"{SAMPLES}min = 5\nnoise = inf", "metrics.samples.noise: "),
        (f"{SAMPLES}min = 5\nnoise = nan", "metrics.samples.noise: "),
        (f"{SAMPLES}min = nan", "metrics.samples.min: "),
        (f"{SAMPLES}max = -inf", "metrics.samples.max: "),
        (f"{SAMPLES}min = true", "metrics.samples.min: "),
        (f"{SAMPLES}min = 1e9999", "metrics.samples.min: "),
        (f"{SAMPLES}min = 1e99999999999999999999", "not TOML .* is no number that can be held"),
        (f"{SAMPLES}min = 83.{'6' * 40}", "metrics.samples.min: "),
        (f"{SAMPLES}min = 1\nleast = 1", "metrics.samples.least: "),
    ],
)
def test_a_baseline_that_cannot_be_meant_is_refused_with_file_and_place(text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(GateError, match=fault) as refusal:
        read(text, tmp_path)
    assert str(refusal.value).startswith(str(tmp_path / "baselines.toml"))
    assert "\n" not in str(refusal.value).strip()


def test_files_that_are_not_there_or_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GateError, match="cannot be read"):
        read_baselines(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GateError, match="not TOML"):
        read_baselines(tmp_path / "bytes.toml")


@pytest.mark.parametrize("name", ["category.live", "subset.multiple.accuracy", "counts.error"])
def test_a_metric_with_dots_may_be_written_with_and_without_quotes(name: str, tmp_path: Path) -> None:
    plain, quoted = (
        read(f"{MINI}[baseline.metrics.{written}]\nmin = 0.5\nnoise = 0.25", tmp_path)
        for written in (name, f"'{name}'")
    )
    assert plain == quoted
    assert plain[0].metrics == {name: Bound(min=Decimal("0.5"), noise=Decimal("0.25"))}


def test_numbers_are_read_as_they_are_written(tmp_path: Path) -> None:
    (found,) = read(f"{SAMPLES}min = 0.1\nmax = 1e2\nnoise = 0.2", tmp_path)
    bound = found.metrics["samples"]
    assert (bound.min, bound.max, bound.noise) == (Decimal("0.1"), Decimal(100), Decimal("0.2"))


def test_a_bound_is_a_pin_only_where_both_ends_meet() -> None:
    assert Bound(min=Decimal(1), max=Decimal(1)).is_pin
    assert not Bound(min=Decimal(1), max=Decimal(2)).is_pin
    assert not Bound(min=Decimal(1)).is_pin


def test_every_metric_that_can_be_bounded_is_one_a_full_result_has(dataset: Dataset) -> None:
    assert values(record(dataset, spec=DrawSpec()).document).keys() == METRICS


def test_the_example_file_is_read() -> None:
    (release,) = read_baselines(Path(__file__).parents[1] / "examples" / "baselines.toml")
    assert release.name == "release"
    assert release.metrics["samples"].is_pin


def test_the_built_in_baseline_is_mlperfs(dataset: Dataset) -> None:
    mlperf = BUILT_IN["mlperf-edge-agentic"]
    golden = record(dataset, lambda entry: (HIT,), spec=PRESETS["golden"])
    assert golden.document.extra["fingerprint"] == mlperf.fingerprint
    assert mlperf.metrics == {
        "overall_accuracy": Bound(min=Decimal("83.64")),  # 97 % of 86.23
        "normalized_single_turn_score": Bound(min=Decimal("85.32")),  # 97 % of 87.96
        "samples": Bound(min=Decimal(995)),
    }
    assert answer(golden, mlperf) is PASSED
    assert answer(record(dataset, spec=PRESETS["golden"]), mlperf) is FAILED


@pytest.mark.parametrize(
    "identity",
    [
        {"concurrency": 8},
        {"mode": "prompt"},
        {"request": {"temperature": 0}},
        {"request": {"temperature": 0.01, "seed": 42}},
        {"request": {"temperature": 0, "seed": 43}},
    ],
)
def test_the_built_in_baseline_holds_under_mlperfs_conditions_only(identity: dict[str, Any], dataset: Dataset) -> None:
    found = record(dataset, lambda entry: (HIT,), spec=PRESETS["golden"], **identity)
    assert answer(found, BUILT_IN["mlperf-edge-agentic"]) is NOT_JUDGED


# Written from a run.


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
REQUESTS = st.dictionaries(
    TEXTS,
    st.recursive(
        st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, st.none() | inner, max_size=3),
        max_leaves=5,
    )
    | st.none(),
    max_size=4,
)


@given(request=REQUESTS, model=TEXTS, name=TEXTS, modulo=st.integers(1, 20), failing=st.integers(0, 3))
def test_a_baseline_written_from_a_run_is_one_it_passes(
    request: dict[str, Any],
    model: str,
    name: str,
    modulo: int,
    failing: int,
    dataset: Dataset,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def play(entry: Entry) -> tuple[Outcome, ...]:
        return (ERROR if entry.row < failing else MISS if entry.row % modulo == 1 else HIT,)

    found = record(dataset, play, request=request, model=model)
    (written,) = read(baseline_toml(found.document, name=name, for_model=True), tmp_path_factory.mktemp("written"))
    assert (written.name, written.model, written.draw) == (name, model, "mini")
    assert written.metrics["samples"].is_pin
    assert answer(found, written) is PASSED
    assert answer(record(dataset, play, request={**request, "more": 1}, model="x"), written) is NOT_JUDGED


def test_the_noise_of_a_written_baseline_is_of_the_standard_error(dataset: Dataset, tmp_path: Path) -> None:
    document = record(dataset).document
    text = baseline_toml(document)
    assert document.details.statistics is not None
    assert document.details.statistics.overall is not None
    error = document.details.statistics.overall.standard_error
    assert error == pytest.approx(3.4257, abs=0.0001)
    assert f"min = 68.75\nnoise = 5.64  # 1.645 standard errors of {error} (one-sided 95 %), rounded up" in text
    (written,) = read(text, tmp_path)
    assert (written.name, written.model) == (None, None)
    assert written.conditions == {"mode": "fc", "request": {"temperature": 0, "seed": 42}}
    assert set(written.metrics) == {
        *("overall_accuracy", "normalized_single_turn_score", "samples"),
        *("category.non_live", "category.live", "category.hallucination"),
    }


def test_where_the_standard_error_is_undefined_there_is_no_noise_and_a_comment_says_so(
    dataset: Dataset, tmp_path: Path
) -> None:
    one = record(dataset, spec=DrawSpec(subsets=("multiple",), limit=1))
    of_tallies = edited(record(dataset), lambda p: p["details"].update(rows={}, statistics=None))
    for found in (one, of_tallies):
        text = baseline_toml(found.document)
        assert "noise =" not in text
        assert text.count("# no noise: the standard error is undefined") == text.count("[baseline.metrics.") - 1
        (written,) = read(text, tmp_path)
        assert answer(found, written) is PASSED


def test_a_narrowed_run_passes_its_own_baseline_and_the_whole_draw_does_not(dataset: Dataset, tmp_path: Path) -> None:
    whole, part = record(dataset), record(dataset, spec=DrawSpec(subsets=("multiple",)))
    narrowed = record(
        dataset, spec=DrawSpec(subsets=("multiple",)), draw="mini", draw_fingerprint=whole.identity["draw_fingerprint"]
    )
    (written,) = read(baseline_toml(narrowed.document), tmp_path)
    assert answer(narrowed, written) is PASSED
    assert answer(whole, written) is NOT_JUDGED
    assert answer(part, written) is NOT_JUDGED


def test_a_written_baseline_goes_by_what_the_run_is_judged_by_and_not_by_its_statistics(
    dataset: Dataset, tmp_path: Path
) -> None:
    better = edited(record(dataset), lambda p: p["details"]["statistics"]["overall"].update(score=99.9))
    (written,) = read(baseline_toml(better.document), tmp_path)
    assert written.metrics["overall_accuracy"].min == Decimal("68.75")


@pytest.mark.parametrize(
    ("identity", "for_model", "fault"),
    [
        ({"request": {"stop": [None]}}, False, "None has no place in a baseline"),
        ({"request": {"top_p": float("nan")}}, False, "nan has no place in a baseline"),
        ({"model": "m\ud800"}, True, "has no place in a baseline"),
        ({"model": None}, True, "does not say its model"),
    ],
)
def test_what_toml_cannot_hold_is_refused_and_not_changed(
    identity: dict[str, Any], for_model: bool, fault: str, dataset: Dataset
) -> None:
    with pytest.raises(GateError, match=fault):
        baseline_toml(record(dataset, **identity).document, for_model=for_model)


def test_what_a_result_does_not_say_is_no_condition(dataset: Dataset, tmp_path: Path) -> None:
    payload = json.loads(record(dataset).document.to_json())
    for key in ("mode", "request"):
        del payload["extra"][key]
    text = baseline_toml(read_document(payload, "official"))
    assert not re.search("^(mode|request)", text, re.MULTILINE)
    assert read(text, tmp_path)[0].conditions == {}


def test_without_a_score_there_is_no_baseline(dataset: Dataset) -> None:
    with pytest.raises(GateError, match="has no scores"):
        baseline_toml(record(dataset, lambda entry: (ERROR,)).document)

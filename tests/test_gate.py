"""May a result pass? Bounds, reasons, exit codes, and baselines written from a run."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.baseline import BUILT_IN, METRICS, Baseline, Bound, baseline_toml, read_baselines
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import compare
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, DrawSpec
from agentcompass_bfcl.errors import GateError, ResultError
from agentcompass_bfcl.gate import Decision, Status, judge, not_worse
from agentcompass_bfcl.report.decision import decision_json, decision_junit, decision_markdown, render_decision
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.tally import Outcome
from records import ERROR, HIT, MISS, edited, record, two_in_three, written

GOLDEN_FILES = Path(__file__).parent / "golden"
PASSED, FAILED, NOT_JUDGED = Status.PASSED, Status.FAILED, Status.NOT_JUDGED


def answer(found: RunRecord, *baselines: Baseline) -> Status:
    return Decision(found, judge(found, baselines)).status


def baseline(**metrics: dict[str, Any]) -> Baseline:
    return Baseline.model_validate({"draw": "mini", "metrics": metrics})


@pytest.mark.parametrize(
    ("bound", "status"),
    [
        # The overall score of these records is 68.75, by 132 of 192.
        ({"min": "68.75"}, PASSED),
        ({"min": "68.76"}, FAILED),
        ({"min": "69.15", "noise": "0.4"}, PASSED),  # value + noise == min
        ({"min": "69.16", "noise": "0.4"}, FAILED),
        ({"max": "68.75"}, PASSED),
        ({"max": "68.74"}, FAILED),
        ({"max": "68.35", "noise": "0.4"}, PASSED),  # value - noise == max
        ({"max": "68.34", "noise": "0.4"}, FAILED),
        ({"min": "68.75", "max": "68.75"}, PASSED),
        ({"min": "68.7", "max": "68.7"}, FAILED),
        ({"min": "60", "max": "70"}, PASSED),
        ({"min": "69", "max": "70"}, FAILED),
    ],
)
def test_a_bound_holds_to_the_last_digit(bound: dict[str, Any], status: Status, dataset: Dataset) -> None:
    found = record(dataset)
    assert found.document.metrics["overall_accuracy"] == 68.75
    assert answer(found, baseline(overall_accuracy=bound)) is status


@pytest.mark.parametrize(
    ("value", "noise", "least"), [(0.1, "0.2", "0.3"), (83.24, "0.4", "83.64"), (1.1, "2.2", "3.3")]
)
def test_value_and_noise_add_up_as_they_are_written_and_not_as_binary_fractions(
    value: float, noise: str, least: str, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert float(value) + float(noise) != float(least) or value == 83.24
    monkeypatch.setattr("agentcompass_bfcl.gate.values", lambda document: {"overall_accuracy": Decimal(repr(value))})
    assert (
        answer(record(dataset), baseline(overall_accuracy={"min": Decimal(least), "noise": Decimal(noise)})) is PASSED
    )


@pytest.mark.parametrize(
    ("found", "baselines", "status", "said"),
    [
        (lambda d: record(d), [], NOT_JUDGED, "no baseline is about draw mini of model some-model"),
        (
            lambda d: record(d, spec=PRESETS["golden"]),
            [baseline(samples={"min": 1})],
            NOT_JUDGED,
            "no baseline is about",
        ),
        (lambda d: record(d, shard=Shard(0, 2)), [baseline(samples={"min": 1})], NOT_JUDGED, "shard 0/2 alone"),
        (
            lambda d: record(d, lambda e: (ERROR,)),
            [baseline(samples={"min": 1})],
            NOT_JUDGED,
            "no sample could be scored",
        ),
        (lambda d: record(d), [baseline()], NOT_JUDGED, "no bound at all"),
        (
            lambda d: record(d, spec=DrawSpec(subsets=("multiple",))),
            [Baseline.model_validate({"draw": "custom", "metrics": {"category.live": {"min": 1}}})],
            NOT_JUDGED,
            "the result does not have it",
        ),
        (
            lambda d: record(d),
            [Baseline.model_validate({"draw": "mini", "model": "other", "metrics": {"samples": {"min": 1}}})],
            NOT_JUDGED,
            "no baseline is about",
        ),
        (
            lambda d: record(d),
            [Baseline.model_validate({"fingerprint": "draw-sha256:00", "metrics": {"samples": {"min": 1}}})],
            NOT_JUDGED,
            "no baseline is about",
        ),
        (
            lambda d: record(d, concurrency=8),
            [
                Baseline.model_validate(
                    {"draw": "mini", "conditions": {"concurrency": 1}, "metrics": {"samples": {"min": 1}}}
                )
            ],
            NOT_JUDGED,
            "is 8, and the baseline holds for 1",
        ),
        (
            lambda d: record(d, request={"temperature": 0.0}),
            [
                Baseline.model_validate(
                    {"draw": "mini", "conditions": {"request": {"temperature": 0}}, "metrics": {"samples": {"min": 1}}}
                )
            ],
            PASSED,
            "192, at least 1 wanted",
        ),
        (lambda d: record(d), [baseline(samples={"min": 193})], FAILED, "192, at least 193 wanted: 1 below"),
        (lambda d: record(d), [baseline(truncated={"max": 0})], PASSED, "0, at most 0 wanted"),
        (
            lambda d: record(d),
            [baseline(samples={"min": 1}), baseline(samples={"min": 500})],
            FAILED,
            "192, at least 500 wanted",
        ),
    ],
)
def test_what_is_passed_failed_and_not_judged(
    found: Callable[[Dataset], RunRecord], baselines: list[Baseline], status: Status, said: str, dataset: Dataset
) -> None:
    run = found(dataset)
    decision = Decision(run, judge(run, baselines))
    assert decision.status is status
    assert said in render_decision([decision])


def test_a_result_that_was_edited_does_not_pass(dataset: Dataset) -> None:
    better = edited(record(dataset), lambda payload: payload["metrics"].update(overall_accuracy=99.9))
    with pytest.raises(ResultError, match=r"metrics.overall_accuracy is 99.9, and the rows give 68.75"):
        judge(better, [baseline(overall_accuracy={"min": 90})])


def test_every_metric_that_can_be_bounded_is_one_a_full_result_has(dataset: Dataset) -> None:
    from agentcompass_bfcl.gate import values

    assert values(record(dataset, spec=DrawSpec()).document).keys() == METRICS


@given(shift=st.integers(0, 60), least=st.decimals(0, 100, places=2), noise=st.decimals(0, 5, places=2))
def test_a_better_score_never_fails_where_a_worse_one_passed_and_noise_only_helps(
    shift: int, least: Decimal, noise: Decimal, dataset: Dataset
) -> None:
    worse = record(dataset)
    better = record(dataset, lambda entry: (HIT,) if entry.row < shift else two_in_three(entry))
    without_noise, with_noise = (
        baseline(overall_accuracy={"min": least, "noise": amount}, normalized_single_turn_score={"min": least - amount})
        for amount in (Decimal(0), noise)
    )
    if answer(worse, without_noise) is PASSED:
        assert answer(better, without_noise) is PASSED
        assert answer(worse, with_noise) is PASSED


# Baselines in files.


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", r"\[\[baseline\]\] tables are expected"),
        ("x = ", "not TOML"),
        ("[baseline]\ndraw = 'mini'", r"\[\[baseline\]\] tables are expected"),
        ("other = 1\n[[baseline]]\ndraw = 'mini'", r"expected, and not 'other'"),
        ("[[baseline]]\nname = 'n'", "baseline 1: neither draw nor fingerprint"),
        ("[[baseline]]\ndraw = 'mini'\nspeed = 1", "baseline 1, speed: "),
        ("[[baseline]]\ndraw = 'mini'\n[[baseline]]\ndraw = 1", "baseline 2, draw: "),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.metrics.accuracy]\nmin = 1", "unknown metric 'accuracy'"),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.conditions]\nspeed = 1", "unknown condition 'speed'"),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.metrics.samples]", "metrics.samples: neither min nor max"),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.metrics.samples]\nmin = 2\nmax = 1", "min 2 is above max 1"),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.metrics.samples]\nmin = 5\nmax = 5\nnoise = 1", "would switch it off"),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.metrics.samples]\nmin = 5\nnoise = -1", "metrics.samples.noise: "),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.metrics.samples]\nmin = nan", "metrics.samples.min: "),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.metrics.samples]\nmin = inf", "metrics.samples.min: "),
        ("[[baseline]]\ndraw = 'mini'\n[baseline.metrics.samples]\nmin = 1\nleast = 1", "metrics.samples.least: "),
    ],
)
def test_a_baseline_that_cannot_be_meant_is_refused_with_its_place(text: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "baselines.toml"
    file.write_text(text)
    with pytest.raises(GateError, match=fault) as refusal:
        read_baselines(file)
    assert str(file) in str(refusal.value)
    assert "\n" not in str(refusal.value).strip()


def test_files_that_are_not_there_or_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GateError, match="cannot be read"):
        read_baselines(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GateError, match="not TOML"):
        read_baselines(tmp_path / "bytes.toml")


def test_the_built_in_baseline_is_mlperfs(dataset: Dataset) -> None:
    mlperf = BUILT_IN["mlperf-edge-agentic"]
    golden = record(dataset, lambda entry: (HIT,), spec=PRESETS["golden"])
    assert golden.document.extra["fingerprint"] == mlperf.fingerprint
    assert answer(golden, mlperf) is PASSED
    assert answer(record(dataset, spec=PRESETS["golden"]), mlperf) is FAILED
    assert answer(record(dataset, lambda entry: (HIT,), spec=PRESETS["golden"], concurrency=8), mlperf) is NOT_JUDGED
    assert mlperf.metrics["overall_accuracy"].min == Decimal("83.64")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
REQUESTS = st.dictionaries(
    TEXTS,
    st.recursive(
        st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


@given(request=REQUESTS, model=TEXTS, name=TEXTS, modulo=st.integers(2, 20))
def test_a_baseline_written_from_a_run_is_one_it_passes(
    request: dict[str, Any],
    model: str,
    name: str,
    modulo: int,
    dataset: Dataset,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def play(entry: Entry) -> tuple[Outcome, ...]:
        return (MISS if entry.row % modulo == 1 else HIT,)

    found = record(dataset, play, request=request, model=model)
    file = tmp_path_factory.mktemp("written") / "b.toml"
    file.write_text(baseline_toml(found.document, name=name, for_model=True), encoding="utf-8")
    (read,) = read_baselines(file)
    assert (read.name, read.model, read.draw) == (name, model, "mini")
    assert read.metrics["samples"].is_pin
    assert answer(found, read) is PASSED


def test_the_noise_of_a_written_baseline_is_of_the_standard_error(dataset: Dataset) -> None:
    document = record(dataset).document
    text = baseline_toml(document)
    assert document.details.statistics is not None
    assert document.details.statistics.overall is not None
    error = document.details.statistics.overall.standard_error
    assert f"min = 68.75\nnoise = 5.64  # 1.645 standard errors of {error}" in text
    assert error == pytest.approx(3.43, abs=0.01)


# Not worse than another run.


def worse_by(rows: int, dataset: Dataset) -> RunRecord:
    hits = [entry.id for entry in dataset.by_id.values() if entry.row % 3 != 2 and entry.subset == "simple_python"]
    lost = set(hits[:rows])
    return record(dataset, lambda entry: (MISS,) if entry.id in lost else two_in_three(entry), source="candidate")


@pytest.mark.parametrize(
    ("lost", "margin", "status"),
    [
        (0, None, PASSED),
        (0, Decimal(0), PASSED),
        (1, None, PASSED),  # -0.52 points, 1.645 standard errors are 0.86
        (1, Decimal("0.5"), FAILED),
        (1, Decimal(2), PASSED),
        (12, None, FAILED),
        (12, Decimal(20), PASSED),
    ],
)
def test_not_worse_means_not_shown_to_be_and_with_a_margin_shown_not_to_be(
    lost: int, margin: Decimal | None, status: Status, dataset: Dataset
) -> None:
    named = clusters(dataset.by_id.values())
    check = not_worse(compare(record(dataset), worse_by(lost, dataset), named), margin)
    assert check.status is status
    assert "points against shard-0" in check.reason


def test_without_a_standard_error_nothing_is_judged(dataset: Dataset) -> None:
    one = DrawSpec(subsets=("multiple",), limit=1)
    runs = [record(dataset, play, spec=one) for play in (lambda entry: (HIT,), lambda entry: (MISS,))]
    check = not_worse(compare(runs[0], runs[1], clusters(dataset.by_id.values())), None)
    assert check.status is NOT_JUDGED


# What CI systems read.

HOSTILE = 'm|<script>alert(1)</script>\n# x ]]> & "\x00\x1b[31m'


@pytest.fixture
def decisions(dataset: Dataset) -> list[Decision]:
    strict = baseline(overall_accuracy={"min": 60}, samples={"min": 192, "max": 192}, **{"category.live": {"min": 99}})
    runs = [record(dataset, model=HOSTILE, source="first"), record(dataset, shard=Shard(0, 2), source="second")]
    return [Decision(run, judge(run, [strict])) for run in runs]


def test_the_text_and_the_summary_are_the_golden_files(decisions: list[Decision]) -> None:
    assert render_decision(decisions) == (GOLDEN_FILES / "gate.txt").read_text()
    assert decision_markdown(decisions) == (GOLDEN_FILES / "gate.md").read_text()


def test_nothing_in_the_summary_is_markup(decisions: list[Decision]) -> None:
    summary = decision_markdown(decisions)
    assert "<script" not in summary
    assert all(line.count(" | ") == 2 for line in summary.splitlines() if line.startswith("| ") and "check" not in line)


def test_junit_says_failures_and_errors_and_survives_any_name(decisions: list[Decision]) -> None:
    root = ElementTree.fromstring(decision_junit(decisions))  # noqa: S314 - written just now
    first, second = root.findall("testsuite")
    assert (first.get("tests"), first.get("failures"), first.get("errors")) == ("3", "1", "0")
    assert [case.get("name") for case in first.findall("testcase") if case.find("failure") is not None] == [
        "category.live"
    ]
    assert second.find("testcase/error") is not None
    assert "\x00" not in str(first.get("name"))


def test_machines_get_the_same(decisions: list[Decision]) -> None:
    document = json.loads(decision_json(decisions))
    assert (document["schema_version"], document["status"]) == (1, "not judged")
    assert [run["status"] for run in document["runs"]] == ["failed", "not judged"]
    assert document["runs"][0]["checks"][0] == {
        "name": "overall_accuracy",
        "status": "passed",
        "reason": "68.75, at least 60 wanted",
    }


# The command, as a shell script uses it.


@pytest.fixture(scope="module")
def files(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    written(record(dataset), folder / "good.json")
    written(record(dataset, shard=Shard(0, 2)), folder / "half.json")
    written(worse_by(12, dataset), folder / "worse.json")
    written(record(dataset, mode="prompt"), folder / "prompt.json")
    written(edited(record(dataset), lambda p: p["metrics"].update(samples=191)), folder / "edited.json")
    for name, least in (("low", 60), ("high", 80)):
        text = f"[[baseline]]\nname = '{name}'\ndraw = 'mini'\n[baseline.metrics.overall_accuracy]\nmin = {least}\n"
        (folder / f"{name}.toml").write_text(text)
    (folder / "broken.toml").write_text("[[baseline]]\n")
    return folder


SITUATIONS = [
    (0, "good.json --baseline-file low.toml"),
    (0, "good.json --not-worse-than good.json"),
    (0, "good.json --baseline-file low.toml --baseline low --not-worse-than good.json --margin 0"),
    (1, "none.json --baseline-file low.toml"),
    (1, "good.json --baseline-file broken.toml"),
    (1, "good.json --baseline-file low.toml --baseline other"),
    (1, "edited.json --baseline-file low.toml"),
    (2, "good.json"),
    (2, "good.json --baseline nothing-of-the-kind"),
    (2, "good.json --baseline-file low.toml --margin 1"),
    (2, "good.json --not-worse-than good.json --margin much"),
    (2, "--baseline-file low.toml"),
    (3, "good.json --baseline-file high.toml"),
    (3, "worse.json --not-worse-than good.json"),
    (3, "good.json worse.json --not-worse-than good.json"),
    (4, "good.json --baseline mlperf-edge-agentic"),
    (4, "half.json --baseline-file low.toml"),
    (4, "prompt.json --not-worse-than good.json"),
    (4, "good.json half.json --baseline-file high.toml"),
]


def test_a_shell_script_gets_the_documented_exit_codes(files: Path) -> None:
    lines = [f'"$0" -m agentcompass_bfcl gate {arguments} >/dev/null 2>&1; echo $?' for _, arguments in SITUATIONS]
    done = subprocess.run(
        ["sh", "-c", "\n".join(lines), sys.executable], cwd=files, capture_output=True, text=True, check=True
    )
    codes = [int(code) for code in done.stdout.split()]
    assert list(zip(codes, (arguments for _, arguments in SITUATIONS), strict=True)) == SITUATIONS


def test_files_for_ci_systems_are_written(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run = ["gate", str(files / "good.json"), "--baseline-file", str(files / "low.toml")]
    assert main([*run, "--junit", str(tmp_path / "gate.xml"), "--summary", "auto", "--json"]) == 0
    assert summary.read_text().startswith("before\n### Gate passed: some-model, draw mini\n")
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().tag == "testsuites"  # noqa: S314 - written just now
    assert json.loads(capsys.readouterr().out)["status"] == "passed"
    assert main(run) == 0
    assert summary.read_text().count("###") == 1


def test_a_baseline_is_written_once_and_never_of_a_lone_shard(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new.toml"
    write = ["gate", str(files / "good.json"), "--write-baseline", str(target), "--name", "mine"]
    assert main(write) == 0
    assert main(["gate", str(files / "good.json"), "--baseline-file", str(target)]) == 0
    assert main(write) == 1
    assert "--force" in capsys.readouterr().err
    assert main([*write, "--force"]) == 0
    assert main(["gate", str(files / "half.json"), "--write-baseline", str(tmp_path / "half.toml")]) == 1
    assert "merge all shards first" in capsys.readouterr().err


def test_a_bound_is_a_pin_only_where_both_ends_meet() -> None:
    assert Bound(min=Decimal(1), max=Decimal(1)).is_pin
    assert not Bound(min=Decimal(1), max=Decimal(2)).is_pin
    assert not Bound(min=Decimal(1)).is_pin

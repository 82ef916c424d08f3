"""``gate`` as a shell script and a CI system use it: exit codes, and the files it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS
from agentcompass_bfcl.report.decision_document import DecisionDocument
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.tally import Outcome
from records import ERROR, HIT, MISS, edited, record, two_in_three, written


def with_losses(entry: Entry) -> tuple[Outcome, ...]:
    return (MISS,) if entry.subset == "simple_python" and entry.row < 18 else two_in_three(entry)


BASELINES = {
    "low": "draw = 'mini'\n[baseline.metrics.overall_accuracy]\nmin = 60",
    "high": "draw = 'mini'\n[baseline.metrics.overall_accuracy]\nmin = 80",
    "noisy": "draw = 'mini'\n[baseline.metrics.overall_accuracy]\nmin = 69.15\nnoise = 0.4",
    "too_high": "draw = 'mini'\n[baseline.metrics.overall_accuracy]\nmin = 69.16\nnoise = 0.4",
    "unbound": "draw = 'mini'",
    "foreign": "fingerprint = 'draw-sha256:0'\n[baseline.metrics.samples]\nmin = 1",
    "other_model": "draw = 'mini'\nmodel = 'other'\n[baseline.metrics.samples]\nmin = 1",
    "condition": "draw = 'mini'\n[baseline.conditions]\nconcurrency = 2\n[baseline.metrics.samples]\nmin = 1",
    "absent": "draw = 'mini'\n[baseline.metrics.subset.live_relevance.accuracy]\nmin = 1",
    "two": "name = 'lax'\ndraw = 'mini'\n[baseline.metrics.samples]\nmin = 1\n"
    "[[baseline]]\nname = 'strict'\ndraw = 'mini'\n[baseline.metrics.samples]\nmin = 193",
    "pin_with_noise": "draw = 'mini'\n[baseline.metrics.samples]\nmin = 192\nmax = 192\nnoise = 1",
}


@pytest.fixture(scope="module")
def files(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    golden = PRESETS["golden"]
    runs = {
        "good": record(dataset),
        "half": record(dataset, shard=Shard(0, 2)),
        "worse": record(dataset, with_losses),
        "prompt": record(dataset, mode="prompt"),
        "nothing": record(dataset, lambda entry: (ERROR,)),
        "edited": edited(record(dataset), lambda payload: payload["metrics"].update(samples=191)),
        "golden": record(dataset, lambda entry: (HIT,), spec=golden),
        "golden_low": record(dataset, spec=golden),
        "golden_fast": record(dataset, lambda entry: (HIT,), spec=golden, concurrency=8),
    }
    for name, run in runs.items():
        written(run, folder / f"{name}.json")
    (folder / "torn.json").write_text((folder / "good.json").read_text()[:-100])
    (folder / "folder").mkdir()
    for name, text in BASELINES.items():
        (folder / f"{name}.toml").write_text(f"[[baseline]]\n{text}\n")
    (folder / "broken.toml").write_text("[[baseline]\n")
    (folder / "there.toml").write_text("")
    return folder


SITUATIONS = [
    (0, "good.json --baseline-file low.toml"),
    (0, "good.json --baseline-file noisy.toml"),
    (0, "good.json --baseline-file two.toml --baseline lax"),
    (0, "good.json good.json --baseline-file low.toml"),
    (0, "golden.json --baseline mlperf-edge-agentic"),
    (0, "good.json --not-worse-than good.json"),
    (0, "good.json --not-worse-than worse.json"),
    (0, "half.json golden.json --help"),
    (0, "good.json --baseline-file low.toml --not-worse-than good.json --margin 0"),
    (0, "worse.json --not-worse-than good.json --margin 20"),
    (0, "good.json --write-baseline new.toml --name mine"),
    (0, "good.json --baseline-file new.toml --baseline mine"),
    (0, "good.json --write-baseline there.toml --force"),
    (1, "none.json --baseline-file low.toml"),
    (1, "torn.json --baseline-file low.toml"),
    (1, "folder --baseline-file low.toml"),
    (1, "edited.json --baseline-file low.toml"),
    (1, "edited.json --not-worse-than good.json"),
    (1, "good.json --not-worse-than edited.json"),
    (1, "good.json --not-worse-than none.json"),
    (1, "good.json --baseline-file none.toml"),
    (1, "good.json --baseline-file broken.toml"),
    (1, "good.json --baseline-file pin_with_noise.toml"),
    (1, "good.json --baseline-file low.toml --baseline other"),
    (1, "good.json --baseline-file low.toml --junit none/gate.xml"),
    (1, "good.json --baseline-file low.toml --summary none/gate.md"),
    (1, "good.json --write-baseline low.toml"),
    (1, "half.json --write-baseline half.toml"),
    (1, "nothing.json --write-baseline nothing.toml"),
    (1, "half.json torn.json worse.json good.json --baseline-file high.toml"),
    (2, ""),
    (2, "good.json"),
    (2, "good.json --baseline nothing-of-the-kind"),
    (2, "good.json --baseline-file low.toml --margin 1"),
    (2, "good.json --not-worse-than good.json --margin much"),
    (2, "good.json --not-worse-than good.json --margin=-1"),
    (2, "good.json --not-worse-than good.json --margin nan"),
    (2, "good.json --not-worse-than good.json --margin 101"),
    (2, "good.json --baseline-file low.toml --name x"),
    (2, "good.json --baseline-file low.toml --force"),
    (2, "good.json good.json --write-baseline x.toml"),
    (2, "good.json --write-baseline x.toml --baseline-file low.toml"),
    (2, "good.json --write-baseline x.toml --junit x.xml"),
    (2, "good.json --no-such-option"),
    (2, "--baseline-file low.toml"),
    (3, "good.json --baseline-file high.toml"),
    (3, "good.json --baseline-file too_high.toml"),
    (3, "good.json --baseline-file two.toml"),
    (3, "golden_low.json --baseline mlperf-edge-agentic"),
    (3, "worse.json --not-worse-than good.json"),
    (3, "good.json worse.json --not-worse-than good.json"),
    (3, "worse.json --baseline-file low.toml --not-worse-than good.json"),
    (3, "worse.json --not-worse-than good.json --margin 2"),
    (4, "good.json --baseline mlperf-edge-agentic"),
    (4, "golden_fast.json --baseline mlperf-edge-agentic"),
    (4, "half.json --baseline-file low.toml"),
    (4, "half.json --not-worse-than half.json"),
    (4, "good.json --not-worse-than half.json"),
    (4, "nothing.json --baseline-file low.toml"),
    (4, "nothing.json --not-worse-than nothing.json"),
    (4, "prompt.json --not-worse-than good.json"),
    (4, "good.json --baseline-file unbound.toml"),
    (4, "good.json --baseline-file foreign.toml"),
    (4, "good.json --baseline-file other_model.toml"),
    (4, "good.json --baseline-file condition.toml"),
    (4, "good.json --baseline-file absent.toml"),
    (4, "good.json half.json --baseline-file high.toml"),
]


@pytest.mark.slow
def test_a_shell_script_gets_the_documented_exit_codes(files: Path) -> None:
    # One interpreter after the other, in the order of the table: some read what an earlier one wrote.
    lines = [f'"$0" -m agentcompass_bfcl gate {arguments} >/dev/null 2>&1; echo $?' for _, arguments in SITUATIONS]
    lines.insert(0, "unset GITHUB_STEP_SUMMARY")
    done = subprocess.run(
        ["sh", "-c", "\n".join(lines), sys.executable], cwd=files, capture_output=True, text=True, check=True
    )
    codes = [int(code) for code in done.stdout.split()]
    assert list(zip(codes, (arguments for _, arguments in SITUATIONS), strict=True)) == SITUATIONS
    assert not (files / "x.toml").exists()
    assert not (files / "half.toml").exists()


def test_no_error_is_a_traceback(files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.chdir(files)
    for _, arguments in (situation for situation in SITUATIONS if situation[0] == 1):
        assert main(["gate", *arguments.split()]) == 1
        said = capsys.readouterr().err
        assert said.startswith("agentcompass-bfcl: ")
        assert said.count("\n") == 1


def test_a_damaged_run_does_not_keep_the_others_from_being_judged_and_reported(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(files / f"{name}.json") for name in ("good", "torn", "half", "worse")]
    junit, summary = tmp_path / "gate.xml", tmp_path / "gate.md"
    reports = ["--junit", str(junit), "--summary", str(summary), "--json"]
    assert main(["gate", *runs, "--baseline-file", str(files / "noisy.toml"), *reports]) == 1
    said = capsys.readouterr()
    document = DecisionDocument.model_validate_json(said.out)
    assert [run.status.value for run in document.runs] == ["passed", "error", "not judged", "failed"]
    assert said.err.count("\n") == 1
    assert "torn.json" in said.err
    suites = ElementTree.parse(junit).getroot()  # noqa: S314 - written just now
    assert [(suite.get("failures"), suite.get("errors")) for suite in suites] == [
        *(("0", "0"), ("0", "1"), ("0", "1"), ("1", "0"))
    ]
    assert summary.read_text().count("### Gate ") == 4


def test_a_damaged_yardstick_is_an_error_of_the_command_and_judges_no_run(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(files / "good.json"), str(files / "worse.json")]
    assert main(["gate", *runs, "--not-worse-than", str(files / "edited.json"), "--json"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("was it edited?") == 1
    assert str(files / "edited.json") in said.err


def test_the_summary_is_appended_to_and_only_where_it_is_asked_for(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run = ["gate", str(files / "good.json"), "--baseline-file", str(files / "low.toml")]
    assert main(run) == 0
    assert summary.read_text() == "before\n"
    assert main([*run, "--summary", "auto"]) == 0
    assert summary.read_text().startswith("before\n### Gate passed: some-model, draw mini ")
    assert main([*run, "--summary", str(summary)]) == 0
    assert summary.read_text().count("###") == 2
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert main([*run, "--summary", "auto"]) == 0
    assert "passed" in capsys.readouterr().out


def test_a_baseline_is_written_once_and_the_run_passes_it(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new.toml"
    write = ["gate", str(files / "good.json"), "--write-baseline", str(target), "--name", "mine", "--for-model"]
    assert main(write) == 0
    text = target.read_text()
    assert 'name = "mine"' in text
    assert 'model = "some-model"' in text
    assert main(["gate", str(files / "good.json"), "--baseline-file", str(target), "--baseline", "mine"]) == 0
    assert main(["gate", str(files / "worse.json"), "--baseline-file", str(target)]) == 3
    target.write_text("mine")
    assert main(write) == 1
    assert "--force" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert main([*write, "--force"]) == 0
    assert target.read_text() == text
    assert main(["gate", str(files / "half.json"), "--write-baseline", str(tmp_path / "half.toml")]) == 1
    assert "merge all shards first" in capsys.readouterr().err


def test_nothing_but_the_runs_is_needed(files: Path, tmp_path: Path) -> None:
    """Neither the wheel nor a cache nor a network: a gate runs where only results are."""
    line = '"$0" -m agentcompass_bfcl gate good.json --baseline-file low.toml --not-worse-than good.json --json'
    environ = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "BFCL_WHEEL": str(tmp_path / "none"), "PATH": ""}
    done = subprocess.run(
        ["/bin/sh", "-c", line, sys.executable], cwd=files, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["status"] == "passed"

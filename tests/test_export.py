from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.errors import ExportError, RunDirError
from agentcompass_bfcl.export import Exported, export_bfcl_eval, export_verdicts, folder_name
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.official_results import find_results, read_rows, rows_only
from agentcompass_bfcl.rescore import rescore
from agentcompass_bfcl.scope import RowsPresent
from agentcompass_bfcl.score import Hit, Miss, Unscored, score_output
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, subset_named
from agentcompass_bfcl.tally import Tally
from host_runs import Finished
from result_trees import perfect_output, write_run

HIT = AttemptRecord(verdict="hit", output=[], prompt_tokens=12, completion_tokens=3, latency_ms=1500.0)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def rescored(folder: Path, dataset: Dataset, official: Official) -> dict[str, Tally]:
    (found,) = find_results(folder)
    faults: list[Any] = []
    result = rescore(
        rows_only(read_rows(found, dataset), faults),
        dataset,
        lambda entry, output: score_output(entry, output, official),
        scope=RowsPresent(),
        facts={},
    )
    assert faults == []
    return result.document.tallies()


@pytest.fixture(scope="module")
def exported(lean: Finished, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Exported]:
    out = tmp_path_factory.mktemp("exported") / "new"
    return out, export_bfcl_eval(lean.run_dir, out, dataset)


def test_an_exported_run_rescores_to_the_same_tallies(
    exported: tuple[Path, Exported], lean: Finished, dataset: Dataset, official: Official
) -> None:
    out, written = exported
    tallies = lean.result.tallies()
    assert rescored(out, dataset, official) == {
        name: Tally(tally.hits, tally.n) for name, tally in tallies.items() if tally.n
    }
    assert written.rows == lean.result.counts.evaluated
    assert written.left_out == lean.result.details.error_types
    assert sum(written.left_out.values()) == lean.result.counts.error > 0


def test_the_tree_has_upstreams_names_keys_order_and_units(exported: tuple[Path, Exported], lean: Finished) -> None:
    out, written = exported
    assert written.folder == out / "result" / "some-model"
    names = [name for name, tally in lean.result.tallies().items() if tally.n]
    assert files_below(out) == {
        f"{kind}/some-model/{subset_named(name).group}/BFCL_v4_{name}_{kind}.json"
        for name in names
        for kind in ("result", "score")
    }
    slowest = 0.0
    for path in written.folder.rglob("*.json"):
        records = lines_of(path)
        assert {tuple(record) for record in records} <= {
            ("id", "result", "input_token_count", "output_token_count", "latency")
        }
        numbers = [int(record["id"].rpartition("_")[2].partition("-")[0]) for record in records]
        assert numbers == sorted(numbers)
        slowest = max(slowest, *(record["latency"] for record in records))
    assert 0 < slowest < 30  # seconds; a request may take 3 s


def test_score_files_have_the_official_totals_and_a_line_for_every_wrong_row(
    exported: tuple[Path, Exported], lean: Finished, dataset: Dataset
) -> None:
    out, _ = exported
    for name, tally in lean.result.tallies().items():
        if not tally.n:
            continue
        path = out / "score" / "some-model" / subset_named(name).group / f"BFCL_v4_{name}_score.json"
        header, *wrong = lines_of(path)
        assert header == {"accuracy": tally.hits / tally.n, "correct_count": tally.hits, "total_count": tally.n}
        missed = {row.id: row.verdict for row in export_verdicts(lean.run_dir, dataset) if row.subset == name}
        assert {row["id"]: row["error_type"] for row in wrong} == {
            sample_id: verdict.error_type for sample_id, verdict in missed.items() if isinstance(verdict, Miss)
        }


def test_a_wrong_row_is_written_with_upstreams_keys_in_upstreams_order(dataset: Dataset, tmp_path: Path) -> None:
    rows = {
        "multiple_0": AttemptRecord(verdict="miss", error_type="value_error:string", detail="no", output=[{"f": "{}"}]),
        "multiple_1": AttemptRecord(verdict="miss", error_type="ast_decoder:decoder_failed", output="text"),
        "multiple_2": AttemptRecord(
            verdict="miss", error_type="ast_decoder:decoder_wrong_output_format", output=[{"f": "[1]"}]
        ),
        "irrelevance_0": AttemptRecord(
            verdict="miss", error_type="irrelevance_error:decoder_success", output=[{"f": '{"a": 1}'}]
        ),
    }
    write_run(tmp_path / "run", {dataset.entry(sample_id): record for sample_id, record in rows.items()})
    export_bfcl_eval(tmp_path / "run", tmp_path / "out", dataset)
    folder = tmp_path / "out" / "score" / "some-model" / "non_live"
    _, checked, undecoded, misformed = lines_of(folder / "BFCL_v4_multiple_score.json")
    head = ["id", "model_name", "test_category", "valid"]
    raw, decoded = "model_result_raw", "model_result_decoded"
    assert list(checked) == [*head, "error", "error_type", "prompt", raw, decoded, "possible_answer"]
    assert list(undecoded) == [*head, "error", "error_type", "prompt", raw, "possible_answer"]
    entry = dataset.entry("multiple_0")
    assert checked == {
        "id": "multiple_0",
        "model_name": "some-model",
        "test_category": "multiple",
        "valid": False,
        "error": ["no"],
        "error_type": "value_error:string",
        "prompt": {"id": "multiple_0", "question": [entry.messages()], "function": entry.functions()},
        "model_result_raw": [{"f": "{}"}],
        "model_result_decoded": [{"f": {}}],
        "possible_answer": entry.reference_answers(),
    }
    assert (misformed[raw], misformed[decoded]) == ("[{'f': '[1]'}]", "[{'f': [1]}]")
    _, called = lines_of(folder / "BFCL_v4_irrelevance_score.json")
    assert list(called) == [*head, "prompt", "model_result", "decoded_result", "error", "error_type"]
    assert called["decoded_result"] == [{"f": {"a": 1}}]


def test_failed_requests_broken_checks_and_rows_never_run_are_left_out_and_counted(
    dataset: Dataset, tmp_path: Path
) -> None:
    first, second, third, fourth = dataset.rows["irrelevance"][:4]
    broken = AttemptRecord(verdict="unscored", reason="checker_raised", output=[])
    attempts: dict[Entry, AttemptRecord | str] = {
        fourth: HIT,
        first: "transport_http_500",
        second: broken,
        third: HIT.model_copy(update={"output": ""}),
    }
    write_run(tmp_path / "run", attempts, params={"draw": "all", "subsets": ["irrelevance"], "limit": 6})
    written = export_bfcl_eval(tmp_path / "run", tmp_path / "out", dataset)
    assert written.rows == 2
    assert written.left_out == {"checker_raised": 1, "not_run": 2, "transport_http_500": 1}
    facts = {"input_token_count": 12, "output_token_count": 3, "latency": 1.5}
    assert lines_of(written.folder / "non_live" / "BFCL_v4_irrelevance_result.json") == [
        {"id": "irrelevance_2", "result": "", **facts},
        {"id": "irrelevance_3", "result": [], **facts},
    ]


def test_facts_that_are_not_known_are_left_out_and_not_zero(dataset: Dataset, tmp_path: Path) -> None:
    entry = dataset.rows["irrelevance"][0]
    write_run(tmp_path / "run", {entry: AttemptRecord(verdict="hit", output="\u2028 é")})
    written = export_bfcl_eval(tmp_path / "run", tmp_path / "out", dataset)
    (path,) = written.folder.rglob("*.json")
    assert lines_of(path) == [{"id": "irrelevance_0", "result": "\u2028 é"}]


def test_the_order_of_a_file_is_numeric_as_upstream_sorts(dataset: Dataset, tmp_path: Path) -> None:
    rows = [*dataset.rows["live_simple"][:12], *dataset.rows["simple_java"][8:12]]
    write_run(tmp_path / "run", dict.fromkeys(reversed(rows), HIT))
    written = export_bfcl_eval(tmp_path / "run", tmp_path / "out", dataset)
    found = {path.name: [record["id"] for record in lines_of(path)] for path in written.folder.rglob("*.json")}
    assert found == {
        "BFCL_v4_live_simple_result.json": [entry.id for entry in rows[:12]],
        "BFCL_v4_simple_java_result.json": ["simple_java_8", "simple_java_9", "simple_java_10", "simple_java_11"],
    }


def one_row_run(run_dir: Path, dataset: Dataset, **options: Any) -> Path:
    return write_run(run_dir, {dataset.rows["irrelevance"][0]: HIT}, **options)


def test_a_folder_that_holds_something_is_left_as_it_is(dataset: Dataset, tmp_path: Path) -> None:
    run_dir = one_row_run(tmp_path / "run", dataset)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    for place in (tmp_path / "out", tmp_path / "out" / "mine"):
        with pytest.raises(ExportError, match="holds something already; give a new or an empty folder"):
            export_bfcl_eval(run_dir, place, dataset)
    with pytest.raises(ExportError, match="cannot be written to"):
        export_bfcl_eval(run_dir, tmp_path / "out" / "mine" / "below", dataset)
    assert files_below(tmp_path / "out") == {"mine"}
    (tmp_path / "empty").mkdir()
    assert export_bfcl_eval(run_dir, tmp_path / "empty", dataset).rows == 1


@pytest.mark.parametrize("model", ["", ".", "..", "a\x00b", "a\nb", "\x1b[31m", "x" * 256, "é" * 128])
def test_a_name_no_folder_can_have_is_refused_before_anything_is_written(
    model: str, dataset: Dataset, tmp_path: Path
) -> None:
    run_dir = one_row_run(tmp_path / "run", dataset, model=model)
    with pytest.raises(ExportError, match="can be no folder's name; give another with --model") as refusal:
        export_bfcl_eval(run_dir, tmp_path / "out", dataset)
    assert str(refusal.value).isprintable()
    assert not (tmp_path / "out").exists()
    assert export_bfcl_eval(run_dir, tmp_path / "out", dataset, model="good").folder.name == "good"


def test_half_a_letter_in_a_name_is_refused_whether_a_run_or_the_command_line_says_it(
    dataset: Dataset, tmp_path: Path
) -> None:
    run_dir = one_row_run(tmp_path / "run", dataset, model="a\ud800")
    with pytest.raises(RunDirError, match=r"request\.model\.id: half of a letter"):
        export_bfcl_eval(run_dir, tmp_path / "out", dataset)
    with pytest.raises(ExportError, match="can be no folder's name; give another with --model"):
        export_bfcl_eval(run_dir, tmp_path / "out", dataset, model="a\udcff")
    assert not (tmp_path / "out").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=st.text(st.sampled_from("./\\~a\x00 \u202e") | st.characters(), max_size=6))
def test_whatever_a_model_is_called_its_folder_lies_in_the_one_that_was_given(model: str, tmp_path: Path) -> None:
    try:
        name = folder_name(model)
    except ExportError:
        return
    (tmp_path / name).mkdir(exist_ok=True)
    assert (tmp_path / name).resolve().parent == tmp_path.resolve()


def test_a_slash_becomes_an_underscore_as_upstream_writes_it() -> None:
    assert folder_name("../../openai/gpt") == ".._.._openai_gpt"


def test_runs_that_have_nothing_to_export_or_too_much_are_refused(dataset: Dataset, tmp_path: Path) -> None:
    failed = write_run(tmp_path / "failed", {dataset.rows["irrelevance"][0]: "transport_timeout"})
    with pytest.raises(ExportError, match="no sample of this run has a verdict"):
        export_bfcl_eval(failed, tmp_path / "out", dataset)
    with pytest.raises(RunDirError, match="the run made 2 attempts per sample"):
        export_bfcl_eval(one_row_run(tmp_path / "two", dataset, k=2), tmp_path / "out", dataset)
    with pytest.raises(RunDirError, match=r"run_info\.json: no such file"):
        export_bfcl_eval(tmp_path / "nowhere", tmp_path / "out", dataset)
    twice = one_row_run(tmp_path / "twice", dataset)
    (twice / "details" / "normal").rename(twice / "details" / "running")
    one_row_run(twice, dataset)
    with pytest.raises(RunDirError, match="sample irrelevance_0 is there 2 times"):
        export_verdicts(twice, dataset)
    assert not (tmp_path / "out").exists()


def test_a_run_description_that_is_none_is_refused_in_one_line(dataset: Dataset, tmp_path: Path) -> None:
    run_dir = one_row_run(tmp_path / "run", dataset)
    for text in ("", "[]", "{}", '{"request": {"benchmark": {"id": "bfcl"}}}', "[" * 10**5):
        (run_dir / "run_info.json").write_text(text)
        with pytest.raises(RunDirError, match=r"run_info\.json: not the description of a run"):
            export_verdicts(run_dir, dataset)


def test_verdicts_of_a_run_are_its_own(dataset: Dataset, tmp_path: Path) -> None:
    rows: list[tuple[Entry, AttemptRecord | str]] = list(
        zip(
            dataset.rows["multiple"],
            [
                AttemptRecord(verdict="hit", output="which is no call, and not judged again"),
                AttemptRecord(verdict="miss", error_type="type_error:simple", detail="why"),
                AttemptRecord(verdict="unscored", reason="time_limit", detail="5 s"),
                "transport_timeout",
            ],
            strict=False,
        )
    )
    write_run(tmp_path / "run", dict(rows))
    rows_of_run = export_verdicts(tmp_path / "run", dataset)
    assert Counter(row.verdict.reason for row in rows_of_run if isinstance(row.verdict, Unscored))["not_run"] == 188
    assert [(row.id, row.subset, row.verdict) for row in rows_of_run if row.subset == "multiple"][:4] == [
        ("multiple_0", "multiple", Hit()),
        ("multiple_1", "multiple", Miss("type_error:simple", "why")),
        ("multiple_2", "multiple", Unscored("time_limit", "5 s")),
        ("multiple_3", "multiple", Unscored("transport_timeout", "it failed: transport_timeout")),
    ]


type Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([*map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_the_command_writes_a_tree_and_says_what_it_left_out(
    command: Command, dataset: Dataset, tmp_path: Path
) -> None:
    rows: dict[Entry, AttemptRecord | str] = {
        dataset.rows[name][0]: AttemptRecord(verdict="hit", output=perfect_output(dataset.rows[name][0]))
        for name in SINGLE_TURN_SUBSETS
    }
    rows[dataset.rows["multiple"][1]] = "transport_timeout"
    run_dir = write_run(tmp_path / "run", rows, params={"draw": "all", "limit": 14}, model="a/b")
    code, out, err = command("export", run_dir, "--to", "bfcl-eval", "--out", tmp_path / "out")
    assert (code, out) == (0, f"13 rows in {tmp_path}/out/result/a_b\n")
    assert err.startswith("agentcompass-bfcl: left out 2 samples without a verdict (not_run 1, transport_timeout 1)")
    assert err.endswith("use `bfcl evaluate --partial-eval`\n")
    assert command("rescore", tmp_path / "out", "--partial")[0] == 0
    named = command("export", run_dir, "--to", "bfcl-eval", "--out", tmp_path / "other", "--model", "gpt-FC")
    assert named[1] == f"13 rows in {tmp_path}/other/result/gpt-FC\n"
    code, _, err = command("export", run_dir, "--to", "bfcl-eval", "--out", "-")
    assert (code, err) == (1, "agentcompass-bfcl: --to bfcl-eval writes a folder; name one with --out\n")


def test_the_command_writes_verdicts_and_the_result_to_a_file_or_standard_output(
    command: Command, lean: Finished, tmp_path: Path
) -> None:
    for form in ("verdicts", "json"):
        assert command("export", lean.run_dir, "--to", form, "--out", tmp_path / form) == (0, "", "")
        assert command("export", lean.run_dir, "--to", form, "--out", "-")[1] == (tmp_path / form).read_text()
    assert (tmp_path / "json").read_text() == lean.result.to_json()
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts").read_text().splitlines()]
    assert len(verdicts) == lean.result.counts.total
    assert sum(row["verdict"] == "unscored" for row in verdicts) == lean.result.counts.error
    assert all((row["error_type"] is None) == (row["verdict"] != "miss") for row in verdicts)
    assert all((row["reason"] is None) == (row["verdict"] != "unscored") for row in verdicts)
    code, _, err = command("export", lean.run_dir, "--to", "json", "--out", tmp_path)
    assert (code, err) == (1, f"agentcompass-bfcl: {tmp_path}: cannot be written to (Is a directory)\n")
    code, _, err = command("export", lean.run_dir, "--to", "json", "--out", "-", "--model", "m")
    assert (code, err) == (1, "agentcompass-bfcl: --model is for --to bfcl-eval\n")

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, DrawSpec, fingerprint, select
from agentcompass_bfcl.errors import DatasetError, ShardError, TallyError
from agentcompass_bfcl.export import export_verdicts
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.official_results import StoredRow, find_results, read_rows, rows_only
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.rescore import Rescored, judged_attempt, rescore, result_facts, run_facts, run_rows, run_scope
from agentcompass_bfcl.run_dir import read_attempts
from agentcompass_bfcl.run_request import read_request
from agentcompass_bfcl.scope import Drawn, RowsPresent, Scope, WholeSubsets
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict, score_output
from agentcompass_bfcl.settings import RunSettings
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS
from agentcompass_bfcl.tally import Tally
from agentcompass_bfcl.verdicts import VerdictRow, verdict_lines
from fresh_python import run_python
from host_runs import Finished
from recordings import RUNS, needs_recordings, official_scores, run_folder
from result_trees import perfect_output, result_line, result_path, write_results, write_run, write_subsets

FACTS = result_facts("some_model", RunSettings(), official_errors=False)


def by_words(entry: Entry, output: Any) -> Verdict:
    """Judge as the output says: counting is what these tests are about."""
    words: dict[str, Verdict] = {
        "hit": Hit(),
        "miss": Miss("value_error:string", ""),
        "broken": Unscored("checker_raised", ""),
    }
    return words[output]


def judged(rows: list[tuple[Entry, str]], dataset: Dataset, scope: Scope) -> Rescored:
    stored = [StoredRow(entry.id, word) for entry, word in rows]
    return rescore(stored, dataset, by_words, scope=scope, facts=FACTS)


def test_every_row_of_a_whole_subset_is_there_or_an_error(dataset: Dataset) -> None:
    words = ["hit", "miss", "broken", "miss"]
    rows = list(zip(dataset.rows["live_parallel"], words, strict=False))
    document = judged(rows, dataset, WholeSubsets(("irrelevance", "live_parallel"))).document
    assert document.tallies() == {"irrelevance": Tally(errors=240), "live_parallel": Tally(1, 3, 13)}
    assert document.details.error_types == {"checker_raised": 1, "not_run": 252}
    assert document.details.miss_types == {"value_error:string": 2}


def test_of_a_draw_the_rows_outside_are_passed_over_and_the_missing_ones_are_errors(dataset: Dataset) -> None:
    drawn = select(PRESETS["golden"], dataset)
    rows = [(entry, "hit") for entries in dataset.rows.values() for entry in entries if entry.id != "simple_python_7"]
    result = judged(rows, dataset, Drawn(PRESETS["golden"]))
    assert (result.document.counts.total, result.document.counts.error) == (995, 1)
    assert result.document.details.error_types == {"not_run": 1}
    assert result.outside == 3641 - 995
    *there, missing = result.verdicts
    assert [row.id for row in there] == [entry.id for entry, _ in rows if entry in set(drawn)]
    assert (missing.id, missing.verdict) == ("simple_python_7", Unscored("not_run", "not among the stored outputs"))
    extra = result.document.extra
    assert (extra["draw"], extra["scope"], extra["shard"]) == ("golden", "draw", "0/1")
    assert extra["draw_fingerprint"] == extra["fingerprint"]
    assert extra["fingerprint"].startswith(
        "draw-sha256:31225ad1c4ee7087aee9cbf5245e53710d1f2bf20074f3310a985d868dd96d28;"
    )


def test_shards_of_a_draw_rescore_to_the_parts_of_the_whole(dataset: Dataset) -> None:
    rows = [(entry, "hit" if entry.row % 3 else "miss") for entry in select(PRESETS["mini"], dataset)]
    whole = judged(rows, dataset, Drawn(PRESETS["mini"])).document
    parts = [judged(rows, dataset, Drawn(PRESETS["mini"], Shard(index, 3))).document for index in range(3)]
    assert sum(part.counts.evaluated for part in parts) == whole.counts.evaluated == 192
    assert {part.extra["draw_fingerprint"] for part in parts} == {whole.extra["fingerprint"]}
    assert len({part.extra["fingerprint"] for part in parts}) == 3


def test_an_empty_shard_is_refused(dataset: Dataset) -> None:
    with pytest.raises(ShardError, match="shard 3/4 of this draw is empty"):
        judged([], dataset, Drawn(DrawSpec(subsets=("multiple",), limit=2), Shard(3, 4)))


def test_of_the_rows_present_none_is_missing(dataset: Dataset) -> None:
    rows = [(dataset.rows["multiple"][3], "hit"), (dataset.rows["irrelevance"][0], "miss")]
    document = judged(rows, dataset, RowsPresent()).document
    assert document.tallies() == {"irrelevance": Tally(0, 1), "multiple": Tally(1, 1)}
    assert document.extra["fingerprint"] == fingerprint(DrawSpec(), ["irrelevance_0", "multiple_3"])
    assert (document.extra["scope"], document.extra["spec"]) == ("rows present", None)
    assert "custom (rows present), mode fc" in render_text(document)


@pytest.mark.parametrize(
    ("names", "draw"),
    [
        (SINGLE_TURN_SUBSETS, "all"),
        ([name for name in SINGLE_TURN_SUBSETS if name != "live_relevance"], "full"),
        (("multiple",), "custom"),
    ],
)
def test_whole_subsets_are_the_draw_that_a_run_of_them_has(names: tuple[str, ...], draw: str, dataset: Dataset) -> None:
    scope = WholeSubsets(tuple(names))
    extra = judged([], dataset, scope).document.extra
    assert extra["draw"] == draw
    assert extra["fingerprint"] == fingerprint(scope.spec, (entry.id for entry in select(scope.spec, dataset)))
    assert sorted({entry.subset for entry in select(scope.spec, dataset)}) == sorted(names)


def test_a_failure_is_not_judged_and_keeps_its_reason(dataset: Dataset) -> None:
    row = StoredRow("irrelevance_0", "not a word of the judge", Unscored("inference_error", "500"))
    result = rescore([row], dataset, by_words, scope=RowsPresent(), facts=FACTS)
    assert result.document.tallies() == {"irrelevance": Tally(errors=1)}
    assert result.document.details.error_types == {"inference_error": 1}
    assert result.document.metrics.keys() & {"overall_accuracy", "normalized_single_turn_score"} == set()


def test_a_row_that_comes_twice_and_one_that_does_not_exist_are_refused(dataset: Dataset) -> None:
    entry = dataset.rows["multiple"][0]
    with pytest.raises(TallyError, match="multiple_0 is counted twice"):
        judged([(entry, "hit"), (entry, "hit")], dataset, RowsPresent())
    with pytest.raises(DatasetError, match="multiple_999"):
        rescore([StoredRow("multiple_999", "hit")], dataset, by_words, scope=RowsPresent(), facts=FACTS)


def test_the_identity_says_where_the_outputs_came_from(dataset: Dataset) -> None:
    extra = judged([(dataset.rows["multiple"][0], "hit")], dataset, RowsPresent()).document.extra
    assert extra | {"versions": None, "draw_fingerprint": None, "fingerprint": None} == {
        "scope": "rows present",
        "draw": "custom",
        "spec": None,
        "draw_fingerprint": None,
        "fingerprint": None,
        "shard": "0/1",
        "dataset": dataset.identity,
        "checker": extra["checker"],
        "on_error": "fail",
        "versions": None,
        "mode": "fc",
        "strip_think": False,
        "model": "some_model",
        "source": "bfcl-eval results",
        "official_errors": False,
    }


@given(data=st.data())
def test_counts_add_up_whatever_is_there_and_in_whatever_order(data: st.DataObject, dataset: Dataset) -> None:
    entries = [*dataset.rows["live_parallel"], *dataset.rows["live_relevance"]]
    chosen = data.draw(st.lists(st.sampled_from(entries), unique_by=lambda entry: entry.id, min_size=1, max_size=20))
    rows = [(entry, data.draw(st.sampled_from(["hit", "miss", "broken"]))) for entry in chosen]
    scopes: list[Scope] = [RowsPresent(), WholeSubsets(("live_parallel",)), Drawn(PRESETS["full"], Shard(1, 3))]
    scope = data.draw(st.sampled_from(scopes))
    result = judged(rows, dataset, scope)
    document = result.document
    assert len(result.verdicts) == document.counts.total
    assert len(result.verdicts) + result.outside == len(rows) + document.details.error_types.get("not_run", 0)
    assert document.counts.error == sum(document.details.error_types.values())
    assert sum(tally.hits for tally in document.tallies().values()) == sum(
        isinstance(row.verdict, Hit) for row in result.verdicts
    )
    shuffled = judged(data.draw(st.permutations(rows)), dataset, scope)
    assert shuffled.document.to_json() == document.to_json()


def of_tree(folder: Path, dataset: Dataset, official: Official, *, official_errors: bool = False) -> Rescored:
    (found,) = find_results(folder)
    faults: list[Any] = []
    result = rescore(
        rows_only(read_rows(found, dataset, official_errors=official_errors), faults),
        dataset,
        lambda entry, output: score_output(entry, output, official),
        scope=WholeSubsets(tuple(found.files)),
        facts=result_facts(found.model, RunSettings(), official_errors=official_errors),
    )
    assert faults == []
    return result


@needs_recordings
@pytest.mark.parametrize("run", RUNS)
def test_a_recorded_run_is_rescored_to_the_official_counts_failed_rows_and_error_types(
    run: str, dataset: Dataset, official: Official
) -> None:
    result = of_tree(run_folder(run), dataset, official, official_errors=True)
    recorded = official_scores(run)["subsets"]
    assert {name: (tally.hits, tally.n) for name, tally in result.document.tallies().items()} == {
        name: (subset["correct_count"], subset["total_count"]) for name, subset in recorded.items()
    }
    failed: dict[str, dict[str, str]] = {name: {} for name in recorded}
    for row in result.verdicts:
        if not isinstance(row.verdict, Hit):
            assert isinstance(row.verdict, Miss)
            failed[row.subset][row.id] = row.verdict.error_type
    assert failed == {name: subset["failed"] for name, subset in recorded.items()}
    assert result.document.extra["model"] == official_scores(run)["model"]


@needs_recordings
def test_the_one_recorded_inference_error_is_an_error_here_and_right_for_upstream(
    dataset: Dataset, official: Official
) -> None:
    ours = of_tree(run_folder("v0.10.2"), dataset, official)
    theirs = of_tree(run_folder("v0.10.2"), dataset, official, official_errors=True)
    differing = [(a, b) for a, b in zip(ours.verdicts, theirs.verdicts, strict=True) if a != b]
    ((row, credited),) = differing
    assert (row.id, credited.verdict) == ("live_irrelevance_292-72-1", Hit())
    assert ours.document.details.error_types == {"inference_error": 1}


def test_a_run_is_judged_again_to_what_it_said_itself(lean: Finished, dataset: Dataset, official: Official) -> None:
    attempts, request = read_attempts(lean.run_dir), read_request(lean.run_dir)
    result = rescore(
        run_rows(attempts),
        dataset,
        lambda entry, output: score_output(entry, output, official),
        scope=run_scope(request),
        facts=run_facts(request),
        on_error=request.settings.on_error,
    )
    original = lean.result
    assert result.document.metrics == original.metrics
    assert result.document.details == original.details
    assert result.verdicts == export_verdicts(lean.run_dir, dataset)
    changed = {"scope", "source", "versions"}
    same = original.extra.keys() - changed
    assert {"draw", "fingerprint", "mode", "strip_think", "request", "model", "attempts"} <= same
    assert {name: result.document.extra[name] for name in same} == {name: original.extra[name] for name in same}


# The command.


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = main(["rescore", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


type Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def model(dataset: Dataset, tmp_path: Path) -> Path:
    """A model's folder: two whole subsets with right answers, in one of them a wrong one first."""
    folder = tmp_path / "result" / "some_model"
    write_results(folder, [(entry, perfect_output(entry) if entry.row else []) for entry in dataset.rows["multiple"]])
    return write_subsets(folder, dataset, "live_parallel")


def test_a_results_table_and_the_leaderboards_columns_are_printed(command: Command, model: Path) -> None:
    code, out, err = command(model)
    assert (code, err) == (0, "")
    assert re.search(r"^multiple +non_live +199 +200 +0 +99.50$", out, re.MULTILINE)
    assert "model        some_model (bfcl-eval results)" in out
    assert "Non-Live Multiple AST               99.50" in out
    assert "Overall Acc: not computable from single-turn results alone" in out


def test_json_is_one_object_for_one_model_and_a_list_for_several(
    command: Command, model: Path, dataset: Dataset
) -> None:
    single = json.loads(command(model, "--json")[1])
    assert single["details"]["subsets"]["multiple"]["hits"] == 199
    write_subsets(model.parent / "other_model", dataset, "multiple")
    code, out, _ = command(model.parent, "--json")
    several = json.loads(out)
    assert code == 0
    assert [document["extra"]["model"] for document in several] == ["other_model", "some_model"]
    assert several[1] == single
    assert command(model.parent)[1].count("official leaderboard columns") == 2
    assert json.loads(command(model, model, "--json")[1]) == [single, single]


def test_verdicts_are_written_row_by_row_in_the_order_of_the_files(
    command: Command, model: Path, tmp_path: Path, dataset: Dataset
) -> None:
    file = tmp_path / "verdicts.jsonl"
    assert command(model, "--verdicts", file)[0] == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["id"] for row in rows] == [
        entry.id for name in ("live_parallel", "multiple") for entry in dataset.rows[name]
    ]
    wrong = {"verdict": "miss", "error_type": "multiple_function_checker:wrong_count", "reason": None}
    assert [row for row in rows if row["verdict"] != "hit"] == [{"id": "multiple_0", "subset": "multiple", **wrong}]
    assert command(model, "--verdicts", "-")[1] == file.read_text()
    code, out, err = command(model, model, "--verdicts", tmp_path / "none")
    assert (code, out) == (1, "")
    assert "--verdicts is for one model at a time, and 2 were given" in err
    assert not (tmp_path / "none").exists()


def test_broken_lines_are_all_named_and_nothing_is_written(command: Command, model: Path, tmp_path: Path) -> None:
    path = result_path(model, "multiple")
    path.write_bytes(path.read_bytes() + b"{\n" * 30)
    code, out, err = command(model, "--verdicts", tmp_path / "verdicts.jsonl")
    assert (code, out) == (1, "")
    *named, last = err.splitlines()
    assert [line.split(": ")[1] for line in named] == [f"{path}:{number}" for number in range(201, 231)]
    assert "30 faults, nothing was scored" in last
    assert not (tmp_path / "verdicts.jsonl").exists()


def test_with_keep_going_the_good_rows_count_and_the_first_faults_are_named(command: Command, model: Path) -> None:
    path = result_path(model, "multiple")
    path.write_bytes(b"{\n" * 30 + path.read_bytes().split(b"\n", 1)[1])
    code, out, err = command(model, "--keep-going", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["details"]["subsets"]["multiple"] | {"accuracy": 99.5} == {
        "category": "non_live", "hits": 199, "n": 199, "errors": 1, "accuracy": 99.5,
    }  # fmt: skip
    assert document["details"]["error_types"] == {"not_run": 1}
    assert len(err.splitlines()) == 21
    assert err.splitlines()[-1] == (
        "agentcompass-bfcl: 30 faults, the first 20 of them above; only the other rows were read"
    )


def test_a_draw_partial_and_part_of_everything_choose_the_rows(command: Command, model: Path) -> None:
    _, out, err = command(model, "--draw", "mini", "--json")
    assert json.loads(out)["counts"] == {"total": 192, "evaluated": 26, "error": 166}
    assert err == "agentcompass-bfcl: some_model: 190 rows outside the draw were passed over\n"
    assert json.loads(command(model, "--subsets", "multiple", "--json")[1])["counts"]["total"] == 200
    assert json.loads(command(model, "--draw", "all", "--shard", "0/2", "--json")[1])["counts"]["evaluated"] == 108
    result_path(model, "multiple").write_bytes(result_line("multiple_5", []))
    assert json.loads(command(model, "--partial", "--json")[1])["counts"] == {"total": 17, "evaluated": 17, "error": 0}
    code, out, err = command(model, "--partial", "--draw", "mini")
    assert (code, out) == (1, "")
    assert "--partial takes the rows that are there; leave it out with a draw" in err


def test_results_of_other_categories_are_named_and_left_alone(command: Command, model: Path) -> None:
    (model / "multi_turn").mkdir()
    (model / "multi_turn" / "BFCL_v4_multi_turn_base_result.json").write_text("{")
    code, _, err = command(model)
    assert (code, len(err.splitlines())) == (0, 1)
    assert err.endswith("not single-turn, ignored: BFCL_v4_multi_turn_base_result.json\n")


def test_stored_inference_errors_are_errors_unless_upstreams_rule_is_wanted(command: Command, tmp_path: Path) -> None:
    path = result_path(tmp_path / "m", "irrelevance")
    path.parent.mkdir(parents=True)
    path.write_bytes(result_line("irrelevance_0", "Error during inference: 500") + result_line("irrelevance_1", ""))
    details = json.loads(command(path, "--partial", "--json")[1])["details"]
    assert (details["subsets"]["irrelevance"]["hits"], details["error_types"]) == (1, {"inference_error": 1})
    official = json.loads(command(path, "--partial", "--official-errors", "--json")[1])
    assert official["details"]["subsets"]["irrelevance"]["hits"] == 2
    assert official["extra"]["official_errors"] is True


def test_where_no_row_could_be_scored_the_command_fails_and_shows_no_score(command: Command, tmp_path: Path) -> None:
    path = result_path(tmp_path / "m", "irrelevance")
    path.parent.mkdir(parents=True)
    path.write_bytes(result_line("irrelevance_0", "Error during inference: 500"))
    code, out, err = command(path)
    assert (code, err) == (1, "agentcompass-bfcl: m: no row could be scored\n")
    assert "0.00" not in out
    path.write_bytes(b"{")
    assert command(path, "--partial", "--keep-going")[0] == 1


def test_a_run_is_judged_again_by_its_own_settings(command: Command, dataset: Dataset, tmp_path: Path) -> None:
    mini = select(PRESETS["mini"], dataset)
    right = {entry: AttemptRecord(verdict="miss", error_type="x", output=perfect_output(entry)) for entry in mini[3:]}
    cut = AttemptRecord(verdict="hit", output="text", finish_reason="length")
    broken = AttemptRecord(verdict="unscored", reason="checker_raised", output=perfect_output(mini[2]))
    run_dir = write_run(tmp_path / "run", {mini[0]: "transport_http_500", mini[1]: cut, mini[2]: broken, **right})
    code, out, err = command(run_dir, "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["counts"] == {"total": 192, "evaluated": 191, "error": 1}
    assert document["details"]["error_types"] == {"transport_http_500": 1}
    assert document["details"]["truncated"] == 1
    assert document["metrics"]["overall_accuracy"] == 99.48
    assert (document["extra"]["draw"], document["extra"]["request"]) == ("mini", {"temperature": 0})
    assert command(run_dir, "--draw", "mini", "--json")[1] == out


def right_arguments(entry: Entry) -> tuple[str, dict[str, Any]]:
    ((name, arguments),) = [pair for call in perfect_output(entry) for pair in call.items()]
    return name, json.loads(arguments)


def test_prompt_mode_is_judged_as_text_and_reasoning_is_cut_off_on_request(
    command: Command, dataset: Dataset, tmp_path: Path
) -> None:
    entry = dataset.entry("multiple_0")
    _, arguments = right_arguments(entry)
    name = next(iter(entry.reference_answers()[0]))  # with its dot, which tools cannot have
    text = f"[{name}({', '.join(f'{parameter}={value!r}' for parameter, value in arguments.items())})]"
    plain = write_results(tmp_path / "plain", [(entry, text), (dataset.entry("multiple_1"), [])])
    thinking = write_results(tmp_path / "thinking", [(entry, f"<think>[nothing()]</think>\n{text}")])
    hits = [
        json.loads(command(place, "--partial", "--json", *options)[1])["details"]["subsets"]["multiple"]["hits"]
        for place in (plain, thinking)
        for options in ((), ("--mode", "prompt"), ("--mode", "prompt", "--strip-think"))
    ]
    assert hits == [0, 1, 1, 0, 0, 1]
    code, _, err = command(plain, "--strip-think")
    assert code == 1
    assert "strip_think is True; allowed with mode prompt only" in err
    run_dir = write_run(
        tmp_path / "run",
        {entry: AttemptRecord(verdict="miss", error_type="x", output=text)},
        params={"draw": "mini", "mode": "prompt"},
    )
    document = json.loads(command(run_dir, "--partial", "--json")[1])
    assert (document["extra"]["mode"], document["details"]["subsets"]["multiple"]["hits"]) == ("prompt", 1)
    code, _, err = command(run_dir, "--mode", "fc")
    assert code == 1
    assert "its mode is prompt; leave out --mode fc" in err


@pytest.mark.slow
def test_an_output_that_hangs_the_official_checker_is_one_error_and_the_others_count(
    command: Command, dataset: Dataset, tmp_path: Path
) -> None:
    # Its parameter is an array, which upstream reads with a regular expression that backtracks.
    entry, other = dataset.entry("simple_javascript_24"), dataset.entry("simple_javascript_0")
    name, arguments = right_arguments(entry)
    hanging = [{name: json.dumps(dict.fromkeys(arguments, "[[" + "1],[" * 40))}]
    folder = write_results(tmp_path / "m", [(entry, hanging), (other, perfect_output(other))])
    code, out, _ = command(folder, "--partial", "--json")
    assert code == 0
    assert json.loads(out)["counts"] == {"total": 2, "evaluated": 1, "error": 1}
    assert json.loads(out)["details"]["error_types"] == {"time_limit": 1}


def test_a_run_of_several_attempts_and_another_benchmarks_run_are_refused(command: Command, tmp_path: Path) -> None:
    code, _, err = command(write_run(tmp_path / "run", {}, k=3))
    assert code == 1
    assert "the run made 3 attempts per sample; this works for runs of one attempt only" in err
    code, _, err = command(write_run(tmp_path / "other", {}, benchmark={"id": "aime", "params": {}}))
    assert code == 1
    assert "a run of benchmark 'aime', not of bfcl" in err


def test_rescoring_imports_neither_the_host_nor_a_client_library(model: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from agentcompass_bfcl.cli import main; code = main(['rescore', sys.argv[1], '--json']);"
        "sys.exit(code or sorted({'agentcompass', 'openai', 'litellm'} & set(sys.modules)) or 0)"
    )
    assert json.loads(run_python(code, str(model), cwd=tmp_path))["counts"]["total"] == 216


def test_the_same_files_give_the_same_bytes(command: Command, model: Path, dataset: Dataset, tmp_path: Path) -> None:
    first = command(model, "--json")[1]
    copy = write_results(
        tmp_path / "copy" / "some_model",
        [(entry, perfect_output(entry) if entry.id != "multiple_0" else [])
         for name in ("multiple", "live_parallel") for entry in reversed(dataset.rows[name])],
    )  # fmt: skip
    assert command(copy, "--json")[1] == first


def test_the_report_of_stored_outputs_shows_misses_what_is_missing_tokens_and_the_comparison(
    command: Command, dataset: Dataset, tmp_path: Path
) -> None:
    wrong = [{"wrong_function": "{}"}]
    rows = dataset.rows["live_parallel"]
    model = write_results(tmp_path / "result" / "one", [(entry, perfect_output(entry)) for entry in rows[:-1]])
    other = write_results(tmp_path / "result" / "two", [(entry, wrong) for entry in rows])
    path = result_path(other, "live_parallel")
    lines = [{**json.loads(line), "input_token_count": 11, "latency": 0.25} for line in path.read_text().splitlines()]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    code, out, _ = command(str(model), str(other), "--report", str(tmp_path / "report.html"))
    assert code == 0
    assert "live_parallel" in out
    page = (tmp_path / "report.html").read_text()
    listed = re.findall(r'data-kind="([^"]*)" data-run="(\d)"', page)
    assert sorted(listed) == [("not_run", "0"), *[("parallel_function_checker_no_order:wrong_count", "1")] * len(rows)]
    assert "<mark>wrong_function</mark>" in page
    assert f"0 rows gained, {len(rows) - 1} lost of {len(rows)}" in page
    assert f'<td class="n">{11 * len(rows)}</td>' in page
    assert '<th scope="row">latency, ms</th><td class="n">250</td>' in page


@pytest.mark.parametrize(
    "options", [("--report", "-", "--json"), ("--verdicts", "-", "--report", "-"), ("--verdicts", "-", "--json")]
)
def test_only_one_thing_is_written_to_standard_output(options: tuple[str, ...], command: Command, model: Path) -> None:
    code, out, err = command(str(model), *options)
    assert (code, out) == (1, "")
    assert "only one of --verdicts -, --report - and --json" in err


def test_a_reply_the_checker_broke_on_keeps_its_text_and_a_failed_request_has_none(dataset: Dataset) -> None:
    entry = dataset.rows["multiple"][0]
    row = StoredRow(entry.id, "text", completion_tokens=3)
    broken = judged_attempt(row, VerdictRow(entry.id, entry.subset, Unscored("checker_raised", "why")))
    assert broken.record is not None
    assert (broken.verdict, broken.kind, broken.problem) == ("unscored", "checker_raised", "why")
    assert (broken.record.output, broken.record.completion_tokens) == ("text", 3)
    failed = StoredRow(entry.id, None, Unscored("transport_timeout", "late"))
    attempt = judged_attempt(failed, VerdictRow(entry.id, entry.subset, Unscored("transport_timeout", "late")))
    assert (attempt.record, attempt.kind) == (None, "transport_timeout")


def test_a_report_on_standard_output_stands_alone(command: Command, model: Path) -> None:
    code, out, _ = command(str(model), "--report", "-")
    assert code == 0
    assert out.startswith("<!DOCTYPE html>")
    assert out.endswith("</html>\n")


@pytest.mark.parametrize("amount", ["7", True, -1, [1, 2], None, 1e300, 10**400])
def test_tokens_and_latencies_that_make_no_sense_are_unknown_and_spoil_no_row(
    amount: Any, dataset: Dataset, tmp_path: Path
) -> None:
    entry = dataset.rows["live_parallel"][0]
    path = result_path(tmp_path / "model", entry.subset)
    path.parent.mkdir(parents=True)
    path.write_bytes(result_line(entry.id, [], input_token_count=amount, output_token_count=3, latency=amount))
    (results,) = find_results(path)
    (row,) = read_rows(results, dataset)
    assert row == StoredRow(entry.id, [], completion_tokens=3)


def test_verdict_lines_are_the_rows_in_json(dataset: Dataset) -> None:
    rows = list(zip(dataset.rows["multiple"][2::-1], ["broken", "miss", "hit"], strict=True))
    lines = verdict_lines(judged(rows, dataset, RowsPresent()).verdicts).splitlines()
    keys = ("id", "subset", "verdict", "error_type", "reason")
    assert [tuple(json.loads(line).items()) for line in lines] == [
        tuple(zip(keys, values, strict=True))
        for values in [
            ("multiple_2", "multiple", "unscored", None, "checker_raised"),
            ("multiple_1", "multiple", "miss", "value_error:string", None),
            ("multiple_0", "multiple", "hit", None, None),
        ]
    ]

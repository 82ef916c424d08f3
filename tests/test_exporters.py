"""What dashboards and CI systems take in, read back by the parsers they use."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from junitparser import JUnitXml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import DrawSpec
from agentcompass_bfcl.report.csv_tables import samples_csv, subsets_csv
from agentcompass_bfcl.report.escaping import markdown_code
from agentcompass_bfcl.report.junit import junit_xml
from agentcompass_bfcl.report.markdown import render_markdown
from agentcompass_bfcl.report.openmetrics import openmetrics_text
from agentcompass_bfcl.run_record import RunRecord, read_record
from agentcompass_bfcl.sample_rows import SampleRow, sample_rows
from agentcompass_bfcl.tally import Outcome
from host_runs import Finished
from records import ERROR, HIT, edited, record, two_in_three, written

HOSTILE = 'x"\n\\|<b>&]]>\x00\x1b[31m=1+1\u202e'


def play(entry: Entry) -> tuple[Outcome, ...]:
    return (ERROR,) if entry.id == "multiple_3" else two_in_three(entry)


@pytest.fixture
def found(dataset: Dataset) -> RunRecord:
    return record(dataset, play, model=HOSTILE)


def test_every_sample_of_a_run_is_a_line_with_what_is_known_of_it(lean: Finished, dataset: Dataset) -> None:
    rows = sample_rows(read_record(lean.run_dir), dataset)
    read = list(csv.DictReader(io.StringIO(samples_csv(rows))))
    assert len(read) == len(rows) == lean.result.counts.total
    for line, row in zip(read, rows, strict=True):
        assert (line["id"], line["verdict"], line["kind"]) == (row.id, row.verdict, row.kind or "")
        assert line["latency_ms"] == ("" if row.latency_ms is None else str(row.latency_ms))
    verdicts = [row.verdict for row in rows]
    assert verdicts.count("unscored") == lean.result.counts.error
    assert all(row.kind for row in rows if row.verdict != "hit")


def test_a_result_in_json_gives_the_verdicts_it_holds(found: RunRecord, dataset: Dataset) -> None:
    rows = sample_rows(found, dataset)
    assert [row.verdict for row in rows if row.id == "multiple_3"] == ["unscored"]
    assert {row.kind for row in rows} == {None}
    twice = sample_rows(record(dataset, lambda entry: (HIT, ERROR), spec=DrawSpec(limit=2), k=2), dataset)
    assert [(row.attempt, row.verdict) for row in twice] == [(1, "hit"), (2, "unscored")] * 2


def test_every_subset_is_a_line_with_its_numbers(found: RunRecord) -> None:
    read = {line["subset"]: line for line in csv.DictReader(io.StringIO(subsets_csv(found.document)))}
    for name, subset in found.document.details.subsets.items():
        line = read[name]
        assert (int(line["hits"]), int(line["n"]), int(line["errors"])) == (subset.hits, subset.n, subset.errors)
        assert float(line["accuracy"]) == subset.accuracy
    assert (read["live_parallel"]["standard_error"], read["live_parallel"]["low"]) == ("", "20.6549")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula_for_a_spreadsheet(start: str) -> None:
    row = SampleRow("multiple_0", "multiple", 1, "miss", f"{start}1+1", f"{start}cmd|' /C calc'!A0\n\ud800")
    ((_, _, _, _, kind, detail, *_),) = list(csv.reader(io.StringIO(samples_csv([row]), newline="")))[1:]
    assert kind == f"'{start}1+1"
    assert detail.startswith(f"'{start}cmd")


def test_ratios_have_the_digits_of_the_percentages(dataset: Dataset) -> None:
    odd = edited(record(dataset), lambda payload: payload["metrics"].update(overall_accuracy=89.58))
    assert 'score="overall",shard="0/1"} 0.8958\n' in openmetrics_text(odd.document)


def test_openmetrics_is_what_a_prometheus_parser_accepts(found: RunRecord) -> None:
    families = {family.name: family for family in text_string_to_metric_families(openmetrics_text(found.document))}
    scores = {sample.labels["score"]: sample for sample in families["bfcl_score_ratio"].samples}
    assert scores["overall"].value == pytest.approx(found.document.metrics["overall_accuracy"] / 100)
    assert scores["overall"].labels["model"] == HOSTILE
    assert (scores["live"].labels["draw"], scores["live"].labels["shard"]) == ("mini", "0/1")
    counts = {
        (sample.labels["subset"], sample.labels["outcome"]): sample.value for sample in families["bfcl_samples"].samples
    }
    for name, subset in found.document.details.subsets.items():
        assert counts[name, "hit"] == subset.hits
        assert counts[name, "miss"] == subset.n - subset.hits
        assert counts[name, "error"] == subset.errors
    assert len(families["bfcl_subset_accuracy_ratio"].samples) == len(found.document.details.subsets)


def test_what_is_undefined_is_no_gauge(dataset: Dataset) -> None:
    one = record(dataset, spec=DrawSpec(subsets=("multiple",), limit=1)).document
    families = {family.name: family for family in text_string_to_metric_families(openmetrics_text(one))}
    assert not families["bfcl_score_standard_error_ratio"].samples
    nothing = record(dataset, lambda entry: (ERROR,)).document
    families = {family.name: family for family in text_string_to_metric_families(openmetrics_text(nothing))}
    assert not families["bfcl_score_ratio"].samples


def test_junit_has_a_suite_a_subset_and_says_misses_and_errors(found: RunRecord, dataset: Dataset) -> None:
    xml = JUnitXml.fromstring(junit_xml(sample_rows(found, dataset)).encode())
    suites = {suite.name: suite for suite in xml}
    for name, subset in found.document.details.subsets.items():
        suite = suites[name]
        assert (suite.tests, suite.failures, suite.errors) == (
            subset.n + subset.errors,
            subset.n - subset.hits,
            subset.errors,
        )
        assert len(list(suite)) == suite.tests


def test_junit_holds_any_text_of_a_model() -> None:
    row = SampleRow("multiple_0", "multiple", 1, "miss", HOSTILE, HOSTILE * 3, latency_ms=1234.5)
    (suite,) = JUnitXml.fromstring(junit_xml([row]).encode())
    (case,) = suite
    assert case.time == 1.234 or case.time == 1.235
    assert "\x00" not in case.result[0].message
    assert "]]>" in case.result[0].message


def test_markdown_holds_the_numbers_and_no_markup_of_others(found: RunRecord) -> None:
    text = render_markdown(found.document)
    assert "<b>" not in text
    assert f"| overall | {found.document.metrics['overall_accuracy']:.2f} |" in text
    assert all(line.count("|") == 6 for line in text.splitlines() if line.startswith("| live |"))
    assert "| live\\_parallel | 1 | 1 | 0 | 100.00 |" in text


@pytest.mark.parametrize("form", ["json", "csv", "csv-subsets", "junit", "markdown", "openmetrics"])
def test_the_command_writes_each_form_of_a_run_and_of_a_result(
    form: str, lean: Finished, found: RunRecord, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts: list[Any] = []
    for source in (lean.run_dir, written(found, tmp_path / "result.json")):
        out = tmp_path / "out"
        assert main(["export", str(source), "--to", form, "--out", str(out)]) == 0
        assert main(["export", str(source), "--to", form, "--out", "-"]) == 0
        texts.append(out.read_bytes())
        assert capsys.readouterr().out.encode() == texts[-1]
    assert texts[0] != texts[1]


# Schemas of what is written for machines.

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"


@pytest.mark.parametrize("name", ["result", "comparison", "decision"])
def test_the_published_schema_is_the_one_of_the_code(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    assert capsys.readouterr().out == (SCHEMAS / f"{name}.json").read_text()


def test_what_the_commands_write_is_what_the_schemas_say(
    lean: Finished, found: RunRecord, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, result = str(lean.run_dir), str(written(found, tmp_path / "result.json"))
    for name, command in (
        ("result", ["export", run, "--to", "json", "--out", "-"]),
        ("result", ["rescore", run, "--json"]),
        ("comparison", ["compare", run, run, "--json"]),
        ("decision", ["gate", result, "--not-worse-than", result, "--json"]),
    ):
        assert main(command) == 0
        schema = json.loads((SCHEMAS / f"{name}.json").read_text())
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("text", "code"),
    [("a_b|c", "`a_b|c`"), ("a`b", "``a`b``"), ("`a``", "``` `a`` ```"), ("a\n\x1b[31mb", "`a [31mb`")],
)
def test_a_span_of_code_shows_a_text_as_it_is_and_nothing_ends_it_early(text: str, code: str) -> None:
    assert markdown_code(text) == code


@pytest.mark.parametrize("form", ["verdicts", "bfcl-eval"])
def test_forms_made_of_replies_want_the_run_directory(
    form: str, found: RunRecord, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(found, tmp_path / "result.json")
    assert main(["export", str(file), "--to", form, "--out", str(tmp_path / "out")]) == 1
    assert f"--to {form} needs the run directory, which holds the replies" in capsys.readouterr().err

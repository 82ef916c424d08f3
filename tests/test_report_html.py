"""The report: what it shows, that it is one file, and that no text of a model becomes markup."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import Comparison, compare
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.drawn_rows import drawn_attempts
from agentcompass_bfcl.merge import merge
from agentcompass_bfcl.report.html import Reported, render_html
from agentcompass_bfcl.run_record import RunRecord, read_record
from agentcompass_bfcl.shard import Shard
from fresh_python import run_python
from host_runs import Finished
from records import MISS, record, two_in_three, written
from result_trees import write_run

NONE: Mapping[int, Comparison] = MappingProxyType({})


def page_of(records: list[RunRecord], dataset: Dataset, comparisons: Mapping[int, Comparison] = NONE) -> str:
    runs = [Reported(found, drawn_attempts(found.source, dataset) if found.is_directory else ()) for found in records]
    return render_html(runs, dataset, comparisons)


HOSTILE = "<script>alert(1)</script></style>{{ 7 * 7 }}{% raw %}\u202e\x00\ud800\"'><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """Collects what matters: elements with their attributes, and the text of details."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def hostile_run(folder: Path, dataset: Dataset) -> RunRecord:
    rows: dict[Any, AttemptRecord | str] = {
        entry: AttemptRecord(verdict="miss", error_type=f"x:{HOSTILE}", detail=HOSTILE, output=[{HOSTILE: HOSTILE}])
        for entry in dataset.rows["multiple"][:2]
    }
    rows[dataset.rows["multiple"][2]] = AttemptRecord(verdict="miss", error_type="x", output=HOSTILE * 20_000)
    rows[dataset.rows["multiple"][3]] = "transport_timeout"
    model = HOSTILE.replace("\ud800", "")  # half a letter, which neither a request nor a result may hold
    write_run(folder, rows, model=model)
    document = record(dataset, model=model).document
    (folder / "metrics.json").write_text(
        json.dumps({"extra": {**document.extra, **document.model_dump(mode="json", exclude={"extra"})}})
    )
    return read_record(folder)


def test_no_text_of_a_model_becomes_markup_or_a_template(dataset: Dataset, tmp_path: Path) -> None:
    page = Page(page_of([hostile_run(tmp_path, dataset)], dataset))
    assert len(page.of("script")) == 1
    assert page.of("img") == []
    assert len(page.of("style")) == 2  # the page's and the chart's
    assert not [attributes for _, attributes in page.elements if any(name.startswith("on") for name in attributes)]
    text = "".join(page.text)
    assert "{{ 7 * 7 }}" in text
    assert "49" not in re.findall(r"alert\(1\)</script></style>(\d+)", text)


def test_gigantic_texts_are_cut_and_say_so(dataset: Dataset, tmp_path: Path) -> None:
    text = page_of([hostile_run(tmp_path, dataset)], dataset)
    assert len(text) < 500_000
    assert f"({len(HOSTILE) * 20_000} characters)" in text


def test_the_page_needs_no_network_and_allows_only_its_own_script(lean: Finished, dataset: Dataset) -> None:
    text = page_of([read_record(lean.run_dir)], dataset)
    page = Page(text)
    (policy,) = [found["content"] for found in page.of("meta") if found.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='$", policy)
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "action"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#"))
    assert "@import" not in text
    assert "url(" not in text


def test_every_miss_and_error_of_a_run_is_listed_with_what_was_expected_and_given(
    lean: Finished, dataset: Dataset
) -> None:
    page = Page(page_of([read_record(lean.run_dir)], dataset))
    listed = page.of("details")
    tallies = lean.result.tallies().values()
    assert len(listed) == sum(tally.n - tally.hits + tally.errors for tally in tallies)
    assert {found["data-subset"] for found in listed} <= set(lean.result.details.subsets)
    text = "".join(page.text)
    assert "median" in text
    assert lean.result.extra["fingerprint"] in text


def test_the_weights_on_the_page_add_up_to_normalized(dataset: Dataset) -> None:
    found = record(dataset)
    text = page_of([found], dataset)
    rows = re.findall(r'<td class="n">(\d+/\d+|\d+/1)</td><td class="n">[\d.]+</td><td class="n">([\d/]+)</td>', text)
    total = 0.0
    for share, weight in rows:
        a, b = (int(part) for part in share.split("/"))
        c, d = (int(part) for part in weight.split("/"))
        total += a / b * c / d
    assert len(rows) == 12
    assert round(total * 100, 2) == found.document.metrics["normalized_single_turn_score"]


def test_several_runs_are_laid_over_each_other_with_what_flipped(dataset: Dataset) -> None:
    first = record(dataset, source="a")
    second = record(dataset, lambda entry: (MISS,) if entry.id == "multiple_0" else two_in_three(entry), source="b")
    comparison = compare(first, second, clusters(dataset.by_id.values()))
    text = page_of([first, second], dataset, {1: comparison})
    assert "some-model (1)" in text
    assert "some-model (2)" in text
    assert "0 rows gained, 1 lost of 192" in text
    assert "<li>multiple_0</li>" in text


def test_a_merged_run_says_what_it_was_merged_from(dataset: Dataset) -> None:
    merged = merge([record(dataset, shard=Shard(index, 3)) for index in range(3)], dataset)
    document = RunRecord(Path("merged"), merged.document, None, is_directory=False)
    assert "merged from 3" in Page(page_of([document], dataset)).text


def test_the_same_runs_give_the_same_bytes(lean: Finished, dataset: Dataset) -> None:
    records = [read_record(lean.run_dir), record(dataset)]
    assert page_of(records, dataset) == page_of(records, dataset)


@pytest.mark.parametrize(("form", "begins"), [("html", "<!DOCTYPE html>"), ("md", "### BFCL"), ("text", "subset ")])
def test_the_command_writes_every_form(
    form: str, begins: str, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = written(record(dataset), tmp_path / "one.json")
    other = written(record(dataset, mode="prompt"), tmp_path / "other.json")
    assert main(["report", str(one), str(other), "-o", "-", "--format", form]) == 0
    out = capsys.readouterr().out
    assert out.startswith(begins)
    if form == "html":
        assert "Run 2 cannot be compared with the first: not the same question: mode" in out
    assert main(["report", str(tmp_path / "none.json"), "-o", "-"]) == 1


def test_a_report_is_made_without_importing_agentcompass(dataset: Dataset, tmp_path: Path) -> None:
    file = written(record(dataset), tmp_path / "result.json")
    code = """
import sys
from agentcompass_bfcl.cli import main
assert main(["report", sys.argv[1], "-o", sys.argv[2]]) == 0
print("agentcompass" in sys.modules)
"""
    assert run_python(code, str(file), str(tmp_path / "r.html"), cwd=tmp_path).strip() == "False"


def test_a_run_that_cannot_be_compared_takes_no_other_comparison_away(dataset: Dataset, tmp_path: Path) -> None:
    runs = [record(dataset), record(dataset, mode="prompt"), record(dataset, lambda entry: (MISS,))]
    files = [written(run, tmp_path / f"{number}.json") for number, run in enumerate(runs)]
    assert main(["report", *map(str, files), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "Run 2 cannot be compared with the first" in page
    assert "<h2>Changes from some-model (1) to some-model (3)</h2>" in page

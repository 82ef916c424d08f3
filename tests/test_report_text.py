from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import DrawSpec
from agentcompass_bfcl.report.text import render_text
from agentcompass_bfcl.result import ResultDocument, build_document, read_document
from agentcompass_bfcl.tally import Outcome, Tally
from records import ERROR, HIT, MISS, edited, record, two_in_three

GOLDEN = Path(__file__).parent / "golden"

TALLIES = {
    "simple_python": Tally(55, 62),
    "simple_java": Tally(9, 15, 1),
    "multiple": Tally(31, 31),
    "live_simple": Tally(0, 6),
    "irrelevance": Tally(5, 5, 1),
    "live_relevance": Tally(3, 4),
}
IDENTITY = {
    "draw": "golden",
    "fingerprint": "draw-sha256:31225a;n=125;category_sample_pct=live:10;subset_floor=25",
    "shard": "1/4",
    "mode": "fc",
    "model": "some-model",
    "base_url": "http://127.0.0.1:8000/v1",
    "on_error": "fail",
}


def result(tallies: dict[str, Tally] = TALLIES, *, truncated: int = 3, **changes: Any) -> ResultDocument:
    identity = {**IDENTITY, **changes}
    return build_document(
        tallies,
        on_error=OnError(identity["on_error"]),
        identity=identity,
        miss_types={"value_error:string": 4, "type_error:simple": 12, "ast_decoder:decoder_failed": 4},
        error_types={"not_run": 1, "http_500": 1},
        truncated=truncated,
    )


def test_a_report_is_the_recorded_text_to_the_byte() -> None:
    recorded = (GOLDEN / "report.txt").read_text(encoding="utf-8")
    assert render_text(result(), Path("results/some-model_bfcl/run-1")) == recorded


def test_the_same_result_gives_the_same_bytes_however_it_was_come_by() -> None:
    first = render_text(result())
    assert render_text(result(dict(reversed(TALLIES.items())))) == first
    read = read_document(result().model_dump(mode="json"), "result.json")
    assert render_text(read) == render_text(read) == first


@pytest.mark.parametrize("policy", ["fail", "exclude"])
def test_a_run_with_nothing_scored_shows_a_dash_for_every_score_and_no_zero(policy: str) -> None:
    report = render_text(result({"multiple": Tally(errors=4), "irrelevance": Tally(errors=2)}, on_error=policy))
    assert re.search(r"^normalized .*  -$", report, re.MULTILINE)
    assert re.search(r"^overall .*  -$", report, re.MULTILINE)
    assert re.search(r"^multiple +non_live +0 +0 +4 +-$", report, re.MULTILINE)
    assert "0.00" not in report
    assert "samples      6 total, 0 evaluated, 6 error\n" in report


def test_a_subset_that_is_all_wrong_shows_its_zero() -> None:
    assert re.search(r"^live_simple +live +0 +6 +0 +0\.00$", render_text(result()), re.MULTILINE)


@pytest.mark.parametrize(("policy", "said"), [("fail", "counted as wrong"), ("exclude", "left out of the scores")])
def test_errors_are_named_with_what_they_do_to_the_score(policy: str, said: str) -> None:
    lines = [line.strip() for line in render_text(result(on_error=policy)).splitlines()]
    at = lines.index(f"errors       {said}:")
    assert lines[at + 1 : at + 3] == ["1  http_500", "1  not_run"]


def test_a_whole_run_without_errors_says_nothing_of_shards_errors_or_truncation() -> None:
    report = render_text(result({"multiple": Tally(1, 2)}, truncated=0, shard="0/1"))
    assert "golden, mode fc" in report
    assert "shard" not in report
    assert "truncated" not in report
    assert not re.search(r"^errors ", report, re.MULTILINE)
    assert not re.search(r"^run ", report, re.MULTILINE)


def test_the_default_endpoint_is_called_so() -> None:
    assert "some-model at the default endpoint" in render_text(result(base_url=""))


def test_misses_stand_in_order_of_their_number_and_then_of_their_name() -> None:
    payload = result().model_dump(mode="json")
    payload["details"]["miss_types"] = dict(reversed(payload["details"]["miss_types"].items()))
    report = render_text(read_document(payload, "result.json"))
    lines = [line.strip() for line in report.splitlines()]
    at = lines.index("misses       by the official checker's reason:")
    assert lines[at + 1 : at + 4] == ["12  type_error:simple", "4  ast_decoder:decoder_failed", "4  value_error:string"]


def test_a_report_with_error_bars_is_the_recorded_text_to_the_byte(dataset: Dataset) -> None:
    def play(entry: Entry) -> tuple[Outcome, ...]:
        return (ERROR,) if entry.id == "multiple_3" else two_in_three(entry)

    recorded = (GOLDEN / "report_with_bars.txt").read_text(encoding="utf-8")
    assert render_text(record(dataset, play).document) == recorded


def test_what_is_undefined_is_a_dash(dataset: Dataset) -> None:
    one = record(dataset, spec=DrawSpec(subsets=("multiple", "irrelevance"), limit=2)).document
    line = next(line for line in render_text(one).splitlines() if line.startswith("normalized"))
    assert line.split()[-4:] == ["100.00", "-", "-", "-"]


def test_attempts_shards_and_strictly_wrong_abstentions_have_their_lines(dataset: Dataset) -> None:
    twice = record(dataset, lambda entry: (HIT, MISS) if entry.row else (HIT, HIT), k=2)
    merged = edited(twice, lambda payload: payload["extra"].update(shards=[{}, {}], base_url=["http://a", "http://b"]))
    told = edited(merged, lambda payload: payload["details"].update(malformed_abstentions=2)).document
    text = render_text(told)
    assert "attempts     avg@2 53.12, pass@2 100.00; 180 rows came out both ways" in text
    assert "shards       merged from 2" in text
    assert "some-model at http://a, http://b" in text
    assert "strictly     2 right abstentions hold calls that cannot be decoded; the official rule credits that" in text

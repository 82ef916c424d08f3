"""The fault campaign in short: its rules, and its whole table of faults in one run."""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, select
from agentcompass_bfcl.errors import EndpointError
from agentcompass_bfcl.host import HostRun, run_in_host
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.run_dir import read_result
from agentcompass_bfcl.settings import parse_settings
from agentcompass_bfcl.tally import Outcome
from host_runs import MARKER_KEY, quick_run

sys.path.append(str(Path(__file__).parents[1]))  # the campaign is a script of the project's folder, and not installed

from benchmarks.fault_checks import complaints, leaks
from benchmarks.fault_endpoint import Outage, Reaction, fault_endpoint
from benchmarks.fault_kinds import BREAKDOWNS, FAULTS, Breakdown, Fault, wants_no_call
from benchmarks.fault_page import BEGIN, END, Ran, write_section

LARGE = [fault for fault in FAULTS if fault.name in {"ten_mb", "ten_mb_text", "endless", "endless_500", "gigabyte"}]
SMALL = [fault for fault in FAULTS if fault not in LARGE]
# The host writes a large reply several times over, and meanwhile others pass the limit that ends the stalls here.
LIMITS = {"max_retries": 1, "request_timeout_seconds": 3.0}
STRIKING = Ran("a | b", "the words", 0, 3, (7, 2, 1), 4.4, ())


def drawn(dataset: Dataset, **params: object) -> tuple[Entry, ...]:
    return select(parse_settings(params).spec, dataset)


@dataclass(frozen=True)
class Struck:
    """A run in which each of some faults struck two rows, and what the checks say of it."""

    entries: tuple[Entry, ...]
    struck: Mapping[str, Fault]
    document: ResultDocument
    broken: list[str]
    leaking: list[str]


def struck_run(faults: Sequence[Fault], dataset: Dataset, results: Path, **changes: object) -> Struck:
    """Let each fault strike one row that wants calls and one that wants none; eight rows are left."""
    params = {"draw": "full", "subsets": ["irrelevance", "parallel"], "limit": 2 * len(faults) + 8}
    entries = drawn(dataset, **params)
    calling = [entry.id for entry in entries if not wants_no_call(entry)]
    abstaining = [entry.id for entry in entries if wants_no_call(entry)]
    struck = {row: fault for rows in (calling, abstaining) for row, fault in zip(rows, faults, strict=False)}
    assert len(struck) == 2 * len(faults) == len(entries) - 8

    def plan(entry: Entry) -> Reaction | None:
        return struck[entry.id].reaction if entry.id in struck else None

    with fault_endpoint(dataset, plan, key=MARKER_KEY) as endpoint:
        run = keyed_run(endpoint.base_url, results, benchmark_params=params, **changes)
        document = read_result(run_in_host(run))
        broken = complaints(document, entries, struck, endpoint.requests)
    return Struck(entries, struck, document, broken, leaks(MARKER_KEY, results, ()))


def keyed_run(base_url: str, results: Path, **changes: object) -> HostRun:
    return quick_run(base_url, results, **{"api_key": MARKER_KEY, **changes})


@pytest.fixture(scope="module")
def small_faults(agentcompass: None, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Struck:
    return struck_run(SMALL, dataset, tmp_path_factory.mktemp("small"), harness_params=LIMITS, concurrency=16)


def test_every_row_counts_as_the_rule_of_its_fault_says_and_every_other_row_is_right(small_faults: Struck) -> None:
    assert small_faults.broken == []
    assert small_faults.document.counts.error == 2 * sum(bool(fault.error) for fault in SMALL)


def test_the_key_is_in_no_file_though_servers_repeat_it(small_faults: Struck) -> None:
    assert small_faults.leaking == []


def test_replies_of_ten_megabytes_count_as_their_rule_says(
    agentcompass: None, dataset: Dataset, tmp_path: Path
) -> None:
    large = struck_run(LARGE, dataset, tmp_path, concurrency=4)
    assert large.broken == large.leaking == []


def test_the_checks_notice_a_row_that_counts_as_something_else(dataset: Dataset, small_faults: Struck) -> None:
    document, entries, struck = small_faults.document, small_faults.entries, small_faults.struck
    asked = {entry.id: 1 for entry in entries}
    assert complaints(document, entries, struck, asked) == []
    for sample_id, fault in struck.items():
        entry = dataset.entry(sample_id)
        for other in set(Outcome) - {fault.outcome(entry)}:
            wrong = {**struck, sample_id: replace(fault, calls=other, abstains=other)}
            found = complaints(document, entries, wrong, asked)
            assert any(sample_id in text and fault.name in text for text in found), (sample_id, other)
    unstruck = next(entry for entry in entries if entry.id not in struck)
    never = complaints(document, entries, struck, {**asked, unstruck.id: 0})
    assert never == [f"{unstruck.id} was never asked for"]
    assert complaints(document, entries[1:], struck, asked)


@pytest.mark.parametrize(
    "breakdown", [case for case in BREAKDOWNS if case.outage is None], ids=lambda breakdown: breakdown.name
)
def test_an_endpoint_that_serves_nobody_ends_the_run_with_a_reason_and_no_result(
    breakdown: Breakdown, agentcompass: None, dataset: Dataset, tmp_path: Path
) -> None:
    assert breakdown.says
    with fault_endpoint(dataset, lambda _: breakdown.reaction, key=MARKER_KEY) as endpoint:
        port = endpoint.port if breakdown.is_up else free_port()
        changes = {"api_key": MARKER_KEY if breakdown.has_key else "", "harness_params": {"max_retries": 0}}
        run = keyed_run(f"http://{breakdown.host}:{port}/v1", tmp_path, **changes)
        with pytest.raises(EndpointError) as caught:
            run_in_host(run)
    assert breakdown.says in str(caught.value)
    assert "--reuse" in str(caught.value)
    assert not list(tmp_path.rglob("metrics.json"))
    assert leaks(MARKER_KEY, tmp_path, (str(caught.value),)) == []


def test_a_short_restart_costs_no_row(agentcompass: None, dataset: Dataset, tmp_path: Path) -> None:
    params = {"draw": "mini", "limit": 24}
    entries = drawn(dataset, **params)
    with fault_endpoint(dataset, lambda _: None, outage=Outage(12, 0.5)) as endpoint:
        run = keyed_run(endpoint.base_url, tmp_path, benchmark_params=params, harness_params={"max_retries": 3})
        document = read_result(run_in_host(run))
        assert complaints(document, entries, {}, endpoint.requests) == []
        assert endpoint.requests.total() > len(entries)


def test_a_hit_is_never_an_error_and_an_error_has_a_code() -> None:
    assert len({fault.name for fault in FAULTS} | {breakdown.name for breakdown in BREAKDOWNS}) == len(
        FAULTS + BREAKDOWNS
    )
    for fault in FAULTS:
        assert bool(fault.error) == (Outcome.ERROR in (fault.calls, fault.abstains)), fault.name
        assert (fault.calls is Outcome.ERROR) == (fault.abstains is Outcome.ERROR), fault.name


@pytest.mark.parametrize("draw", ["mini", "golden"])
def test_each_fault_strikes_its_share_of_both_kinds_of_rows_the_same_in_any_order(draw: str, dataset: Dataset) -> None:
    entries = select(PRESETS[draw], dataset)
    abstaining = sum(wants_no_call(entry) for entry in entries)
    for fault in FAULTS:
        struck = fault.struck(entries)
        assert struck == fault.struck(entries[::-1])
        calls = [sample_id for sample_id in struck if not wants_no_call(dataset.entry(sample_id))]
        assert len(calls) == math.ceil((len(entries) - abstaining) / fault.every), fault.name
        assert len(struck) - len(calls) == math.ceil(abstaining / fault.every), fault.name


def test_a_leak_is_found_in_files_of_any_kind_and_in_output(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file.bin").write_bytes(b"\x00\xff" + MARKER_KEY.encode() + b"\xff")
    (tmp_path / "clean.txt").write_text("nothing here")
    assert leaks(MARKER_KEY, tmp_path, ("clean", f"key={MARKER_KEY}")) == [
        "the API key is in deep/file.bin",
        "the API key was printed",
    ]


def test_only_what_is_between_the_markers_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n{BEGIN}\nold table\n{END}\n## After\n")
    write_section(page, [STRIKING], "mini", ["multiple_0"] * 192)
    text = page.read_text()
    assert text.startswith(f"# Before\n{BEGIN}\n")
    assert text.endswith(f"{END}\n## After\n")
    assert "old table" not in text
    assert "| a \\| b | 3 | the words | 0 | 7 | 2 | 1 | 4 |" in text
    assert "Every rule was kept" in text


def test_a_page_that_is_not_there_is_begun_and_one_without_the_section_gets_it(tmp_path: Path) -> None:
    fresh, other = tmp_path / "fresh.md", tmp_path / "other.md"
    other.write_text("# Others wrote this\n\n## Crashes\n\ntheirs\n")
    for page in (fresh, other):
        write_section(page, [replace(STRIKING, complaints=("too slow",))], "mini", ["multiple_0"] * 192)
        once = page.read_text()
        assert once.count(BEGIN) == once.count(END) == 1
        assert "**BROKEN: too slow**" in once
        assert "In 1 runs a rule was broken." in once
        write_section(page, [replace(STRIKING, complaints=("too slow",))], "mini", ["multiple_0"] * 192)
        assert page.read_text() == once
    write_section(other, [STRIKING], "golden", ["multiple_0", "simple_java_36"])
    assert "One row is wrong in every run that judges it, simple_java_36: " in other.read_text()
    assert other.read_text().startswith("# Others wrote this\n\n## Crashes\n\ntheirs\n")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentcompass_bfcl import official_results
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import OfficialResultsError
from agentcompass_bfcl.official_results import (
    INFERENCE_ERROR,
    ModelResults,
    ResultFault,
    StoredRow,
    find_results,
    read_rows,
    result_file_name,
    rows_only,
)
from agentcompass_bfcl.score import Unscored
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS
from result_trees import result_line, result_path, write_results, write_subsets

SUBSETS = ("irrelevance", "live_parallel", "multiple")
GOOD = result_line("multiple_0", [{"f": "{}"}])


def one_file(tmp_path: Path, content: bytes, subset: str = "multiple") -> ModelResults:
    path = tmp_path / result_file_name(subset)
    path.write_bytes(content)
    (results,) = find_results(path)
    return results


def read(results: ModelResults, dataset: Dataset, **options: bool) -> tuple[list[StoredRow], list[ResultFault]]:
    faults: list[ResultFault] = []
    return list(rows_only(read_rows(results, dataset, **options), faults)), faults


def snapshot(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", [".", "result", "result/some_model"])
def test_a_models_files_are_found_from_its_folder_and_from_the_folders_above(
    place: str, dataset: Dataset, tmp_path: Path
) -> None:
    write_subsets(tmp_path / "result" / "some_model", dataset, *SUBSETS)
    (found,) = find_results(tmp_path / place)
    assert found.model == "some_model"
    assert set(found.files) == set(SUBSETS)
    assert (found.ignored, found.faults) == ((), ())


@pytest.mark.parametrize(
    ("place", "subsets"), [("live", {"live_parallel"}), (f"non_live/{result_file_name('multiple')}", {"multiple"})]
)
def test_a_group_or_a_single_file_is_of_the_model_it_lies_below(
    place: str, subsets: set[str], dataset: Dataset, tmp_path: Path
) -> None:
    folder = write_subsets(tmp_path / "some_model", dataset, "live_parallel", "multiple")
    (found,) = find_results(folder / place)
    assert (found.model, set(found.files)) == ("some_model", subsets)


def test_every_model_of_a_folder_is_found_sorted_by_name(dataset: Dataset, tmp_path: Path) -> None:
    for model in ("b", "a", "c_d"):
        write_results(tmp_path / "result" / model, [(dataset.rows["multiple"][0], [])])
    (tmp_path / "result" / "notes").mkdir()
    assert [found.model for found in find_results(tmp_path)] == ["a", "b", "c_d"]


def test_every_single_turn_subset_has_its_file(dataset: Dataset, tmp_path: Path) -> None:
    write_results(tmp_path / "m", ((dataset.rows[subset][0], []) for subset in SINGLE_TURN_SUBSETS))
    (found,) = find_results(tmp_path / "m")
    assert set(found.files) == set(SINGLE_TURN_SUBSETS)


OTHERS = (
    "multi_turn/BFCL_v4_multi_turn_base_result.json",
    "agentic/memory/kv/BFCL_v4_memory_kv_result.json",
    "agentic/BFCL_v4_web_search_base_result.json",
    "format_sensitivity/BFCL_v4_format_sensitivity_result.json",
    "non_live/BFCL_v4_simple_result.json",
)
STRANGERS = (
    "non_live/BFCL_v3_simple_python_result.json",
    "non_live/BFCL_v4_simple_python_result.json.bak",
    "non_live/bfcl_v4_simple_python_result.json",
    "non_live/BFCL_v4_simple_python_score.json",
    "non_live/BFCL_v4_simple_python.json",
)


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"not JSON, and never read")


def test_other_test_categories_are_named_as_ignored_and_foreign_files_are_passed_over(
    dataset: Dataset, tmp_path: Path
) -> None:
    folder = write_results(tmp_path / "m", [(dataset.rows["multiple"][0], [])])
    put(folder, *OTHERS, *STRANGERS)
    (found,) = find_results(tmp_path)
    assert set(found.files) == {"multiple"}
    assert set(found.ignored) == {folder / name for name in OTHERS}
    assert read(found, dataset) == ([StoredRow("multiple_0", [])], [])


def test_a_model_with_other_categories_only_has_no_files_beside_one_that_has_some(
    dataset: Dataset, tmp_path: Path
) -> None:
    put(tmp_path / "a", OTHERS[0])
    write_results(tmp_path / "b", [(dataset.rows["multiple"][0], [])])
    assert [(found.model, len(found.files), len(found.ignored)) for found in find_results(tmp_path)] == [
        ("a", 0, 1),
        ("b", 1, 0),
    ]


@pytest.mark.parametrize("names", [(), OTHERS, STRANGERS])
def test_a_folder_without_single_turn_results_is_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    put(tmp_path / "m", *names)
    with pytest.raises(OfficialResultsError, match="no single-turn results of bfcl-eval here; expected"):
        find_results(tmp_path)


def test_a_place_that_does_not_exist_and_a_file_of_another_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OfficialResultsError, match="no such file or folder"):
        find_results(tmp_path / "nowhere")
    put(tmp_path, "results.json")
    with pytest.raises(OfficialResultsError, match=r"results\.json: not named as bfcl-eval names"):
        find_results(tmp_path / "results.json")


def test_symbolic_links_to_models_groups_and_files_are_followed_and_loops_end(dataset: Dataset, tmp_path: Path) -> None:
    real = write_subsets(tmp_path / "elsewhere", dataset, "live_parallel", "multiple")
    (tmp_path / "result" / "b").mkdir(parents=True)
    (tmp_path / "result" / "a").symlink_to(real)
    (tmp_path / "result" / "b" / "live").symlink_to(real / "live")
    (tmp_path / "result" / "b" / result_file_name("multiple")).symlink_to(result_path(real, "multiple"))
    (tmp_path / "result" / "b" / "loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    found = find_results(tmp_path / "result")
    assert [(one.model, set(one.files)) for one in found] == [(name, {"live_parallel", "multiple"}) for name in "ab"]
    assert [len(read(one, dataset)[0]) for one in found] == [216, 216]
    with pytest.raises(OfficialResultsError):
        find_results(tmp_path / "self")


def test_a_second_file_of_a_subset_is_a_fault(dataset: Dataset, tmp_path: Path) -> None:
    folder = write_results(tmp_path / "m", [(dataset.rows["multiple"][0], [])])
    second = folder / "z" / result_file_name("multiple")
    second.parent.mkdir()
    second.write_bytes(GOOD)
    (found,) = find_results(tmp_path)
    rows, (fault,) = read(found, dataset)
    assert [row.id for row in rows] == ["multiple_0"]
    assert (fault.path, fault.line) == (second, None)
    assert "a second file of multiple, beside" in str(fault)


def test_rows_come_in_the_order_of_the_file_with_whatever_was_stored(dataset: Dataset, tmp_path: Path) -> None:
    stored = [[{"f": '{"a": 1}'}], "text", [], None, 7, {"a": [None]}, ""]
    content = b"".join(result_line(f"multiple_{199 - place}", output, latency=1) for place, output in enumerate(stored))
    rows, faults = read(one_file(tmp_path, content.replace(b"\n", b"\r\n\n").removesuffix(b"\r\n\n")), dataset)
    assert faults == []
    assert [(row.id, row.output) for row in rows] == [
        (f"multiple_{199 - n}", output) for n, output in enumerate(stored)
    ]
    assert all(row.failure is None for row in rows)


FAULTS = [
    (b"{", "not JSON"),
    (b'{"id": "multiple_1", "result": []} trailing', "not JSON"),
    (b"[]", "a JSON object is expected, not list"),
    (b"null", "a JSON object is expected, not NoneType"),
    (b'{"result": []}', "no key 'id' with text in it"),
    (b'{"id": 1, "result": []}', "no key 'id' with text in it"),
    (b'{"id": ["multiple_1"], "result": []}', "no key 'id' with text in it"),
    (b'{"id": "multiple_1"}', "multiple_1 has no key 'result'"),
    (result_line("multiple_200", []), "unknown id 'multiple_200'"),
    (result_line("multiple_01", []), "unknown id 'multiple_01'"),
    (result_line("../../etc/passwd\n\x1b[31m", []), r"unknown id '../../etc/passwd\n\x1b[31m'"),
    (result_line("\ud800" * 500, []), "unknown id"),
    (result_line("simple_python_1", []), "simple_python_1 belongs to simple_python, and this file to multiple"),
    (GOOD, "multiple_0 stands already in line 1"),
    (b'{"id": "multiple_1", "result": "\xff"}', "not UTF-8 (byte 33 of the line)"),
    (b"\xef\xbb\xbf" + result_line("multiple_1", []), "begins with a byte order mark"),
    (b'{"id": "multiple_1", "result": ' + b"9" * 5000 + b"}", "not JSON (Exceeds the limit"),
    (b'{"id": "multiple_1", "result": ' + b"[" * 10**6 + b"]" * 10**6 + b"}", "nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), FAULTS)
def test_a_broken_line_is_named_by_its_number_and_the_others_are_read(
    line: bytes, message: str, dataset: Dataset, tmp_path: Path
) -> None:
    results = one_file(tmp_path, GOOD + line.removesuffix(b"\n") + b"\n\n" + result_line("multiple_3", "x"))
    rows, (fault,) = read(results, dataset)
    assert [row.id for row in rows] == ["multiple_0", "multiple_3"]
    assert (fault.path, fault.line) == (results.files["multiple"], 2)
    assert message in str(fault)
    assert len(str(fault)) < 1000
    assert str(fault).isprintable()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no row"),
        (b"\n \n", "holds no row"),
        (GOOD.decode().encode("utf-16"), "is UTF-16"),
        (b"\xfe\xff" + GOOD.decode().encode("utf-16-be"), "is UTF-16"),
    ],
)
def test_a_file_that_is_no_result_file_at_all_is_one_fault(
    content: bytes, message: str, dataset: Dataset, tmp_path: Path
) -> None:
    rows, (fault,) = read(one_file(tmp_path, content), dataset)
    assert (rows, fault.line) == ([], None)
    assert message in str(fault)


def test_what_is_no_file_under_a_files_name_is_a_fault_and_is_not_waited_for(dataset: Dataset, tmp_path: Path) -> None:
    write_results(tmp_path / "m", [(dataset.rows["simple_java"][0], [])])
    result_path(tmp_path / "m", "multiple").mkdir()
    os.mkfifo(result_path(tmp_path / "m", "parallel"))
    result_path(tmp_path / "m", "irrelevance").symlink_to(tmp_path / "nowhere")
    (found,) = find_results(tmp_path / "m")
    rows, faults = read(found, dataset)
    assert [row.id for row in rows] == ["simple_java_0"]
    assert {fault.path.name for fault in faults} == {
        result_file_name(subset) for subset in ("irrelevance", "multiple", "parallel")
    }


def test_a_line_that_is_too_long_is_passed_over_without_being_held(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(official_results, "LONGEST_LINE", 200)
    longest = result_line("multiple_1", "x" * (200 - len(result_line("multiple_1", "")) + 1))
    assert len(longest) == 201  # 200 and its line end
    long = result_line("multiple_2", "y" * 5000)
    rows, faults = read(one_file(tmp_path, GOOD + longest + long + result_line("multiple_3", "") + long[:-1]), dataset)
    assert [row.id for row in rows] == ["multiple_0", "multiple_1", "multiple_3"]
    assert [(fault.line, fault.message) for fault in faults] == [
        (3, "longer than 200 bytes"),
        (5, "longer than 200 bytes"),
    ]


def test_a_file_full_of_faults_is_given_up(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official_results, "MOST_FAULTS", 3)
    rows, faults = read(one_file(tmp_path, b"{\n{\n" + GOOD + b"{\n" + result_line("multiple_1", "")), dataset)
    assert [row.id for row in rows] == ["multiple_0"]
    assert [fault.line for fault in faults] == [1, 2, 4, None]
    assert "3 faulty lines so far; the rest was not read" in str(faults[-1])


def test_the_stored_text_of_a_failed_request_is_no_answer_unless_upstreams_rule_is_wanted(
    dataset: Dataset, tmp_path: Path
) -> None:
    text = "Error during inference: Error code: 500 - " + "x" * 5000
    content = result_line("multiple_0", text) + result_line("multiple_1", f"I met an {text}")
    results = one_file(tmp_path, content)
    (failed, answered), _ = read(results, dataset)
    assert failed.failure == Unscored(INFERENCE_ERROR, text[:2000])
    assert answered.failure is None
    assert [row.failure for row in read(results, dataset, official_errors=True)[0]] == [None, None]


def test_reading_changes_nothing(dataset: Dataset, tmp_path: Path) -> None:
    write_subsets(tmp_path / "m", dataset, *SUBSETS)
    put(tmp_path / "m", *OTHERS)
    before = snapshot(tmp_path)
    assert len(read(find_results(tmp_path)[0], dataset)[0]) == 456
    assert snapshot(tmp_path) == before


def items_of(content: bytes, dataset: Dataset, tmp_path: Path) -> list[StoredRow | ResultFault]:
    return list(read_rows(one_file(tmp_path, content), dataset))


def check_every_line_is_accounted_for(lines: Iterable[bytes], items: list[StoredRow | ResultFault]) -> None:
    wanted = [line for line in lines if line.strip()]
    if not wanted:
        assert [str(item).rpartition(": ")[2] for item in items] == ["holds no row"]
        return
    assert len(items) == len(wanted)
    assert all(str(item).isprintable() for item in items if isinstance(item, ResultFault))
    assert max(Counter(item.id for item in items if isinstance(item, StoredRow)).values(), default=0) <= 1


HOSTILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)


@HOSTILE
@given(lines=st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"")), max_size=8))
@example(lines=[b"", b"\r", b"\x00", b"{}", b'{"id": NaN}', b"\xed\xa0\x80"])
def test_of_any_bytes_every_line_is_a_row_or_a_fault(lines: list[bytes], dataset: Dataset, tmp_path: Path) -> None:
    if lines and lines[0].startswith((b"\xff\xfe", b"\xfe\xff")):
        lines[0] = b""
    check_every_line_is_accounted_for(lines, items_of(b"\n".join(lines), dataset, tmp_path))


IDS = st.sampled_from(
    ["multiple_0", "multiple_1", "multiple_199", "parallel_0", "../multiple_0", "multiple_0\x00", "MULTIPLE_0", ""]
) | st.text(max_size=5)  # fmt: skip
HOSTILE_JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3) | st.sampled_from([float("nan"), float("inf"), 10**4000, -0.0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@HOSTILE
@given(
    records=st.lists(st.fixed_dictionaries({}, optional={"id": IDS | HOSTILE_JSON, "result": HOSTILE_JSON}), max_size=6)
)
def test_of_any_json_the_first_row_of_every_known_id_is_read_as_it_was_stored(
    records: list[dict[str, Any]], dataset: Dataset, tmp_path: Path
) -> None:
    lines = [json.dumps(record).encode() for record in records]
    items = items_of(b"\n".join(lines), dataset, tmp_path)
    check_every_line_is_accounted_for(lines, items)
    wanted: dict[str, str] = {}
    claimed: set[str] = set()
    for record in records:
        sample_id = record.get("id")
        if isinstance(sample_id, str) and sample_id in {"multiple_0", "multiple_1", "multiple_199"} - claimed:
            claimed.add(sample_id)
            if "result" in record:
                wanted[sample_id] = json.dumps(record["result"])
    assert {item.id: json.dumps(item.output) for item in items if isinstance(item, StoredRow)} == wanted


def test_of_a_key_that_stands_twice_the_last_one_counts_as_upstream(dataset: Dataset, tmp_path: Path) -> None:
    line = b'{"id": "parallel_0", "id": "multiple_4", "result": [1], "result": [{"f": "{}", "f": "{\\"a\\": 1}"}]}'
    rows, faults = read(one_file(tmp_path, line), dataset)
    assert (rows, faults) == ([StoredRow("multiple_4", [{"f": '{"a": 1}'}])], [])

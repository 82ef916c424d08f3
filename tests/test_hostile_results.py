"""Results, baselines and result trees that were made to hurt: an error in one line, and nothing else happens."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agentcompass_bfcl
from agentcompass_bfcl.baseline import read_baselines
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.draw import DrawSpec
from agentcompass_bfcl.errors import BfclError, ResultError, RunDirError
from agentcompass_bfcl.json_files import LARGEST_BASELINE, LARGEST_RESULT, fault_in, json_text, read_limited
from agentcompass_bfcl.merged_dir import merge_paths
from agentcompass_bfcl.result import read_document
from agentcompass_bfcl.run_record import read_record
from agentcompass_bfcl.shard import Shard
from hostile import (
    ESCAPES,
    NO_JSON,
    SPECIAL,
    command,
    contents,
    make_special,
    refused,
    sane,
    spoilt,
    torn,
)
from hostile import written as as_json
from records import record, written
from result_trees import perfect_output, result_line, result_path, write_subsets

SMALL = DrawSpec(limit=24)
FORGIVING = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
# What reads a result, each with the paths of a bad and of a good one, and where it may write.
READERS: dict[str, Callable[[Path, Path, Path], list[str | Path]]] = {
    "report, text": lambda bad, good, out: ["report", bad, "--format", "text", "-o", out],
    "report, Markdown": lambda bad, good, out: ["report", good, bad, "--format", "md", "-o", out],
    "export, JSON": lambda bad, good, out: ["export", bad, "--to", "json", "--out", out],
    "export, subsets": lambda bad, good, out: ["export", bad, "--to", "csv-subsets", "--out", out],
    "export, Markdown": lambda bad, good, out: ["export", bad, "--to", "markdown", "--out", out],
    "export, OpenMetrics": lambda bad, good, out: ["export", bad, "--to", "openmetrics", "--out", out],
    "gate": lambda bad, good, out: ["gate", bad, "--baseline", "mlperf-edge-agentic", "--junit", out],
    "gate, as JSON": lambda bad, good, out: ["gate", bad, "--baseline", "mlperf-edge-agentic", "--json"],
    "gate, summary": lambda bad, good, out: ["gate", bad, "--not-worse-than", good, "--summary", out],
    "gate, yardstick": lambda bad, good, out: ["gate", good, "--not-worse-than", bad],
    "gate, a new baseline": lambda bad, good, out: ["gate", bad, "--write-baseline", out, "--for-model", "--force"],
}
# The same, of the commands that need the data set, which takes half a second.
SLOW_READERS: dict[str, Callable[[Path, Path, Path], list[str | Path]]] = {
    "export, samples": lambda bad, good, out: ["export", bad, "--to", "csv", "--out", out],
    "export, JUnit": lambda bad, good, out: ["export", bad, "--to", "junit", "--out", out],
    "merge": lambda bad, good, out: ["merge", bad, "--json"],
    "merge, a directory": lambda bad, good, out: ["merge", bad, "--out", out],
    "compare": lambda bad, good, out: ["compare", good, bad],
    "compare, as JSON": lambda bad, good, out: ["compare", good, bad, "--json"],
    "compare, first": lambda bad, good, out: ["compare", bad, good, "--markdown"],
    "compare, same build": lambda bad, good, out: ["compare", good, good, "--same-build", bad],
}
EVERY_READER = READERS | SLOW_READERS


@pytest.fixture(autouse=True)
def read_once(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands have the rows that were read already: the real ones, half a second sooner."""
    for name in ("export", "merge", "compare", "rescore"):
        monkeypatch.setattr(f"agentcompass_bfcl.cli.{name}.read_dataset", lambda wheel: dataset)


@pytest.fixture
def good(dataset: Dataset, tmp_path: Path) -> Path:
    return written(record(dataset, spec=SMALL), tmp_path / "good.json")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    place = tmp_path / "outside" / "inside" / "out"
    place.parent.mkdir(parents=True)
    (tmp_path / "outside" / "precious").write_text("kept")
    return place


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_file_is_refused_in_one_line_and_neither_waited_for_nor_read_for_ever(
    kind: str, good: Path, out: Path, tmp_path: Path
) -> None:
    bad = make_special(kind, tmp_path / "bad.json")
    before = contents(tmp_path)
    for reader, arguments in EVERY_READER.items():
        ended = sane(command(*arguments(bad, good, out)), 1)
        assert "bad.json" in ended.err, reader
        out.unlink(missing_ok=True)  # a gate reports that it could not read
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kind", NO_JSON)
def test_what_is_no_result_is_refused_in_one_line_with_its_path(
    kind: str, good: Path, out: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(NO_JSON[kind])
    for reader, arguments in EVERY_READER.items():
        assert "bad.json" in sane(command(*arguments(bad, good, out)), 1).err, reader
        out.unlink(missing_ok=True)  # a gate reports that it could not read


@pytest.mark.parametrize("name", ["n" * 300, "/".join(["n" * 200] * 30), ESCAPES.replace("\0", "")])
def test_a_path_no_file_has_is_refused_in_one_line(name: str, good: Path, out: Path, tmp_path: Path) -> None:
    for arguments in EVERY_READER.values():
        sane(command(*arguments(tmp_path / name, good, out)), 1)
        out.unlink(missing_ok=True)


@FORGIVING
@given(data=st.data())
def test_whatever_a_result_says_every_reader_answers_in_its_own_words(
    data: st.DataObject, dataset: Dataset, good: Path, out: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(as_json(data.draw(spoilt(json.loads(good.read_bytes())))))
    before = contents(tmp_path)
    for reader, arguments in READERS.items():
        ended = sane(command(*arguments(bad, good, out)), 0, 1, 3, 4)
        if out.exists():
            assert reader.startswith("gate") or ended.code == 0
            out.read_text(encoding="utf-8")
            out.unlink()
    reader = data.draw(st.sampled_from(sorted(SLOW_READERS)))
    sane(command(*SLOW_READERS[reader](bad, good, out)), 0, 1, 4)
    out.unlink(missing_ok=True)
    assert contents(tmp_path) == before


@FORGIVING
@given(data=st.data())
def test_a_result_cut_off_or_flipped_anywhere_is_read_or_refused(
    data: st.DataObject, good: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(data.draw(torn(good.read_bytes())))
    try:
        found = read_record(bad)
    except (RunDirError, ResultError) as error:
        assert str(bad) in str(error)
    else:
        assert read_document(json.loads(found.document.to_json()), "again") == found.document


@FORGIVING
@given(data=st.data())
def test_shards_that_say_anything_are_merged_or_refused_with_every_fault(
    data: st.DataObject, dataset: Dataset, tmp_path: Path
) -> None:
    shards = [record(dataset, spec=SMALL, shard=Shard(number, 2)) for number in (0, 1)]
    paths = [written(found, tmp_path / f"{number}.json") for number, found in enumerate(shards)]
    paths[1].write_bytes(as_json(data.draw(spoilt(json.loads(paths[1].read_bytes())))))
    try:
        merged = merge_paths(paths, dataset)
    except BfclError as error:
        assert str(error)
    else:
        assert merged.document.counts.total == 24


@pytest.mark.parametrize("shard", ["0/1000000000", "0/999999999", f"0/{'9' * 4_000}", f"{'9' * 5_000}/1", "-1/2", "x"])
def test_a_shard_of_more_parts_than_there_are_rows_is_one_fault(
    shard: str, dataset: Dataset, good: Path, tmp_path: Path
) -> None:
    payload = json.loads(good.read_bytes())
    payload["extra"]["shard"] = shard
    bad = tmp_path / "bad.json"
    bad.write_bytes(as_json(payload))
    ended = sane(command("merge", bad, "--json"), 1)
    assert len(ended.err.splitlines()) == 2
    assert len(ended.err) < 1_000


def test_a_merged_run_with_several_endpoints_can_be_merged_again(dataset: Dataset, tmp_path: Path) -> None:
    urls = ["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]
    path = written(record(dataset, spec=SMALL, base_url=urls), tmp_path / "merged.json")
    assert merge_paths([path], dataset).document.extra["base_url"] == urls


@pytest.mark.parametrize("place", ["model", "draw", "fingerprint", "mode", "base_url", "source", "scope", "on_error"])
def test_no_identity_reaches_a_terminal_as_it_is(place: str, dataset: Dataset, good: Path, out: Path) -> None:
    payload = json.loads(good.read_bytes())
    payload["extra"][place] = ESCAPES
    payload["details"]["error_types"] = payload["details"]["miss_types"] = {ESCAPES: 1}
    payload["details"]["absent"] = [ESCAPES]
    good.write_bytes(as_json(payload))
    for arguments in READERS.values():
        sane(command(*arguments(good, good, out)), 0, 1, 4)
    shown = sane(command("report", good, "--format", "text", "-o", "-"), 0).out
    assert sum(line.startswith("overall") for line in shown.splitlines()) == 1
    for form in ("json", "markdown"):
        sane(command("export", good, "--to", form, "--out", "-"), 0)


def test_names_of_subsets_are_no_formula_and_no_markup(good: Path, out: Path) -> None:
    payload = json.loads(good.read_bytes())
    name = "=HYPERLINK(1)|<b>"
    payload["details"]["subsets"][name] = payload["details"]["subsets"]["parallel"]
    good.write_bytes(as_json(payload))
    sane(command("export", good, "--to", "csv-subsets", "--out", out), 0)
    assert f"'{name}" in out.read_text()
    sane(command("export", good, "--to", "markdown", "--out", out), 0)
    assert "<b>" not in out.read_text()


def test_more_rows_or_attempts_than_there_can_be_are_refused_before_they_are_counted(
    dataset: Dataset, good: Path, tmp_path: Path
) -> None:
    payload = json.loads(good.read_bytes())
    bad = tmp_path / "bad.json"
    for rows, words in (
        (" ".join(f"{number}:h" for number in range(1_000_000)), "which has 200"),
        ("0:" + "h" * 10_000_000, "attempts"),
    ):
        payload["details"]["rows"]["parallel"] = rows
        bad.write_bytes(as_json(payload))
        refused(command("compare", good, bad), words, codes=(4,))
        sane(command("gate", bad, "--baseline", "mlperf-edge-agentic"), 1)


def test_what_others_could_not_read_is_named_with_its_place() -> None:
    nested: Any = []
    for _ in range(5_000):
        nested = [nested]
    assert fault_in({"a": [1, {"b": 10**300}]}) == "a.1.b: a number of more than 300 digits"
    assert fault_in({"a": float("inf")}) == "a: inf is no number JSON can hold"
    assert fault_in({"\ud800": 1}) == "\ud800: half of a letter, which UTF-8 cannot hold"
    assert "nested deeper" in str(fault_in(nested))
    assert fault_in({"a": [10**299, 1.5, None, True, "\U0001f600", {}]}) is None


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner)))
def test_json_for_others_reads_back_as_it_was_and_holds_nothing_raw(value: Any) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    text.encode("utf-8")
    assert not set(text) & set("\x1b\x7f\x9b\u202e\u2028\u2066\ufeff")


# Baselines

BASELINE = """
[[baseline]]
draw = "mini"
[baseline.conditions]
mode = "fc"
[baseline.metrics.overall_accuracy]
min = 10
noise = 1.5
"""
BAD_BASELINES: dict[str, bytes] = {
    "empty": b"",
    "half": BASELINE.encode()[:40],
    "no UTF-8": b'[[baseline]]\ndraw = "\xff"',
    "a byte order mark": b"\xef\xbb\xbf" + BASELINE.encode(),
    "UTF-16": BASELINE.encode("utf-16"),
    "zeros": b"\x00" * 100,
    "deep lists": b"a = " + b"[" * 100_000,
    "deep tables": b"[[baseline]]\n" + b"metrics." + b"a." * 450 + b"b = {min = 1}",
    "deep and deeper": b"[" + b"a." * 450 + b"b]\n" + b"c." * 450 + b"d = " + b"[" * 400 + b"]" * 400,
    "a key of many dots": b"a." * 100_000 + b"b = 1",
    "a table of many dots": b"[" + b"a." * 100_000 + b"b]",
    "too large": b"#" * (LARGEST_BASELINE + 1),
    "digits": b"[[baseline]]\nn = " + b"9" * 5_000,
    "an enormous exponent": b"[[baseline]]\nn = 1e99999999999999999999",
    "twice the same key": b'[[baseline]]\ndraw = "a"\ndraw = "b"',
    "a table": b'[baseline]\ndraw = "mini"',
    "a list of numbers": b"baseline = [1, 2]",
    "a long unknown name": b'[[baseline]]\ndraw="mini"\n[baseline.metrics]\n' + b"x" * 50_000 + b" = {min = 1}",
    "escapes": b'[[baseline]]\n"\\u001b[31m\\n\\u202E" = 1',
    "not a number": b'[[baseline]]\ndraw = "mini"\n[baseline.metrics.samples]\nmin = nan',
    "infinite": b'[[baseline]]\ndraw = "mini"\n[baseline.metrics.samples]\nmin = inf',
    "a date for a bound": b'[[baseline]]\ndraw = "mini"\n[baseline.metrics.samples]\nmin = 1979-05-27',
}


@pytest.mark.parametrize("kind", BAD_BASELINES)
def test_a_baseline_that_cannot_be_meant_is_refused_in_one_line(kind: str, good: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(BAD_BASELINES[kind])
    refused(command("gate", good, "--baseline-file", path), "bad.toml")


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_baseline_that_is_no_file_is_refused_in_one_line(kind: str, good: Path, tmp_path: Path) -> None:
    path = make_special(kind, tmp_path / "bad.toml")
    refused(command("gate", good, "--baseline-file", path), "bad.toml")


def test_many_bounds_are_looked_through_in_no_time(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    bounds = "".join(f"x{number} = {{min = 1}}\n" for number in range(12_000))
    path.write_text(f'[[baseline]]\ndraw = "mini"\n[baseline.metrics]\n{bounds}')
    refused(command("gate", good, "--baseline-file", path), "unknown metric")


@FORGIVING
@given(data=st.data())
def test_a_baseline_cut_off_or_flipped_anywhere_is_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / "torn.toml"
    path.write_bytes(data.draw(torn(BASELINE.encode())))
    try:
        assert read_baselines(path)
    except BfclError as error:
        assert str(path) in str(error)


# Result trees of bfcl-eval


@pytest.mark.parametrize("kind", [kind for kind in SPECIAL if kind not in ("absent", "huge", "link to huge")])
def test_what_is_no_file_in_a_result_tree_is_a_fault_in_one_line(kind: str, dataset: Dataset, tmp_path: Path) -> None:
    model = write_subsets(tmp_path / "model", dataset, "live_parallel")
    make_special(kind, result_path(model, "live_relevance"))
    before = contents(tmp_path)
    ended = sane(command("rescore", model), 1)
    assert "live_relevance" in ended.err
    assert ended.out == ""
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kind", NO_JSON)
def test_a_line_that_is_no_row_is_named_and_the_others_count_when_asked(
    kind: str, dataset: Dataset, tmp_path: Path
) -> None:
    model = write_subsets(tmp_path / "model", dataset, "live_parallel")
    path = result_path(model, "live_parallel")
    path.write_bytes(path.read_bytes() + NO_JSON[kind].replace(b"\n", b" ") + b"\n")
    sane(command("rescore", model, "--partial"), 0 if kind == "blank" or kind == "empty" else 1)
    sane(command("rescore", model, "--partial", "--keep-going"), 0)


@pytest.mark.parametrize("output", [[], "", ESCAPES, 10**400, {"a": {}}, [[ESCAPES]], [{ESCAPES: ESCAPES}], "\ud800"])
def test_any_stored_output_gets_a_verdict(output: Any, dataset: Dataset, tmp_path: Path) -> None:
    model = write_subsets(tmp_path / ESCAPES.replace("\0", ""), dataset, "live_parallel")
    path = result_path(model, "live_parallel")
    path.write_bytes(b"".join(result_line(entry.id, output) for entry in dataset.rows["live_parallel"]))
    sane(command("rescore", model), 0)
    sane(command("rescore", model, "--json"), 0)
    sane(command("rescore", model, "--verdicts", "-"), 0)


@settings(FORGIVING, max_examples=12)
@given(data=st.data())
def test_a_result_tree_cut_off_or_flipped_anywhere_is_scored_or_refused(
    data: st.DataObject, dataset: Dataset, tmp_path: Path
) -> None:
    entries = dataset.rows["live_parallel"]
    path = result_path(tmp_path / "model", "live_parallel")
    path.parent.mkdir(parents=True, exist_ok=True)
    good = b"".join(result_line(entry.id, perfect_output(entry)) for entry in entries)
    path.write_bytes(data.draw(torn(good)))
    sane(command("rescore", tmp_path / "model", "--partial"), 0, 1)


# Memory

_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
from agentcompass_bfcl.cli import main
sys.exit(main(sys.argv[2:]))
"""


def limited(megabytes: int, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(Path(agentcompass_bfcl.__file__).parents[1])}
    call = [sys.executable, "-c", _LIMITED, str(megabytes * 1024 * 1024), *map(str, arguments)]
    return subprocess.run(call, env=environ, capture_output=True, text=True, timeout=120, check=False)


def test_the_largest_results_fit_in_a_gigabyte_and_larger_ones_are_not_read(good: Path, tmp_path: Path) -> None:
    worst, larger = tmp_path / "worst.json", tmp_path / "larger.json"
    worst.write_bytes(b"[" + b"[]," * (LARGEST_RESULT // 3 - 2) + b"[]]")  # small things take the most
    larger.write_bytes(b" " * (LARGEST_RESULT + 1))
    for path, words in ((worst, "not a JSON object"), (larger, f"larger than {LARGEST_RESULT} bytes")):
        ended = limited(1024, "gate", path, "--baseline", "mlperf-edge-agentic")
        assert ended.returncode == 1, ended
        assert words in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_line_of_a_gigabyte_is_passed_over_in_little_memory(dataset: Dataset, tmp_path: Path) -> None:
    model = write_subsets(tmp_path / "model", dataset, "live_relevance")
    path = result_path(model, "live_relevance")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + (1 << 30))
    ended = limited(1024, "rescore", model, "--json", "--keep-going")
    assert ended.returncode == 0, ended
    assert "longer than" in ended.stderr
    assert json.loads(ended.stdout)["counts"]["evaluated"] == 16


def test_a_name_that_no_file_can_have_is_like_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no file can have this name"):
        read_limited(tmp_path / "a\0b", 1)


def test_a_limit_holds_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_limited(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_limited(path, 4)
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY

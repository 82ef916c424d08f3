"""Shards put together: the whole run's result to the byte, or every fault by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.cli import main
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, DrawSpec
from agentcompass_bfcl.errors import MergeError, ResultError
from agentcompass_bfcl.merge import merge
from agentcompass_bfcl.run_record import RunRecord, read_record
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.tally import Outcome
from agentcompass_bfcl.verification import verify
from records import ERROR, HIT, MISS, edited, record, two_in_three, without, written

type Change = Callable[[list[RunRecord], Dataset], list[RunRecord]]


def shards_of(dataset: Dataset, count: int, **options: Any) -> list[RunRecord]:
    return [record(dataset, shard=Shard(index, count), **options) for index in range(count)]


def canonical(found: RunRecord) -> str:
    return found.document.to_json()


def without_provenance(text: str) -> str:
    document = json.loads(text)
    document["extra"] = without(document["extra"], "shards")
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("draw", ["mini", "golden", "full"])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_merged_shards_are_the_whole_run_to_the_byte(draw: str, count: int, dataset: Dataset) -> None:
    spec = PRESETS[draw]
    merged = merge(list(reversed(shards_of(dataset, count, spec=spec))), dataset)
    assert without_provenance(merged.document.to_json()) == canonical(record(dataset, spec=spec))
    provenance = merged.document.extra["shards"]
    assert [part["shard"] for part in provenance] == [f"{index}/{count}" for index in range(count)]
    verify(merged.document)


@given(data=st.data())
def test_any_outcomes_in_any_order_of_shards_merge_to_the_whole(data: st.DataObject, dataset: Dataset) -> None:
    k = data.draw(st.integers(1, 3))
    outcomes = data.draw(
        st.lists(st.lists(st.sampled_from([HIT, MISS]), min_size=k, max_size=k), min_size=1, max_size=9)
    )

    def play(entry: Entry) -> tuple[Outcome, ...]:
        return tuple(outcomes[entry.row % len(outcomes)])

    parts = data.draw(st.permutations(shards_of(dataset, data.draw(st.integers(1, 6)), play=play, k=k)))
    merged = merge(parts, dataset)
    assert without_provenance(merged.document.to_json()) == canonical(record(dataset, play, k=k))


def lacking_one(parts: list[RunRecord], _: Dataset) -> list[RunRecord]:
    return [parts[0], parts[2]]


def one_twice(parts: list[RunRecord], _: Dataset) -> list[RunRecord]:
    return [*parts, parts[1]]


def of_another_draw(parts: list[RunRecord], dataset: Dataset) -> list[RunRecord]:
    return [*parts[:2], record(dataset, shard=Shard(2, 3), spec=PRESETS["golden"])]


def of_another_data_set(parts: list[RunRecord], dataset: Dataset) -> list[RunRecord]:
    return [*parts[:2], record(dataset, shard=Shard(2, 3), dataset="bfcl-eval==2025.1.1")]


def of_another_model(parts: list[RunRecord], dataset: Dataset) -> list[RunRecord]:
    return [*parts[:2], record(dataset, shard=Shard(2, 3), model="other-model")]


def of_other_parameters(parts: list[RunRecord], dataset: Dataset) -> list[RunRecord]:
    return [*parts[:2], record(dataset, shard=Shard(2, 3), request={"temperature": 1})]


def of_another_count(parts: list[RunRecord], dataset: Dataset) -> list[RunRecord]:
    return [*parts, record(dataset, shard=Shard(1, 2), source="half")]


def with_an_edited_tally(parts: list[RunRecord], _: Dataset) -> list[RunRecord]:
    def more_hits(payload: dict[str, Any]) -> None:
        payload["metrics"]["subset.multiple.hits"] += 1

    return [*parts[:2], edited(parts[2], more_hits)]


def with_an_edited_score(parts: list[RunRecord], _: Dataset) -> list[RunRecord]:
    def better(payload: dict[str, Any]) -> None:
        payload["metrics"]["overall_accuracy"] = 99.0

    return [*parts[:2], edited(parts[2], better)]


def with_a_row_less(parts: list[RunRecord], _: Dataset) -> list[RunRecord]:
    def torn(payload: dict[str, Any]) -> None:
        rows = payload["details"]["rows"]
        rows["multiple"] = " ".join(rows["multiple"].split()[1:])
        hits = payload["details"]["subsets"]["multiple"]
        payload["metrics"]["subset.multiple.hits"], payload["metrics"]["subset.multiple.n"] = 0, hits["n"]

    return [*parts[:2], edited(parts[2], torn)]


def with_a_row_of_another_shard(parts: list[RunRecord], dataset: Dataset) -> list[RunRecord]:
    def exchanged(payload: dict[str, Any]) -> None:
        rows = payload["details"]["rows"]["irrelevance"]
        payload["details"]["rows"]["irrelevance"] = rows.replace("2:", "1:")

    return [*parts[:2], edited(parts[2], exchanged)]


def with_failed_requests(parts: list[RunRecord], dataset: Dataset) -> list[RunRecord]:
    return [*parts[:2], record(dataset, lambda entry: (ERROR,), shard=Shard(2, 3))]


def with_rows_never_run(parts: list[RunRecord], dataset: Dataset) -> list[RunRecord]:
    return [*parts[:2], record(dataset, lambda entry: (ERROR,), shard=Shard(2, 3), error_type="not_run")]


DAMAGE = [
    (lacking_one, "shard 1/3: missing"),
    (one_twice, r"shard 1/3: there 2 times, and none is known to be newer"),
    (of_another_draw, r"shard 2/3 \(shard-2\): of another run: draw_fingerprint is"),
    (of_another_data_set, r"shard 2/3 \(shard-2\): of another run: dataset is bfcl-eval==2025.1.1"),
    (of_another_model, r"shard 2/3 \(shard-2\): of another run: model is other-model, and some-model in shard-"),
    (of_other_parameters, r"shard 2/3 \(shard-2\): of another run: request is {'temperature': 1}"),
    (of_another_count, r"shard 1/2 \(half\): overlaps: a shard of 2, the others of 3"),
    (with_an_edited_tally, r"shard 2/3 \(shard-2\): damaged: subset.multiple: the tally is not that of the rows"),
    (with_an_edited_score, r"shard 2/3 \(shard-2\): damaged: metrics.overall_accuracy is 99.0"),
    (with_a_row_less, r"shard 2/3 \(shard-2\): damaged: subset.multiple"),
    (with_a_row_of_another_shard, r"shard 2/3 \(shard-2\): torn: 1 of .* rows missing, such as irrelevance_2"),
    (with_failed_requests, r"shard 2/3 \(shard-2\): failed requests \(transport_http_500 \d+\)"),
    (with_rows_never_run, r"shard 2/3 \(shard-2\): torn: \d+ rows were never run"),
]


@pytest.mark.parametrize(("damage", "fault"), DAMAGE, ids=[damage.__name__ for damage, _ in DAMAGE])
def test_a_damaged_set_is_refused_with_the_shard_named(damage: Change, fault: str, dataset: Dataset) -> None:
    parts = damage(shards_of(dataset, 3), dataset)
    for order in (parts, parts[::-1]):
        with pytest.raises(MergeError, match=fault) as refusal:
            merge(order, dataset)
        assert refusal.value.faults
        assert "\n" not in str(refusal.value)


def test_every_fault_is_listed_at_once(dataset: Dataset) -> None:
    parts = shards_of(dataset, 4)
    broken = with_an_edited_tally([parts[0], parts[1], parts[2]], dataset)[2]
    with pytest.raises(MergeError) as refusal:
        merge([parts[0], broken], dataset)
    assert [fault.split(":")[0] for fault in refusal.value.faults] == ["shard 2/4 (shard-2)", "shard 1/4", "shard 3/4"]


def test_failed_requests_are_merged_when_they_are_allowed(dataset: Dataset) -> None:
    def some_fail(entry: Entry) -> tuple[Outcome, ...]:
        return (ERROR,) if entry.row % 5 == 0 else two_in_three(entry)

    parts = shards_of(dataset, 3, play=some_fail)
    with pytest.raises(MergeError, match="failed requests"):
        merge(parts, dataset)
    merged = merge(parts, dataset, allow_errors=True)
    assert without_provenance(merged.document.to_json()) == canonical(record(dataset, some_fail))


def test_what_the_checker_gave_no_verdict_on_is_no_fault_of_a_shard(dataset: Dataset) -> None:
    parts = shards_of(dataset, 2, play=lambda entry: (ERROR if entry.row == 1 else HIT,), error_type="time_limit")
    assert merge(parts, dataset).document.counts.error


def test_a_shard_that_was_run_again_replaces_its_older_self_and_that_is_said(dataset: Dataset) -> None:
    older = record(dataset, lambda entry: (MISS,), shard=Shard(1, 2), source="old", started="2026-01-01T00:00:00+00:00")
    newer = record(dataset, shard=Shard(1, 2), source="new", started="2026-01-02T00:00:00+00:00")
    first = record(dataset, shard=Shard(0, 2))
    for order in ([older, first, newer], [newer, older, first]):
        merged = merge(order, dataset)
        assert merged.notes == ("shard 1/2 (old): replaced by new, which began later",)
        assert without_provenance(merged.document.to_json()) == canonical(record(dataset))


def test_addresses_of_the_shards_stay_known_and_the_driver_knows_better(dataset: Dataset) -> None:
    parts = [record(dataset, shard=Shard(index, 2), base_url=f"http://h{index}/v1") for index in range(2)]
    assert merge(parts, dataset).document.extra["base_url"] == ["http://h0/v1", "http://h1/v1"]
    told = merge(parts, dataset, facts={"concurrency": 8, "base_url": "http://front/v1"}).document.extra
    assert (told["concurrency"], told["base_url"]) == (8, "http://front/v1")
    assert [part["base_url"] for part in told["shards"]] == ["http://h0/v1", "http://h1/v1"]


def test_a_shard_for_every_row_merges_and_one_more_is_refused(dataset: Dataset) -> None:
    spec = DrawSpec(subsets=("multiple",), limit=5)
    parts = shards_of(dataset, 5, spec=spec)
    assert without_provenance(merge(parts, dataset).document.to_json()) == canonical(record(dataset, spec=spec))
    with pytest.raises(MergeError) as refusal:
        merge([*parts, edited(parts[0], lambda payload: payload["extra"].update(shard="0/6"))], dataset)
    assert refusal.value.faults == ("shard 0/6 (shard-0): a shard of 6, and the draw has 5 rows",)


@pytest.mark.parametrize("shard", ["x", "3/3", "", "unknown"])
def test_a_shard_that_cannot_be_hides_nothing_of_the_others(shard: str, dataset: Dataset) -> None:
    parts = shards_of(dataset, 3)
    strange = edited(parts[1], lambda payload: payload["extra"].update(shard=shard))
    with pytest.raises(MergeError) as refusal:
        merge([strange, parts[0]], dataset)
    first, *others = refusal.value.faults
    assert first.startswith(f"shard {shard} (shard-1): damaged: ")
    assert others == ["shard 1/3: missing", "shard 2/3: missing"]


def test_a_result_that_does_not_say_which_shard_it_is_counts_as_the_whole_and_is_named_so(dataset: Dataset) -> None:
    def nameless(payload: dict[str, Any]) -> None:
        payload["extra"].pop("shard")
        payload["metrics"]["overall_accuracy"] = 99.0

    assert merge([edited(record(dataset), lambda payload: payload["extra"].pop("shard"))], dataset)
    with pytest.raises(MergeError, match=r"^1 fault: shard unknown \(shard-0\): damaged"):
        merge([edited(record(dataset), nameless)], dataset)


def test_several_faults_stand_in_one_line_after_their_number(dataset: Dataset) -> None:
    with pytest.raises(MergeError, match=r"^2 faults: shard 1/3: missing; shard 2/3: missing$"):
        merge([record(dataset, shard=Shard(0, 3))], dataset)


def test_every_code_that_requests_failed_with_is_listed(dataset: Dataset) -> None:
    def two_codes(payload: dict[str, Any]) -> None:
        payload["details"]["error_types"] = {"transport_timeout": 1, "transport_http_500": failed - 1}

    failing = record(dataset, lambda entry: (ERROR,), shard=Shard(1, 2))
    failed = failing.document.counts.error
    with pytest.raises(MergeError) as refusal:
        merge([record(dataset, shard=Shard(0, 2)), edited(failing, two_codes)], dataset)
    codes = f"transport_http_500 {failed - 1}, transport_timeout 1"
    advice = "run it again with --reuse, or allow errors"
    assert refusal.value.faults == (f"shard 1/2 (shard-1): failed requests ({codes}); {advice}",)


@pytest.mark.parametrize("started", [(None, None), (None, "2026-01-01T00:00:00"), ("2026-01-01T00:00:00",) * 2])
def test_of_two_runs_of_a_shard_neither_is_taken_unless_both_say_when_they_began(
    started: tuple[str | None, str | None], dataset: Dataset
) -> None:
    same = [record(dataset, shard=Shard(0, 2), source=f"run{n}", started=began) for n, began in enumerate(started)]
    other = record(dataset, shard=Shard(1, 2))
    for parts, places in (([*same, other], "run0, run1"), ([other, *reversed(same)], "run1, run0")):
        with pytest.raises(MergeError) as refusal:
            merge(parts, dataset)
        said = "there 2 times, and none is known to be newer"
        assert refusal.value.faults == (f"shard 0/2: {said}: {places}",)


def test_whether_any_attempt_counts_is_kept(dataset: Dataset) -> None:
    def now_and_then(entry: Entry) -> tuple[Outcome, ...]:
        return (MISS, HIT, MISS) if entry.row % 2 else (MISS, MISS, MISS)

    parts = shards_of(dataset, 3, play=now_and_then, k=3, strategy="pass")
    whole = record(dataset, now_and_then, k=3, strategy="pass")
    assert without_provenance(merge(parts, dataset).document.to_json()) == canonical(whole)
    assert canonical(whole) != canonical(record(dataset, now_and_then, k=3))


def test_what_was_counted_beside_the_score_is_added_up(dataset: Dataset) -> None:
    parts = [record(dataset, shard=Shard(n, 3), truncated=n, malformed_abstentions=10 * n + 1) for n in range(3)]
    details = merge(parts, dataset).document.details
    assert (details.truncated, details.malformed_abstentions) == (3, 33)


def test_the_merged_result_says_what_each_shard_was(dataset: Dataset) -> None:
    parts = [record(dataset, shard=Shard(n, 2), source=f"there/run{n}", started=f"2026-01-0{n + 1}") for n in range(2)]
    merged = merge(parts, dataset)
    own = ("base_url", "concurrency", "fingerprint")
    assert merged.document.extra["shards"] == [
        {"shard": f"{n}/2", "run": f"run{n}", "started": f"2026-01-0{n + 1}"} | {key: part.identity[key] for key in own}
        for n, part in enumerate(parts)
    ]
    assert merged.parts == tuple(parts)


def test_nothing_at_all_is_refused(dataset: Dataset) -> None:
    with pytest.raises(MergeError, match=r"^nothing to merge: give the run directories of all shards$"):
        merge([], dataset)


def test_shards_of_another_release_of_the_data_are_refused_by_its_name(dataset: Dataset) -> None:
    with pytest.raises(MergeError) as refusal:
        merge([record(dataset, dataset="bfcl-eval==2025.1.1", source="old")], dataset)
    said = f"its data set is bfcl-eval==2025.1.1, and {dataset.identity} here"
    assert str(refusal.value) == f"shard 0/1 (old): {said}"


def test_a_fingerprint_that_is_not_of_the_draws_rule_is_a_fault_beside_the_others(dataset: Dataset) -> None:
    expected = record(dataset).identity["draw_fingerprint"]
    parts = [record(dataset, shard=Shard(index, 3), draw_fingerprint="draw-sha256:0") for index in (0, 2)]
    with pytest.raises(MergeError) as refusal:
        merge(parts, dataset)
    said = f"its draw has the fingerprint draw-sha256:0, and the same rule gives {expected} here"
    assert refusal.value.faults == (f"shard 0/3 (shard-0): {said}", "shard 1/3: missing")


def test_a_result_of_rows_as_they_were_is_no_shard(dataset: Dataset) -> None:
    with pytest.raises(MergeError, match="not a shard of a draw"):
        merge([edited(record(dataset), lambda payload: payload["extra"].update(spec=None))], dataset)


@pytest.mark.parametrize(
    "spec", [{}, {"categories": 1}, {"categories": ["x"], "category_pct": {}, "subset_floor": None}]
)
def test_a_draw_that_cannot_be_read_is_refused_in_one_line(spec: Any, dataset: Dataset) -> None:
    strange = edited(record(dataset), lambda payload: payload["extra"].update(spec=spec))
    with pytest.raises(MergeError, match="its draw cannot be read"):
        merge([strange], dataset)


def test_an_edited_category_or_subset_score_is_found(dataset: Dataset) -> None:
    for place in ("categories", "subsets"):

        def better(payload: dict[str, Any], place: str = place) -> None:
            part = payload["details"][place]
            if place == "categories":
                part["live"] = 100.0
            else:
                part["multiple"]["accuracy"] = 100.0

        with pytest.raises(ResultError, match=f"details.{place}"):
            verify(edited(record(dataset), better).document)


# The command, on results in files.


def test_results_in_files_merge_to_one_result(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(written(part, tmp_path / f"{part.shard.index}.json")) for part in shards_of(dataset, 3)]
    assert main(["merge", *files, "--json"]) == 0
    assert without_provenance(capsys.readouterr().out) == canonical(record(dataset))
    assert main(["merge", *files, "--out", str(tmp_path / "merged")]) == 1
    assert "a run directory can only be made of run directories" in capsys.readouterr().err
    assert not (tmp_path / "merged").exists()


def test_faults_are_printed_one_a_line(dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = shards_of(dataset, 4)
    files = [str(written(part, tmp_path / f"{part.shard.index}.json")) for part in parts[:2]]
    assert main(["merge", *files, "--json"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "agentcompass-bfcl: shard 2/4: missing",
        "agentcompass-bfcl: shard 3/4: missing",
        "agentcompass-bfcl: 2 faults, nothing was merged",
    ]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema_version": 1}', b"[" * 10**5, b"null"])
def test_a_file_that_is_no_result_is_named(
    content: bytes, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = written(record(dataset, shard=Shard(0, 2)), tmp_path / "good.json")
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    assert main(["merge", str(good), str(bad), "--json"]) == 1
    error = capsys.readouterr().err
    assert f"torn: {bad}: " in error
    assert "Traceback" not in error


def test_a_record_is_read_back_from_a_file(dataset: Dataset, tmp_path: Path) -> None:
    found = record(dataset, shard=Shard(1, 3))
    assert read_record(written(found, tmp_path / "r.json")).document == found.document

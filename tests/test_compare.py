"""Two runs of the same rows, row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import compare, repeat_spread
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, DrawSpec
from agentcompass_bfcl.errors import CompareError
from agentcompass_bfcl.report.comparison import conclusion, render_comparison, render_spread, render_table
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.tally import Outcome
from recordings import RUNS, needs_recordings, run_folder
from records import ERROR, HIT, MISS, edited, record, two_in_three, written

GOLDEN_FILES = Path(__file__).parent / "golden"
# Eight rows of two subsets: parallel 0-3 and irrelevance 0-3.
EIGHT = DrawSpec(subsets=("parallel", "irrelevance"), limit=8)


@pytest.fixture(scope="module")
def named(dataset: Dataset) -> Mapping[str, str]:
    return clusters(dataset.by_id.values())


def played(letters: str) -> Any:
    """Let irrelevance 0-3 come out as the first four letters say, parallel 0-3 as the others."""
    outcome = {"h": HIT, "m": MISS, "e": ERROR}

    def play(entry: Entry) -> tuple[Outcome, ...]:
        return (outcome[letters[entry.row + (4 if entry.subset == "parallel" else 0)]],)

    return play


def eight(dataset: Dataset, letters: str, **options: Any) -> Any:
    return record(dataset, played(letters), spec=EIGHT, **options)


def test_a_comparison_worked_by_hand(dataset: Dataset, named: Mapping[str, str]) -> None:
    found = compare(eight(dataset, "hhmmhhmm"), eight(dataset, "hhhmhmmm"), named)
    assert [(flip.id, flip.before, flip.after) for flip in found.gained] == [("irrelevance_2", (MISS,), (HIT,))]
    assert [flip.id for flip in found.lost] == ["parallel_1"]
    overall = found.changes["overall"]
    assert overall.difference == 0
    # In each subset one of four differences is 1 or -1: 4/3 * (9/16 + 3/16) / 16 = 1/16; (1/2)^2 of each
    assert overall.variance == Fraction(1, 32)
    assert found.changes["irrelevance"].difference == Fraction(1, 4)
    assert found.changes["hallucination"].variance == Fraction(1, 16)
    assert found.changes["normalized"].difference == 0
    assert (found.rows, found.changed_rows, found.p) == (8, 2, 1)
    # Unpaired: 1/4 * (1/4 / 3 + 1/4 / 3) for the first run, 1/4 * (3/16 / 3 + 3/16 / 3) for the second
    assert found.unpaired_variance == Fraction(1, 24) + Fraction(1, 32)
    assert found.subsets["parallel"].lost == found.subsets["irrelevance"].gained == 1
    assert overall.interval == pytest.approx((-1.959964 * sqrt(1 / 32), 1.959964 * sqrt(1 / 32)))
    assert overall.detectable == pytest.approx(2.801585 * sqrt(1 / 32))


LETTERS = st.text("hme", min_size=8, max_size=8)


@given(first=LETTERS, second=LETTERS, policy=st.sampled_from(OnError))
def test_differences_are_those_of_the_scores_and_turn_round_with_the_runs(
    first: str, second: str, policy: OnError, dataset: Dataset, named: Mapping[str, str]
) -> None:
    a, b = (eight(dataset, letters, on_error=policy) for letters in (first, second))
    if policy is OnError.EXCLUDE and not any("e" not in pair for pair in zip(first, second, strict=True)):
        with pytest.raises(CompareError, match="no row has a verdict in both"):
            compare(a, b, named)
        return
    there, back = compare(a, b, named), compare(b, a, named)
    assert there.changes.keys() == back.changes.keys()
    for name, change in there.changes.items():
        assert back.changes[name].difference == -change.difference
        assert back.changes[name].variance == change.variance
    assert (there.gained == ()) == (back.lost == ())
    assert (there.p, there.changed_rows) == (back.p, back.changed_rows)
    assert there.rows + there.left_out == 8
    if policy is OnError.FAIL:
        scores = [aggregate(found.document.tallies(), policy).exact for found in (a, b)]
        assert None not in (scores[0].overall, scores[1].overall)
        assert there.changes["overall"].difference == scores[1].overall - scores[0].overall  # type: ignore[operator]


@given(letters=LETTERS)
def test_a_run_compared_with_itself_changed_in_nothing(
    letters: str, dataset: Dataset, named: Mapping[str, str]
) -> None:
    found = compare(eight(dataset, letters), eight(dataset, letters), named)
    assert {change.difference for change in found.changes.values()} == {0}
    assert (found.gained, found.lost, found.changed_rows, found.p) == ((), (), 0, 1)
    assert conclusion(found).startswith("No difference on overall is shown: 0.00 points")


def test_errors_are_misses_or_left_out(dataset: Dataset, named: Mapping[str, str]) -> None:
    failing = compare(eight(dataset, "hhhhhhhh"), eight(dataset, "hhhehhhh"), named)
    assert ([flip.id for flip in failing.lost], failing.left_out) == (["irrelevance_3"], 0)
    runs = [eight(dataset, letters, on_error=OnError.EXCLUDE) for letters in ("hhhhhhhh", "hhhehhhh")]
    excluding = compare(runs[0], runs[1], named)
    assert (excluding.lost, excluding.left_out, excluding.rows, excluding.changed_rows) == ((), 1, 7, 1)
    assert "left out   1 rows" in render_comparison(excluding)


def test_several_attempts_have_no_mcnemar_and_are_one_cluster_a_row(dataset: Dataset, named: Mapping[str, str]) -> None:
    a = record(dataset, lambda entry: (HIT, MISS), spec=EIGHT, k=2)
    b = record(dataset, lambda entry: (HIT, HIT) if entry.row else (MISS, MISS), spec=EIGHT, k=2)
    found = compare(a, b, named)
    assert found.p is None
    assert found.changes["overall"].difference == Fraction(6 * 2 - 8, 16)
    assert "McNemar    not shown" in render_comparison(found)
    with pytest.raises(CompareError, match="attempts is"):
        compare(record(dataset, spec=EIGHT), b, named)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mode": "prompt"}, "mode is fc in shard-0 and prompt in shard-0; --allow mode"),
        ({"request": {"temperature": 1}}, "request is {'seed': 42, 'temperature': 0}|request is"),
        ({"checker": "another"}, "checker is"),
        ({"draw_fingerprint": "draw-sha256:00"}, "draw_fingerprint is"),
    ],
)
def test_another_question_is_refused_and_may_be_allowed(
    change: dict[str, Any], said: str, dataset: Dataset, named: Mapping[str, str]
) -> None:
    a, b = record(dataset), record(dataset, **change)
    with pytest.raises(CompareError, match=said):
        compare(a, b, named)
    allowed = compare(a, b, named, allow=list(change))
    assert allowed.notes[0].startswith("allowed to differ: ")


def test_other_rows_lone_shards_and_results_without_rows_are_refused(
    dataset: Dataset, named: Mapping[str, str]
) -> None:
    whole = record(dataset)
    with pytest.raises(CompareError, match="merge first"):
        compare(whole, record(dataset, shard=Shard(0, 2)), named)
    with pytest.raises(CompareError, match="rows are in one of the runs only"):
        compare(whole, record(dataset, spec=PRESETS["golden"]), named, allow=["draw_fingerprint"])
    bare = edited(whole, lambda payload: payload["details"].update(rows={}))
    with pytest.raises(CompareError, match="what came of each row"):
        compare(whole, bare, named)
    cheat = edited(whole, lambda payload: payload["metrics"].update(overall_accuracy=99.0))
    with pytest.raises(CompareError, match="was it edited"):
        compare(whole, cheat, named)


def test_models_and_harnesses_may_differ_and_the_latter_is_noted(dataset: Dataset, named: Mapping[str, str]) -> None:
    found = compare(record(dataset), record(dataset, model="other", harness="openai_chat", concurrency=8), named)
    assert found.notes == ("harness: bfcl_chat, then openai_chat", "concurrency: 1, then 8")


def changed(entry: Entry) -> tuple[Outcome, ...]:
    before = two_in_three(entry)
    if entry.row % 11 == 2:
        return (HIT,)
    return (ERROR,) if entry.row % 17 == 4 else before


def test_the_text_of_a_comparison_is_the_golden_file(dataset: Dataset, named: Mapping[str, str]) -> None:
    before, after = record(dataset, source="before"), record(dataset, changed, source="after", model="new-model")
    assert render_comparison(compare(before, after, named)) == (GOLDEN_FILES / "comparison.txt").read_text()


def test_a_clear_change_is_called_better_or_worse_and_one_that_is_not_is_not(
    dataset: Dataset, named: Mapping[str, str]
) -> None:
    worse = record(dataset, lambda entry: (MISS,) if entry.row % 2 else two_in_three(entry), source="worse")
    assert conclusion(compare(record(dataset), worse, named)).startswith("The second run is worse than the first")
    assert conclusion(compare(worse, record(dataset), named)).startswith("The second run is better than the first")
    slightly = record(dataset, lambda entry: (MISS,) if entry.id == "multiple_0" else two_in_three(entry))
    said = conclusion(compare(record(dataset), slightly, named))
    assert said.startswith("No difference on overall is shown: -0.52 points")
    assert "with 80 % power" in said


def test_repeated_runs_tell_what_changes_by_itself(dataset: Dataset, named: Mapping[str, str]) -> None:
    again = record(dataset, lambda entry: (MISS,) if entry.id == "multiple_0" else two_in_three(entry), source="again")
    worse = record(dataset, lambda entry: (MISS,) if entry.row % 2 else two_in_three(entry), source="worse")
    spread = repeat_spread([record(dataset), again], named)
    assert (spread.changed_share, spread.overall) == (Fraction(1, 192), Fraction(1, 192))
    said = render_spread(spread, [compare(record(dataset), other, named) for other in (again, worse)])
    assert "differ in up to 0.52 % of the rows, overall by up to 0.52 points" in said
    assert "again: its difference on overall, 0.52 points, is within that" in said
    assert "is beyond that" in said
    with pytest.raises(CompareError, match="two runs at least"):
        repeat_spread([again], named)


def test_several_runs_are_a_line_each_against_the_first(dataset: Dataset, named: Mapping[str, str]) -> None:
    runs = [record(dataset, source="a"), record(dataset, changed, source="b"), record(dataset, source="c")]
    table = render_table([compare(runs[0], other, named) for other in runs[1:]])
    assert [line.split()[0] for line in table.splitlines()[4:6]] == ["b", "c"]


def test_the_command_gives_machines_everything(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = written(record(dataset), tmp_path / "a.json"), written(record(dataset, changed), tmp_path / "b.json")
    assert main(["compare", str(a), str(b), "--same-build", str(a), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (comparison,) = document["comparisons"]
    assert document["schema_version"] == 1
    assert len(comparison["gained"]) == comparison["subsets"]["multiple"]["gained"] + sum(
        found["gained"] for name, found in comparison["subsets"].items() if name != "multiple"
    )
    assert document["same_build"]["changed_rows_percent"] == 0
    assert main(["compare", str(a), str(b), "--markdown"]) == 0
    assert "| overall" in capsys.readouterr().out
    assert main(["compare", str(a)]) == 1
    other = written(record(dataset, mode="prompt"), tmp_path / "other.json")
    assert main(["compare", str(a), str(other)]) == 4
    assert "not the same question: mode is fc" in capsys.readouterr().err
    assert main(["compare", str(a), str(other), "--allow", "mode"]) == 0


@needs_recordings
def test_recorded_runs_flip_in_some_hundred_rows_and_pairing_makes_errors_smaller(
    tmp_path: Path, dataset: Dataset, named: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    from agentcompass_bfcl.run_record import read_record

    records = []
    for run in RUNS:
        assert main(["rescore", str(run_folder(run) / "result"), "--draw", "full", "--json"]) == 0
        file = tmp_path / f"{run}.json"
        file.write_text(capsys.readouterr().out)
        records.append(read_record(file))
    for place, first in enumerate(records):
        for second in records[place + 1 :]:
            found = compare(first, second, named)
            assert 150 < len(found.gained) + len(found.lost) < 400
            error = found.changes["overall"].standard_error
            assert error is not None
            assert found.unpaired_variance is not None
            assert error < 0.7 * sqrt(found.unpaired_variance)
            flips = len(found.gained) + len(found.lost)
            assert found.p is not None
            assert float(found.p) == pytest.approx(stats.binomtest(len(found.gained), flips, 0.5).pvalue, rel=1e-9)

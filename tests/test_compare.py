"""Two runs of the same rows, row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

# scipy ships no types of its own.
from scipy import stats  # type: ignore[import-untyped]

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.cli import main
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.compare import Comparison, Finding, compare, repeat_spread
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, DrawSpec
from agentcompass_bfcl.errors import CompareError
from agentcompass_bfcl.paired_rows import pair_rows
from agentcompass_bfcl.report.comparison import conclusion, render_comparison, render_spread, render_table
from agentcompass_bfcl.report.comparison_document import (
    ComparisonDocument,
    SpreadDocument,
    comparison_document,
    spread_document,
    to_json,
)
from agentcompass_bfcl.run_record import RunRecord, read_record
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.tally import Outcome
from host_runs import Finished
from recordings import RUNS, needs_recordings, run_folder
from records import ERROR, HIT, MISS, edited, record, two_in_three, written

GOLDEN_FILES = Path(__file__).parent / "golden"
# Eight rows of two subsets: irrelevance 0-3 and parallel 0-3.
EIGHT = DrawSpec(subsets=("parallel", "irrelevance"), limit=8)
IDS = [f"{subset}_{number}" for subset in ("irrelevance", "parallel") for number in range(4)]
OUTCOMES = {"h": HIT, "m": MISS, "e": ERROR}


@pytest.fixture(scope="module")
def named(dataset: Dataset) -> Mapping[str, str]:
    return clusters(dataset.by_id.values())


def eight(dataset: Dataset, letters: str, **options: Any) -> RunRecord:
    """Let the rows come out as ``letters`` say, irrelevance first; a word a row where there are several attempts."""
    words = letters.split() if " " in letters else list(letters)
    outcomes = {name: tuple(OUTCOMES[letter] for letter in word) for name, word in zip(IDS, words, strict=True)}
    return record(dataset, lambda entry: outcomes[entry.id], spec=EIGHT, **options)


def eight_compared(dataset: Dataset, named: Mapping[str, str], first: str, second: str, **options: Any) -> Comparison:
    return compare(eight(dataset, first, **options), eight(dataset, second, **options), named)


def only(*names: str) -> Any:
    """Let ``names`` be misses beside every third row."""
    return lambda entry: (MISS,) if entry.id in names else two_in_three(entry)


@pytest.mark.parametrize(
    ("before", "after", "gained", "lost", "overall", "variance", "p"),
    [
        # One of four differences is 1, one of the other four -1: 4/3 * (9/16 + 3/16) / 16 = 1/16 of each, 1/4 of it
        ("hhmmhhmm", "hhhmhmmm", "irrelevance_2", "parallel_1", 0, Fraction(1, 32), 1),
        # Differences 1, 0, 0, 0 and 0: only one half has any variance
        ("hhmmhhmm", "hhhmhhmm", "irrelevance_2", "", Fraction(1, 8), Fraction(1, 64), 1),
        # 1, 1, 0, 0 twice: 4/3 * (4 * 1/4) / 16 = 1/12 of each; p = 2/16
        ("mmhhmmhh", "hhhhhhhh", "irrelevance_0 irrelevance_1 parallel_0 parallel_1", "", Fraction(1, 2), None, 1 / 8),
        # Every row the same: no variance, and p = 2/256
        ("mmmmmmmm", "hhhhhhhh", " ".join(IDS), "", 1, Fraction(0), 1 / 128),
        # An error is a miss: no flip and no difference
        ("hhhehhhh", "hhhmhhhh", "", "", 0, Fraction(0), 1),
        ("hhhehhhh", "hhhhhhhh", "irrelevance_3", "", Fraction(1, 8), Fraction(1, 64), 1),
    ],
)
def test_comparisons_worked_by_hand(
    before: str,
    after: str,
    gained: str,
    lost: str,
    overall: Fraction,
    variance: Fraction | None,
    p: float,
    dataset: Dataset,
    named: Mapping[str, str],
) -> None:
    found = eight_compared(dataset, named, before, after)
    assert [row.id for row in found.gained] == gained.split()
    assert [row.id for row in found.lost] == lost.split()
    change = found.changes["overall"]
    assert change.difference == overall
    assert change.variance == (Fraction(1, 24) if variance is None else variance)
    assert found.p == p
    assert (found.rows, found.left_out) == (8, 0)
    assert found.changed_rows == sum(one != other for one, other in zip(before, after, strict=True))


def test_one_comparison_in_every_part(dataset: Dataset, named: Mapping[str, str]) -> None:
    found = eight_compared(dataset, named, "hhmmhhmm", "hhhmhmmm")
    assert [(row.id, row.before, row.after) for row in found.gained] == [("irrelevance_2", (MISS,), (HIT,))]
    assert found.changes["irrelevance"].difference == Fraction(1, 4)
    assert found.changes["hallucination"].variance == Fraction(1, 16)
    assert found.changes["normalized"].difference == 0
    assert set(found.changes) == {"overall", "normalized", "non_live", "hallucination", "irrelevance", "parallel"}
    # Unpaired: 1/4 * (1/4 / 3 + 1/4 / 3) for the first run, 1/4 * (3/16 / 3 + 3/16 / 3) for the second
    assert found.unpaired_variance == Fraction(1, 24) + Fraction(1, 32)
    counts = {name: (flips.gained, flips.lost, flips.same) for name, flips in found.subsets.items()}
    assert counts == {"irrelevance": (1, 0, 3), "parallel": (0, 1, 3)}
    overall = found.changes["overall"]
    assert overall.interval == pytest.approx((-1.959964 * sqrt(1 / 32), 1.959964 * sqrt(1 / 32)))
    assert overall.detectable == pytest.approx(2.801585 * sqrt(1 / 32))


def test_rows_that_offer_the_same_functions_are_one_cluster(dataset: Dataset) -> None:
    in_pairs = {name: f"{name[:-1]}{int(name[-1]) // 2}" for name in IDS}
    found = compare(eight(dataset, "mmhhhhhh"), eight(dataset, "hhhhhhhh"), in_pairs)
    # Clusters 2 of 2 and 0 of 2 in one subset: 2/1 * (1 + 1) / 16 = 1/4; a quarter of it in overall
    assert found.changes["irrelevance"].clustered_variance == Fraction(1, 4)
    assert found.changes["overall"].clustered_variance == Fraction(1, 16)
    assert found.changes["irrelevance"].variance == Fraction(1, 12)


def test_runs_without_a_verdict_on_the_same_row_cannot_be_compared(dataset: Dataset, named: Mapping[str, str]) -> None:
    with pytest.raises(CompareError, match="no row has a verdict in both"):
        eight_compared(dataset, named, "hhhheeee", "eeeehhhh", on_error=OnError.EXCLUDE)


LETTERS = st.text("hme", min_size=8, max_size=8)


@given(first=LETTERS, second=LETTERS, policy=st.sampled_from(OnError))
def test_differences_are_those_of_the_compared_rows_and_turn_round_with_the_runs(
    first: str, second: str, policy: OnError, dataset: Dataset, named: Mapping[str, str]
) -> None:
    a, b = (eight(dataset, letters, on_error=policy) for letters in (first, second))
    pairs = [pair for pair in zip(first, second, strict=True) if policy is OnError.FAIL or "e" not in pair]
    if not pairs:
        with pytest.raises(CompareError, match="no row has a verdict in both"):
            compare(a, b, named)
        return
    there, back = compare(a, b, named), compare(b, a, named)
    hits = sum((after == "h") - (before == "h") for before, after in pairs)
    assert there.changes["overall"].difference == Fraction(hits, len(pairs))
    assert (there.rows, there.left_out) == (len(pairs), 8 - len(pairs))
    assert len(there.gained) - len(there.lost) == hits
    if policy is OnError.FAIL:
        scores = [aggregate(found.document.tallies(), policy).exact for found in (a, b)]
        assert scores[0].overall is not None
        assert scores[1].overall is not None
        assert there.changes["overall"].difference == scores[1].overall - scores[0].overall
        assert scores[0].normalized is not None
        assert scores[1].normalized is not None
        assert there.changes["normalized"].difference == scores[1].normalized - scores[0].normalized
    assert there.changes.keys() == back.changes.keys()
    for name, change in there.changes.items():
        assert back.changes[name].difference == -change.difference
        assert back.changes[name].variance == change.variance
        assert back.changes[name].clustered_variance == change.clustered_variance
    assert [(row.id, row.after, row.before) for row in back.lost] == [
        (row.id, row.before, row.after) for row in there.gained
    ]
    assert (there.p, there.changed_rows, there.unpaired_variance) == (back.p, back.changed_rows, back.unpaired_variance)
    assert {there.finding, back.finding} in [
        {Finding.BETTER, Finding.WORSE},
        *({finding} for finding in (Finding.NOT_SHOWN, Finding.DOUBTFUL, Finding.UNDEFINED)),
    ]


@given(letters=LETTERS)
def test_a_run_compared_with_itself_changed_in_nothing(
    letters: str, dataset: Dataset, named: Mapping[str, str]
) -> None:
    found = eight_compared(dataset, named, letters, letters)
    assert {change.difference for change in found.changes.values()} == {0}
    assert {change.variance for change in found.changes.values()} == {0}
    assert not found.gained
    assert not found.lost
    assert found.changed_rows == 0
    assert found.p == 1
    assert conclusion(found) == (
        "No difference on overall is shown: 0.00 points (95 % interval 0.00 to 0.00, McNemar p = 1).\n"
        "No row flipped, so that these runs do not tell how large a difference would have been shown."
    )


@given(gained=st.integers(0, 20), lost=st.integers(0, 20))
def test_the_exact_p_is_that_of_a_binomial_test(
    gained: int, lost: int, dataset: Dataset, named: Mapping[str, str]
) -> None:
    spec = DrawSpec(subsets=("multiple",), limit=40)

    def came_out(run: int) -> RunRecord:
        up, down = (HIT, MISS) if run else (MISS, HIT)
        return record(
            dataset,
            lambda entry: (up if entry.row < gained else down if entry.row < gained + lost else HIT,),
            spec=spec,
        )

    found = compare(came_out(0), came_out(1), named)
    assert (len(found.gained), len(found.lost)) == (gained, lost)
    assert found.p is not None
    expected = stats.binomtest(gained, gained + lost, 0.5).pvalue if gained + lost else 1
    assert float(found.p) == pytest.approx(expected, rel=1e-9)


@given(seed=st.integers(0, 2**32))
def test_the_order_of_rows_in_a_file_means_nothing(seed: int, dataset: Dataset, named: Mapping[str, str]) -> None:
    def shuffled(payload: dict[str, Any]) -> None:
        rows = payload["details"]["rows"]
        for subset, text in rows.items():
            tokens = text.split()
            Random(seed).shuffle(tokens)  # noqa: S311  # no secret: any order will do
            rows[subset] = " ".join(tokens)

    before, after = record(dataset), record(dataset, changed)
    expected = compare(before, after, named)
    found = compare(edited(before, shuffled), edited(after, shuffled), named)
    assert to_json(comparison_document([found])) == to_json(comparison_document([expected]))


def test_rows_are_listed_in_the_order_of_the_draw(dataset: Dataset) -> None:
    run = record(dataset, spec=PRESETS["full"])
    assert [row.id for row in pair_rows(run, run)] == [row.id for row in run.document.rows()]


def test_rows_without_a_verdict_are_left_out_where_the_policy_says_so(
    dataset: Dataset, named: Mapping[str, str]
) -> None:
    found = eight_compared(dataset, named, "hhhhhhhh", "hhhemhhh", on_error=OnError.EXCLUDE)
    assert [row.id for row in found.lost] == ["parallel_0"]
    assert (found.left_out, found.rows, found.changed_rows) == (1, 7, 2)
    assert found.changes["overall"].difference == Fraction(-1, 7)
    assert "1 row left out: no verdict in one of the runs, or in both" in render_comparison(found)
    assert "1 row left out" in render_table([found, found])


def test_several_attempts_have_no_mcnemar_and_are_one_cluster_a_row(dataset: Dataset, named: Mapping[str, str]) -> None:
    a, b = "hm hm hm hm hm hm hm hm", "mm hh mh hm mm hh hh hh"
    found = eight_compared(dataset, named, a, b, k=2)
    assert found.p is None
    assert found.changes["overall"].difference == Fraction(2, 16)
    # Differences a row of irrelevance -1, 1, 0, 0, two values each: 4/3 * (1 + 1) / 64
    assert found.changes["irrelevance"].variance == Fraction(1, 24)
    # One that failed in the other attempt than before did not change.
    assert found.changed_rows == 6
    assert [row.id for row in found.lost] == ["irrelevance_0", "parallel_0"]
    assert "no p: McNemar's test takes one outcome a row" in render_comparison(found)
    assert "McNemar p" not in conclusion(found)


def test_a_row_of_which_only_some_attempts_have_a_verdict_stays_with_those(
    dataset: Dataset, named: Mapping[str, str]
) -> None:
    found = eight_compared(
        dataset, named, "em hh hh hh hh hh hh ee", "mh hh hh hh hh hh he hh", k=2, on_error=OnError.EXCLUDE
    )
    assert (found.rows, found.left_out) == (7, 1)
    assert found.changes["overall"].difference == Fraction(1, 12)  # 7 rows, of two of them one attempt


def test_where_any_hit_counts_a_row_counts_once(dataset: Dataset, named: Mapping[str, str]) -> None:
    def passing(letters: str) -> RunRecord:
        once = "".join("h" if "h" in word else "m" for word in letters.split())
        rows = dict(zip(IDS, letters.split(), strict=True))

        def with_attempts(payload: dict[str, Any]) -> None:
            for subset in payload["details"]["rows"]:
                tokens = [f"{name[-1]}:{rows[name]}" for name in IDS if name.startswith(subset)]
                payload["details"]["rows"][subset] = " ".join(tokens)

        return edited(eight(dataset, once, attempts={"k": 3, "strategy": "pass"}), with_attempts)

    found = compare(passing("mh h h h h h h mmm"), passing("h mmh h mmm h h h h"), named)
    assert found.p == 1
    assert found.changed_rows == 2
    assert [(row.id, row.after) for row in found.lost] == [("irrelevance_3", (MISS,))]


def test_attempts_that_cannot_be_put_side_by_side_are_refused_though_allowed(
    dataset: Dataset, named: Mapping[str, str]
) -> None:
    a, b = record(dataset), record(dataset, lambda entry: (HIT, MISS, HIT), k=3)
    with pytest.raises(CompareError, match=r"attempts is .* --allow attempts"):
        compare(a, b, named)
    with pytest.raises(CompareError, match="counts 1 times in shard-0 and 3 times in shard-0"):
        compare(a, b, named, allow=["attempts"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mode": "prompt"}, "mode is fc in shard-0 and prompt in shard-0; --allow mode compares them all the same"),
        (
            {"request": {"temperature": 1}},
            "request is {'temperature': 0, 'seed': 42} in shard-0 and {'temperature': 1} in shard-0; --allow request",
        ),
        ({"checker": "another"}, "and another in shard-0; --allow checker"),
        ({"draw_fingerprint": "draw-sha256:00"}, "and draw-sha256:00 in shard-0; --allow draw_fingerprint"),
        ({"on_error": OnError.EXCLUDE}, "on_error is fail in shard-0 and exclude in shard-0; --allow on_error"),
    ],
)
def test_another_question_is_refused_and_may_be_allowed(
    change: dict[str, Any], said: str, dataset: Dataset, named: Mapping[str, str]
) -> None:
    a, b = record(dataset), record(dataset, **change)
    with pytest.raises(CompareError, match="not the same question") as refused:
        compare(a, b, named)
    assert said in str(refused.value)
    allowed = compare(a, b, named, allow=list(change))
    assert allowed.notes[0].startswith(f"allowed to differ: {next(iter(change))} is ")
    assert allowed.notes[0] in render_comparison(allowed)
    assert allowed.notes[0] in render_table([allowed, allowed])
    with pytest.raises(CompareError, match="not the same question"):
        compare(a, b, named, allow=["official_errors"])


def test_of_two_error_policies_the_first_runs_counts_and_that_is_said(
    dataset: Dataset, named: Mapping[str, str]
) -> None:
    a, b = eight(dataset, "hhhhhhhh"), eight(dataset, "hhhhhhhe", on_error=OnError.EXCLUDE)
    failing, excluding = (compare(*pair, named, allow=["on_error"]) for pair in ((a, b), (b, a)))
    assert (len(failing.lost), failing.left_out) == (1, 0)
    assert (len(excluding.gained), excluding.left_out) == (0, 1)
    assert failing.notes[0].endswith("fail counts for both")
    assert excluding.notes[0].endswith("exclude counts for both")


def test_other_rows_lone_shards_and_results_without_rows_are_refused(
    dataset: Dataset, named: Mapping[str, str]
) -> None:
    whole, shard = record(dataset), record(dataset, shard=Shard(0, 2))
    with pytest.raises(CompareError, match="merge first"):
        compare(whole, shard, named)
    assert compare(shard, shard, named).rows < 192
    with pytest.raises(CompareError, match="rows are in one of the runs only"):
        compare(whole, record(dataset, spec=PRESETS["golden"]), named, allow=["draw_fingerprint"])
    bare = edited(whole, lambda payload: payload["details"].update(rows={}))
    with pytest.raises(CompareError, match=r"what came of each row \(details.rows\); `agentcompass-bfcl rescore RUN"):
        compare(whole, bare, named)
    cheat = edited(whole, lambda payload: payload["metrics"].update(overall_accuracy=99.0))
    with pytest.raises(CompareError, match="was it edited"):
        compare(whole, cheat, named)


def test_models_may_differ_and_how_the_question_was_put_is_noted(dataset: Dataset, named: Mapping[str, str]) -> None:
    versions = {"agentcompass": "1.0.2", "agentcompass-bfcl": "0.1.0"}
    other = record(dataset, model="other", base_url="x", harness="openai_chat", concurrency=8, versions=versions)
    found = compare(record(dataset), other, named)
    assert found.notes == (
        "harness: bfcl_chat, then openai_chat",
        "concurrency: 1, then 8",
        "version of agentcompass: 1.0.1, then 1.0.2",
    )
    assert compare(record(dataset), record(dataset, model="other", base_url="x"), named).notes == ()


HOSTILE = "\x1b[31m|<b>`x`" + "9" * 5000


def test_hostile_names_do_not_matter(dataset: Dataset, named: Mapping[str, str]) -> None:
    def renamed(payload: dict[str, Any]) -> None:
        rows = payload["details"]["rows"]
        rows["multiple"] = rows["multiple"].replace("0:", f"{HOSTILE}:", 1)

    a, b = (edited(record(dataset, play, model=HOSTILE), renamed) for play in (two_in_three, only("multiple_0")))
    found = compare(a, b, named)
    assert [row.id for row in found.lost] == [f"multiple_{HOSTILE}"]
    assert (
        found.changes["overall"].difference
        == compare(record(dataset), record(dataset, only("multiple_0")), named).changes["overall"].difference
    )
    assert {change.clustered_variance for change in found.changes.values()} == {None}
    assert found.notes[-1].startswith("no clustered errors: 1 ids are not in the pinned data set")
    for text in (render_comparison(found), render_comparison(found, markdown=True), render_table([found, found])):
        assert "\x1b" not in text
    assert r"\|&lt;b&gt;\`x\`" in render_comparison(found, markdown=True)
    assert json.loads(to_json(comparison_document([found])))["comparisons"][0]["lost"][0]["id"].endswith(HOSTILE)


def changed(entry: Entry) -> tuple[Outcome, ...]:
    if entry.row % 11 == 2:
        return (HIT,)
    return (ERROR,) if entry.row % 17 == 4 else two_in_three(entry)


def test_the_text_of_a_comparison_is_the_golden_file(dataset: Dataset, named: Mapping[str, str]) -> None:
    before, after = record(dataset, source="before"), record(dataset, changed, source="after", model="new-model")
    assert render_comparison(compare(before, after, named)) == (GOLDEN_FILES / "comparison.txt").read_text()


def test_the_text_shows_twenty_flips_each_way_or_all(dataset: Dataset, named: Mapping[str, str]) -> None:
    found = compare(record(dataset, lambda entry: (HIT,)), record(dataset, lambda entry: (MISS,)), named)
    assert render_comparison(found).count("hit -> miss") == 20
    assert "lost (192)" in render_comparison(found)
    assert "and 172 more; --all lists them" in render_comparison(found)
    assert render_comparison(found, every_flip=True).count("hit -> miss") == 192
    assert "Every row changed alike" in conclusion(found)
    assert "McNemar p < 0.0001" in conclusion(found)


@pytest.mark.parametrize(
    ("gained", "finding", "said"),
    [
        (
            4,
            Finding.DOUBTFUL,
            "A difference on overall is doubtful: +2.00 points, and interval and exact test disagree",
        ),
        (
            6,
            Finding.BETTER,
            "The second run is better than the first on overall by 3.00 points (95 % interval +0.63 to",
        ),
        (0, Finding.NOT_SHOWN, "No difference on overall is shown: 0.00 points"),
        (-6, Finding.WORSE, "The second run is worse than the first on overall by 3.00 points (95 % interval -5.37 to"),
    ],
)
def test_a_difference_is_shown_when_interval_and_exact_test_say_so(
    gained: int, finding: Finding, said: str, dataset: Dataset, named: Mapping[str, str]
) -> None:
    def first_rows_hit(count: int) -> RunRecord:
        spec = DrawSpec(subsets=("multiple",))
        return record(dataset, lambda entry: (HIT if entry.row < count else MISS,), spec=spec)

    found = compare(first_rows_hit(max(0, -gained)), first_rows_hit(max(0, gained)), named)
    assert found.finding is finding
    assert conclusion(found).startswith(said)


def test_what_is_undefined_is_a_dash_or_null_and_never_0(dataset: Dataset, named: Mapping[str, str]) -> None:
    one = DrawSpec(subsets=("multiple",), limit=1)
    found = compare(record(dataset, lambda _: (MISS,), spec=one), record(dataset, lambda _: (HIT,), spec=one), named)
    assert found.finding is Finding.UNDEFINED
    assert conclusion(found).startswith("Nothing can be concluded")
    text = render_comparison(found)
    assert ["overall", "+100.00", "-", "-", "-"] in [line.split() for line in text.splitlines()]
    assert "if the runs were of different rows: -" in text
    (comparison,) = comparison_document([found]).comparisons
    overall = comparison.changes["overall"]
    assert overall.difference == 100
    undefined = (
        overall.standard_error,
        overall.interval,
        overall.clustered_standard_error,
        overall.detectable_difference,
    )
    assert undefined == (None, None, None, None)
    assert comparison.unpaired_standard_error is None


def test_repeated_runs_tell_what_changes_by_itself(dataset: Dataset, named: Mapping[str, str]) -> None:
    first = record(dataset, source="first")
    again = record(dataset, only("multiple_0"), source="again")
    third = record(dataset, lambda entry: (HIT,) if entry.id == "multiple_2" else two_in_three(entry), source="third")
    spread = repeat_spread([first, again, third], named)
    assert (spread.runs, len(spread.pairs)) == (3, 3)
    # Two rows lie between the second and the third, and one between either and the first.
    assert (spread.between_any.changed_share, spread.between_any.overall) == (Fraction(2, 192), Fraction(2, 192))
    assert (spread.from_first.changed_share, spread.from_first.overall) == (Fraction(1, 192), Fraction(1, 192))
    worse = record(dataset, only("multiple_0", "multiple_1"), source="worse")
    tested = [compare(first, other, named) for other in (third, worse)]
    said = render_spread(spread, tested)
    assert said.startswith(
        "With nothing changed, 3 runs of one build differ in up to 1.04 % of the rows, overall by up to 1.04 points,"
        " normalized by up to 0.67 points.\n"
    )
    assert ["first,", "again", "-0.52", "0.52", "-0.33", "0.33", "0.52"] in [line.split() for line in said.splitlines()]
    assert (
        "third: overall differs from the first by 0.52 points, within that (0.52); normalized differs from the first by"
        " 0.33 points, within that (0.33); 0.52 % of the rows changed, no more than there (0.52)\n"
    ) in said
    assert "worse: overall differs from the first by 1.04 points, beyond that (0.52);" in said
    assert "1.04 % of the rows changed, more than there (0.52)\n" in said
    document = comparison_document(tested, spread)
    verdicts = [found.against_same_build for found in document.comparisons]
    assert [verdict and verdict.model_dump() for verdict in verdicts] == [
        {"overall_within": True, "normalized_within": True, "more_rows_changed": False},
        {"overall_within": False, "normalized_within": False, "more_rows_changed": True},
    ]
    assert SpreadDocument.model_validate_json(to_json(spread_document(spread))) == document.same_build
    with pytest.raises(CompareError, match="two runs at least"):
        repeat_spread([again], named)


def test_a_repeat_of_another_model_is_asked_about(dataset: Dataset, named: Mapping[str, str]) -> None:
    spread = repeat_spread([record(dataset), record(dataset, model="other")], named)
    assert "shard-0, shard-0: model: some-model, then other; is that one build?" in render_spread(spread)


def test_several_runs_are_a_line_each_against_the_first(dataset: Dataset, named: Mapping[str, str]) -> None:
    runs = [record(dataset, source="a"), record(dataset, changed, source="b"), record(dataset, source="c")]
    comparisons = [compare(runs[0], other, named) for other in runs[1:]]
    table = render_table(comparisons)
    assert [line.split()[0] for line in table.splitlines()[4:6]] == ["b", "c"]
    columns = ["overall", "normalized", "non_live", "live", "hallucination", "McNemar", "p", "flips"]
    assert table.splitlines()[2].split() == ["run", *columns]
    assert "-1.04 (2.64)" in table
    assert "+11 -13" in table
    assert "b: No difference on overall is shown: -1.04 points" in table
    assert "| run   |" in render_table(comparisons, markdown=True)
    assert [found.second.source for found in comparison_document(comparisons).comparisons] == ["b", "c"]


type Files = tuple[Path, Path]


@pytest.fixture
def files(dataset: Dataset, tmp_path: Path) -> Files:
    return written(record(dataset), tmp_path / "a.json"), written(record(dataset, changed), tmp_path / "b.json")


def test_the_command_gives_machines_everything(
    files: Files, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = files
    again = written(record(dataset), tmp_path / "again.json")
    assert main(["compare", str(a), str(b), str(again), "--same-build", str(again), "--json"]) == 0
    out = capsys.readouterr().out
    document = ComparisonDocument.model_validate_json(out)
    assert to_json(document) == out
    assert json.dumps(json.loads(out), indent=2, sort_keys=True, ensure_ascii=False) + "\n" == out
    assert document.schema_version == 1
    assert document.first.source == str(a)
    changed_one, same_one = document.comparisons
    assert len(changed_one.gained) == sum(found.gained for found in changed_one.subsets.values()) == 11
    assert (same_one.gained, same_one.lost, same_one.changed_rows) == ([], [], 0)
    assert document.same_build is not None
    assert document.same_build.changed_rows_percent == 0


def test_the_command_prints_text_tables_and_markdown(
    files: Files, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = map(str, files)
    assert main(["compare", a, b, "--all"]) == 0
    assert "lost (13)" in capsys.readouterr().out
    assert main(["compare", a, b, b]) == 0
    assert capsys.readouterr().out.startswith(f"changes against {a} in points")
    assert main(["compare", a, b, "--markdown", "--same-build", b]) == 0
    out = capsys.readouterr().out
    assert "| overall " in out
    assert "- first " in out
    assert "\n- irrelevance\\_2  miss -> hit\n" in out
    assert "With nothing changed, 2 runs of one build differ in up to 13.02 % of the rows" in out


def test_the_command_says_what_it_cannot_compare(
    files: Files, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = map(str, files)
    other = str(written(record(dataset, mode="prompt\x1b[31m"), tmp_path / "other.json"))
    assert main(["compare", a, other]) == 4
    said = capsys.readouterr().err
    assert said.startswith("agentcompass-bfcl: not the same question: mode is fc")
    assert "\x1b" not in said
    assert main(["compare", a, other, "--allow", "mode"]) == 0
    assert "allowed to differ: mode is fc" in capsys.readouterr().out
    assert main(["compare", a, b, "--allow", "colour"]) == 1
    assert "--allow colour: what must agree is draw_fingerprint, dataset" in capsys.readouterr().err
    assert main(["compare", a, b, "--same-build", f"{tmp_path}/./a.json"]) == 1
    assert "is there twice" in capsys.readouterr().err
    assert main(["compare", a, str(tmp_path / "missing.json")]) == 1
    for wrong in (["compare", a], ["compare", a, b, "--json", "--markdown"]):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ended.value.code == 2


def test_run_directories_and_their_rescored_results_are_compared_alike(
    lean: Finished, perfect: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(lean.run_dir), str(perfect.run_dir)]
    assert main(["compare", *runs]) == 4
    assert "--allow request" in capsys.readouterr().err
    assert main(["compare", *runs, "--allow", "request", "--json"]) == 0
    (found,) = ComparisonDocument.model_validate_json(capsys.readouterr().out).comparisons
    first, second = (run.result.metrics["overall_accuracy"] for run in (lean, perfect))
    assert found.changes["overall"].difference == pytest.approx(second - first, abs=0.011)
    assert found.finding is Finding.BETTER
    assert not found.lost
    assert main(["rescore", runs[0], "--json"]) == 0
    again = tmp_path / "again.json"
    again.write_text(capsys.readouterr().out)
    assert main(["compare", runs[0], str(again), "--json"]) == 0
    (same,) = ComparisonDocument.model_validate_json(capsys.readouterr().out).comparisons
    assert same.changed_rows == 0


@needs_recordings
def test_recorded_runs_flip_in_some_hundred_rows_and_pairing_makes_errors_smaller(
    tmp_path: Path, named: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    records = []
    for run in RUNS:
        assert main(["rescore", str(run_folder(run) / "result"), "--draw", "full", "--json"]) == 0
        file = tmp_path / f"{run}.json"
        file.write_text(capsys.readouterr().out)
        records.append(read_record(file))
    for first, second in combinations(records, 2):
        found = compare(first, second, named)
        flips = len(found.gained) + len(found.lost)
        assert 100 < flips < 400
        assert found.rows == 3625
        error = found.changes["overall"].standard_error
        assert error is not None
        assert found.unpaired_variance is not None
        assert error < 0.7 * sqrt(found.unpaired_variance)
        assert found.p is not None
        assert float(found.p) == pytest.approx(stats.binomtest(len(found.gained), flips, 0.5).pvalue, rel=1e-9)

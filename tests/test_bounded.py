from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.bounded import LARGEST_OUTPUT, Judge, can_run_away
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.reference import reference_calls
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict, score_output
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Language, subset_named
from agentcompass_bfcl.task import Mode
from agentcompass_bfcl.wheel import Wheel
from fresh_python import run_python
from runaways import LIMIT, RUNAWAYS, is_running, reference_output, row_with, slow_rows, with_argument


@pytest.fixture(scope="module")
def judge(dataset: Dataset, official: Official, wheel: Wheel) -> Iterator[Judge]:
    with Judge(official, wheel.path, limit_seconds=LIMIT) as judge:
        yield judge


BREAKERS = [
    ("Java many add", "simple_java", "ArrayList", "new ArrayList<>() {{" + "add(" * 20_000 + "}}"),
    ("Java many asList", "simple_java", "ArrayList", "new ArrayList<>(Arrays.asList(" * 10_000),
    ("Java many arrays", "simple_java", "Array", "new int[]{" * 20_000),
    ("Java HashMap of a megabyte", "simple_java", "HashMap", "new HashMap<>() {{" + 'put("a", 1);' * 80_000),
    ("Java digits", "simple_java", "integer", "9" * 5000),
    ("Java a megabyte of digits", "simple_java", "integer", "9" * 1_000_000),
    ("Java lone surrogates", "simple_java", "String", "\ud800" * 100_000),
    ("JavaScript pairs", "simple_javascript", "dict", "{a:" + ", " * 3000 + "}"),
    ("JavaScript commas", "simple_javascript", "dict", "{" + "a" * 3000 + "}"),
    ("JavaScript digits", "simple_javascript", "integer", "9" * 5000),
    ("JavaScript a megabyte", "simple_javascript", "any", "x" * 1_000_000),
]
PYTHON_BREAKERS = [
    ("an infinite float", "simple_python", "float", "1" + "0" * 309),
    ("a float written as 1e309", "simple_python", "float", "1e309"),
    ("digits", "simple_python", "integer", "9" * 4301),
    ("a megabyte of digits", "simple_python", "integer", "9" * 1_000_000),
    ("lone surrogates", "simple_python", "string", json.dumps("\ud800" * 100_000)),
    ("a megabyte of text", "simple_python", "string", json.dumps("x" * 1_000_000)),
    ("a list of half a million", "simple_python", "array", json.dumps([""] * 500_000)),
    ("nested lists", "simple_python", "array", "[" * 100_000 + "]" * 100_000),
    ("nested lists, not closed", "simple_python", "array", "[" * 100_000),
    ("nested objects", "simple_python", "dict", '{"a":' * 100_000 + "1" + "}" * 100_000),
    ("text in a parallel row", "parallel", "string", json.dumps("x" * 1_000_000)),
    ("ten megabytes of text", "live_simple", "string", json.dumps("x" * 10_000_000)),
]
KILLERS = [
    *((name, subset, kind, json.dumps(text)) for name, subset, kind, text in (*RUNAWAYS, *BREAKERS)),
    *PYTHON_BREAKERS,
]
HUGE_OUTPUTS: list[tuple[str, Any]] = [
    ("ten megabytes of text", "x" * 10_000_000),
    ("a million calls", [{"f": "{}"}] * 1_000_000),
    ("a million empty calls", [{}] * 1_000_000),
    ("a name of ten megabytes", [{"f" * 10_000_000: "{}"}]),
    ("arguments of 100 megabytes", [{"f": " " * 100_000_000}]),
    ("lone surrogates beyond the cap", [{"f": "\ud800" * 3_000_000}]),
]


CALL_OF_A_LIST = "[0]*499999"  # ten characters that are four megabytes
PROMPT_KILLERS = [
    ("minus signs", "simple_python", "[f(x=" + "-" * 100_000 + "1)]"),
    ("a long sum", "simple_python", "[f(x=" + "+".join(["1"] * 100_000) + ")]"),
    ("brackets", "simple_python", "[" * 100_000),
    ("brackets, closed", "simple_python", "[f(x=" + "[" * 100_000 + "]" * 100_000 + ")]"),
    ("nested calls", "simple_python", "f(x=" * 50_000 + ")" * 50_000),
    ("a power", "simple_python", "[f(x=9**9**9**9)]"),
    ("an exit", "simple_python", "[f(x=1+exit())]"),
    ("lists by multiplication", "irrelevance", f"[f({', '.join(f'a{i}={CALL_OF_A_LIST}' for i in range(400))})]"),
    ("ten megabytes of list", "parallel", "[f(x=[" + "1," * 5_000_000 + "])]"),
    ("lone surrogates", "simple_python", "[f(x='" + "\ud800" * 100_000 + "')]"),
    ("Java brackets", "simple_java", "[f(x=" + "(" * 100_000),
    ("Java blocks", "simple_java", "[" + "{" * 100_000 + "}" * 100_000 + "]"),
    ("Java HashMap and blanks", "simple_java", "[f(x=new HashMap<>() { " + " " * 400),
    ("JavaScript arrays", "simple_javascript", "[f(x=" + "[" * 100_000),
    ("JavaScript lone surrogates", "simple_javascript", "[f(x='" + "\ud800" * 1000 + "')]"),
]


def timed(judge: Judge, entry: Entry, output: Any, mode: Mode = Mode.FC) -> tuple[Verdict, float]:
    """Judge with the process already there: its start is not counted against an output."""
    warm = replace(entry, subset="simple_java")
    judge.verdict(warm, [{"f": json.dumps({"x": " " * 50})}])
    begin = time.monotonic()
    return judge.verdict(entry, output, mode), time.monotonic() - begin


@pytest.mark.parametrize(
    ("subset", "kind", "argument"), [case[1:] for case in KILLERS], ids=[case[0] for case in KILLERS]
)
def test_no_argument_holds_the_scorer_up_and_the_next_row_is_judged_right(
    subset: str, kind: str, argument: str, judge: Judge, dataset: Dataset
) -> None:
    entry, name = row_with(dataset, subset, kind)
    verdict, seconds = timed(judge, entry, with_argument(entry, name, argument))
    assert seconds < LIMIT + 1
    assert isinstance(verdict, Miss | Unscored)
    for row in (slow_rows(dataset)[0], entry):
        assert judge.verdict(row, reference_output(row)) == Hit()


@pytest.mark.parametrize(
    ("subset", "text"), [case[1:] for case in PROMPT_KILLERS], ids=[case[0] for case in PROMPT_KILLERS]
)
def test_no_text_holds_the_scorer_up_in_prompt_mode(subset: str, text: str, judge: Judge, dataset: Dataset) -> None:
    entry = dataset.rows[subset][0]
    verdict, seconds = timed(judge, entry, text, Mode.PROMPT)
    assert seconds < LIMIT + 1
    # Nothing but what upstream's rule would say without bounds: a call that is too large to decode is no abstention.
    assert isinstance(verdict, Unscored if CALL_OF_A_LIST in text else Miss | Unscored)
    assert judge.verdict(slow_rows(dataset)[0], reference_output(slow_rows(dataset)[0])) == Hit()


@pytest.mark.parametrize("subset", ["simple_python", "simple_java", "parallel", "irrelevance", "live_relevance"])
@pytest.mark.parametrize("output", [output for _, output in HUGE_OUTPUTS], ids=[name for name, _ in HUGE_OUTPUTS])
def test_no_huge_output_holds_the_scorer_up(subset: str, output: Any, judge: Judge, dataset: Dataset) -> None:
    entry = dataset.rows[subset][0]
    verdict, seconds = timed(judge, entry, output)
    assert seconds < LIMIT + 1
    assert isinstance(verdict, Hit | Miss | Unscored)
    assert judge.verdict(slow_rows(dataset)[0], reference_output(slow_rows(dataset)[0])) == Hit()


@pytest.mark.parametrize("case", RUNAWAYS, ids=[case[0] for case in RUNAWAYS])
def test_a_runaway_is_unscored_and_its_process_is_replaced(
    case: tuple[str, str, str, str], judge: Judge, dataset: Dataset
) -> None:
    _, subset, kind, source = case
    entry, name = row_with(dataset, subset, kind)
    slow = slow_rows(dataset)[0]
    judge.verdict(slow, reference_output(slow))
    first = judge.process_id
    assert first is not None
    assert judge.verdict(entry, with_argument(entry, name, json.dumps(source))) == Unscored(
        "time_limit", "no verdict within 1 s"
    )
    assert not is_running(first)
    assert judge.verdict(slow, reference_output(slow)) == Hit()
    assert judge.process_id not in (None, first)


def test_a_sequence_of_nothing_but_runaways_comes_to_its_end(
    dataset: Dataset, official: Official, wheel: Wheel
) -> None:
    begin = time.monotonic()
    with Judge(official, wheel.path, limit_seconds=0.2) as judge:
        for _, subset, kind, source in RUNAWAYS * 2:
            entry, name = row_with(dataset, subset, kind)
            verdict = judge.verdict(entry, with_argument(entry, name, json.dumps(source)))
            assert verdict == Unscored("time_limit", "no verdict within 0.2 s")
    assert time.monotonic() - begin < 2 * len(RUNAWAYS) * (0.2 + 2)


def test_the_overflow_of_a_float_is_the_checkers_own_and_needs_no_process(dataset: Dataset, judge: Judge) -> None:
    entry, name = row_with(dataset, "simple_python", "float")
    output = with_argument(entry, name, "1" + "0" * 309)
    assert not can_run_away(entry, output, Mode.FC)
    verdict = judge.verdict(entry, output)
    assert isinstance(verdict, Unscored)
    assert verdict.reason == "checker_raised"


@pytest.mark.parametrize("subset", SINGLE_TURN_SUBSETS)
def test_the_reference_answers_of_python_rows_stay_in_this_process(subset: str, dataset: Dataset) -> None:
    rows = dataset.rows[subset]
    away = [row for row in rows if can_run_away(row, reference_output(row), Mode.FC)]
    python = subset_named(subset).language is Language.PYTHON
    assert not away if python else 0 < len(away) < len(rows) / 4


@pytest.mark.parametrize(
    ("output", "python", "java"),
    [
        ("text of any length" * 1_000_000, False, False),
        ([], False, False),
        ({}, False, False),
        (None, False, False),
        ([1, {"f": "x" * 3000}], False, False),
        ([{"f": None}, {"f": "x" * 3000}], False, False),
        ([{"f": '{"x": 1}', "g": "x" * 3000}], False, False),
        ([{"f": "x" * 3000}, 1], True, True),
        ([{"f": "x" * 1990}], False, False),
        ([{"f" * 2000: "{}"}], True, True),
        ([{"": ""}] * 2001, True, True),
        ([{"f": "[" * 101}], True, True),
        ([{"f": "[" * 60}, {"f": "{" * 60}], True, True),
        ([{"f": json.dumps({"x": "y" * 40})}], False, False),
        ([{"f": json.dumps({"x": "y" * 41})}], False, True),
        ([{"f": json.dumps({"x": ["y" * 41]})}], False, False),  # no text: the checker rejects it unread
        ([{"f": json.dumps({"y" * 41: 1})}], False, False),
        ([{"f": "{}"}, {"f": json.dumps({"x": "y" * 41})}], False, True),
    ],
)
def test_size_nesting_and_source_text_decide_what_goes_to_the_process(
    output: Any, python: bool, java: bool, dataset: Dataset
) -> None:
    for subset, expected in (("parallel", python), ("simple_java", java), ("simple_javascript", java)):
        assert can_run_away(dataset.rows[subset][0], output, Mode.FC) is expected
    assert can_run_away(dataset.rows["parallel"][0], output, Mode.PROMPT)


def test_an_output_beyond_the_cap_or_too_deep_is_not_looked_at(judge: Judge, dataset: Dataset) -> None:
    entry = dataset.rows["simple_python"][0]
    begin = time.monotonic()
    verdict = judge.verdict(entry, [{"f": "x" * LARGEST_OUTPUT}])
    assert isinstance(verdict, Unscored)
    assert verdict.reason == "output_too_large"
    assert time.monotonic() - begin < LIMIT
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    verdict = judge.verdict(entry, [{"f": "x" * 3000, "g": deep}])
    assert isinstance(verdict, Unscored)
    assert verdict.reason == "output_too_large"
    assert isinstance(judge.verdict(entry, deep), Miss)


SOURCE_TOKENS = {
    ("simple_javascript", "array"): ["[[", "],[", "[", "]", ",", " ", "1", "\t", "new Array(", ")", "[],", "\n"],
    ("simple_javascript", "dict"): ["{", "}", ":", ",", " ", "a:", "{a:[[", "],[", "[]", "]}", ", b", "\n"],
    ("simple_java", "HashMap"): ["new HashMap<", ">(){", "<>()", "{", "}", " ", "\n", 'put("', '",', ")", "new "],
    ("simple_java", "ArrayList"): ["new ArrayList<>", "(){{", "(Arrays.asList(", " ", "}", "add(", ")", "\n", ","],
    ("simple_java", "Array"): ["new int[]{", "}", " ", ",", "1", "new ", "[]", "{", "9" * 30],
}
# The worst texts of 40 characters that a search of several minutes found for each converter.
WORST_SOURCES = [
    ("simple_javascript", "array", "[[],[],[],[],[],[[],[],[],[],[],[],[],[]"),
    ("simple_javascript", "array", "[[],[],[],[],[],[],[],[],[],[],[],[],],["),
    ("simple_javascript", "dict", "{a:[[][[],[],[],[[],[],[],[],[],[],[],]}"),
    ("simple_java", "HashMap", "new HashMap<>(){" + " " * 24),
    ("simple_java", "ArrayList", "new ArrayList<>(){{" + " " * 21),
    ("simple_java", "Array", "netne1ietnew int[]{n[]new []{n[]new int["),
]


def processor_seconds_here(entry: Entry, kind: str, source: str, official: Official) -> float:
    """Judge in this process with the text as every argument of a type, and return what it cost."""
    properties = entry.functions()[0]["parameters"]["properties"]
    ((tool, arguments),) = reference_calls(entry)
    given_names = json.loads(arguments)
    changed = {name: source if properties[name]["type"] == kind else value for name, value in given_names.items()}
    output = [{tool: json.dumps(changed)}]
    assert not can_run_away(entry, output, Mode.FC)
    begin = time.thread_time()
    score_output(entry, output, official)
    return time.thread_time() - begin


@pytest.mark.parametrize(("subset", "kind", "source"), WORST_SOURCES)
def test_the_worst_known_source_texts_that_stay_here_are_judged_in_no_time(
    subset: str, kind: str, source: str, dataset: Dataset, official: Official
) -> None:
    assert len(source) == 40
    entry, _ = row_with(dataset, subset, kind)
    assert processor_seconds_here(entry, kind, source, official) < 0.1


@pytest.mark.parametrize(("subset", "kind"), SOURCE_TOKENS)
@given(data=st.data())
def test_any_source_text_that_stays_here_is_judged_in_no_time(
    subset: str, kind: str, data: st.DataObject, dataset: Dataset, official: Official
) -> None:
    entry, _ = row_with(dataset, subset, kind)
    tokens = SOURCE_TOKENS[subset, kind]
    head, *runs = data.draw(
        st.lists(st.tuples(st.sampled_from(tokens), st.integers(1, 30)), min_size=1, max_size=8), label="runs"
    )
    source = (head[0] + "".join(token * times for token, times in runs))[:40]
    assert processor_seconds_here(entry, kind, source, official) < 0.1


def test_the_longest_list_that_stays_here_is_judged_in_no_time(dataset: Dataset, official: Official) -> None:
    entry = dataset.entry("multiple_23")  # 18 accepted lists for one parameter, the most of any row
    ((_, arguments),) = reference_calls(entry)
    names = [name for name, value in json.loads(arguments).items() if isinstance(value, list)]
    items = '"",' * 600 + "[]"
    output = with_argument(entry, names[0], f"[{items}]")
    assert not can_run_away(entry, output, Mode.FC)
    begin = time.thread_time()
    assert isinstance(score_output(entry, output, official), Miss)
    assert time.thread_time() - begin < 0.1


CAMPAIGN = """
import os, sys
sys.path.insert(0, sys.argv[1])
import fuzz_verdicts as fuzz
"""
BENCHMARKS = str(Path(__file__).parents[1] / "benchmarks")


def test_a_short_campaign_of_odd_outputs_finds_no_escape_no_delay_and_no_difference(tmp_path: Path) -> None:
    rest = "print(findings := fuzz.campaign(2000, 'short', 0.5)); print(findings.clean)"
    printed = run_python(CAMPAIGN + rest, BENCHMARKS, cwd=tmp_path)
    assert printed.endswith("True\n"), printed
    assert not list(tmp_path.iterdir())


def test_a_campaign_notices_a_difference_and_a_delay(tmp_path: Path) -> None:
    rest = """
fuzz.HERE_SECONDS = 0.0
fuzz.OfficialJudge.verdict = lambda *arguments, here: "hit"
findings = fuzz.campaign(100, "wrong", 0.5)
print(len(findings.differences) > 10, len(findings.late) > 10, findings.clean)
"""
    assert run_python(CAMPAIGN + rest, BENCHMARKS, cwd=tmp_path) == "True True False\n"


def test_a_campaign_notices_what_reaches_out_of_official_code(tmp_path: Path) -> None:
    rest = """
watch = fuzz.Watch()
open("before", "w").close()
watch.on = True
open(os.devnull).close()
open("while", "w").close()
os.environ["A"] = "y"
os.system("true")
exec("1")
watch.on = False
exec("1")
print(sorted(watch.events.items()), fuzz.Findings(events=watch.events).clean)
"""
    expected = "[('exec', 1), ('open for writing', 1), ('os.putenv', 1), ('os.system', 1)] False\n"
    assert run_python(CAMPAIGN + rest, BENCHMARKS, cwd=tmp_path) == expected

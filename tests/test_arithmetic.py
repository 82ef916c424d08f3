from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.arithmetic import evaluate_literals
from fresh_python import run_python

LITERALS = st.one_of(
    st.integers(-20, 20).map(repr),
    st.sampled_from(["True", "False", "None", "0.0", "1.5", "-2.5e3", "1e308", "2j", "'a'", "'xy'", "b'z'", "()"]),
)
BINARY = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "|", "^", "&"])
UNARY = st.sampled_from(["+", "-", "~", "not "])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, BINARY, inner),
        st.builds("({}{})".format, UNARY, inner),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, max_size=3).map(lambda items: f"({', '.join([*items, ''])})" if items else "()"),
        st.lists(inner, min_size=1, max_size=2).map(lambda items: f"{{{', '.join(items)}}}"),
        st.lists(st.tuples(inner, inner), max_size=2).map(
            lambda pairs: f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"
        ),
    )


EXPRESSIONS = st.recursive(LITERALS, _larger, max_leaves=8)
REFUSED_BY_RULE = ("too large to be an answer", "string formatting")
# What evaluating the expressions above raises in Python.
ARITHMETIC_ERRORS = (TypeError, ValueError, ArithmeticError, MemoryError)


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")  # of ~True, by Python itself
@given(source=EXPRESSIONS)
def test_results_and_errors_are_pythons_own(source: str) -> None:
    try:
        result = evaluate_literals(source)
    except ARITHMETIC_ERRORS as error:
        if str(error).endswith(REFUSED_BY_RULE[0]) or str(error).startswith(REFUSED_BY_RULE[1]):
            return
        with pytest.raises(type(error)):
            eval(source)  # noqa: S307  # generated above from literals and operators, and not a giant
    else:
        expected = eval(source)  # noqa: S307  # as above
        assert type(result) is type(expected)
        assert repr(result) == repr(expected)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("1 + 2 * 3", 7),
        ("60 * 60 * 24", 86400),
        ("7 / 2", 3.5),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("2 ** 10", 1024),
        ("2 ** -1", 0.5),
        ("1 << 4 | 1", 17),
        ("~5", -6),
        ("not 0", True),
        ("'ab' * 3", "ababab"),
        ("[1] * 2 + [3 - 1]", [1, 1, 2]),
        ("[[0] * 3] * 2", [[0, 0, 0], [0, 0, 0]]),
        ("{'a': 1 + 1}", {"a": 2}),
        ("(1, 2) + (3,)", (1, 2, 3)),
        ("{1, 1 + 1}", {1, 2}),
        ("2 ** 30000 >> 29999", 2),
    ],
)
def test_arithmetic_on_literals_is_computed(source: str, result: object) -> None:
    assert evaluate_literals(source) == result


@pytest.mark.parametrize(
    "source",
    [
        "x",
        "x + 1",
        "__import__('os')",
        "abs(-1)",
        "(1).real",
        "'a'.upper() + ''",
        "lambda: 1",
        "[i for i in [1]]",
        "{i for i in [1]}",
        "{i: i for i in [1]}",
        "(i for i in [1])",
        "[1, 2][0]",
        "'abc'[0:1]",
        "1 if True else 2",
        "1 < 2",
        "True and False",
        "(x := 1)",
        "f'{1}'",
        "[*[1]]",
        "{**{}}",
        "await x",
        "1 @ 2",
    ],
)
def test_anything_but_literals_and_operators_is_refused(source: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        evaluate_literals(source)


@pytest.mark.parametrize("source", ["", "1 +", "import os", "x = 1", "1; 2", "(", "\x00"])
def test_what_is_no_expression_is_refused(source: str) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        evaluate_literals(source)


@pytest.mark.parametrize(
    "source",
    [
        "9 ** 9 ** 9",
        "9 ** 9 ** 9 ** 9",
        "(-2) ** 10 ** 9",
        "1 << 10 ** 9",
        "(1 << 60000) * (1 << 60000)",
        "'a' * 10 ** 12",
        "10 ** 12 * b'a'",
        "[0] * 10 ** 10",
        "(0,) * 10 ** 10",
        "('a' * 1000) * 1000 * 1000",
        "[[[0] * 1000] * 1000] * 1000",
        "['a' * 100_000] * 100_000",
        "'%999999999d' % 1",
        "b'%999999999d' % 1",
        "'%*d' % (999999999, 1)",
    ],
)
def test_giants_are_refused_at_once(source: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ValueError, match=r"too large to be an answer|string formatting is not arithmetic"):
        evaluate_literals(source)
    assert time.monotonic() - begun < 2


NEST_DEEPLY = """
import json
from agentcompass_bfcl.arithmetic import evaluate_literals

n = 100_000
sources = {
    "parentheses": "(" * n + "1" + ")" * n,
    "open parentheses": "(" * n,
    "brackets": "[" * n + "]" * n,
    "minus signs": "-" * n + "1",
    "inversions": "~" * n + "1",
    "negations": "not " * n + "1",
    "powers": "1**" * n + "1",
    "sums": "1+" * n + "1",
    "dictionaries": "{1:" * n + "1" + "}" * n,
    "2,000 minus signs": "-" * 2000 + "1",
    "5,000 sums": "1+" * 5000 + "1",
}
outcomes = {}
for name, source in sources.items():
    try:
        evaluate_literals(source)
        outcomes[name] = "computed"
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        outcomes[name] = "refused"
print(json.dumps(outcomes))
"""


def test_deep_nesting_is_refused_and_never_brings_the_interpreter_down(tmp_path: Path) -> None:
    outcomes = json.loads(run_python(NEST_DEEPLY, cwd=tmp_path))
    assert len(outcomes) == 11
    assert set(outcomes.values()) == {"refused"}, outcomes

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentcompass_bfcl import release
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import CheckerError, DatasetError
from agentcompass_bfcl.official import Official, checker_identity, decode_function_calls, load_official
from agentcompass_bfcl.subsets import Language
from agentcompass_bfcl.wheel import Wheel, open_wheel
from fresh_python import run_python

if TYPE_CHECKING:
    from conftest import Doctor

LOAD_AND_LOOK = """
import json, os, sys
from pathlib import Path
import agentcompass_bfcl
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.official import load_official
from agentcompass_bfcl.response import Silence
from agentcompass_bfcl.score import score_sample
from agentcompass_bfcl.task import chat_request
from agentcompass_bfcl.wheel import open_wheel

def look():
    folders = [Path.cwd(), Path(agentcompass_bfcl.__file__).parent, Path(sys.argv[1]).parent]
    return {
        "files": sorted(str(path) for folder in folders for path in folder.rglob("*")),
        "path": sys.path[:],
        "meta_path": [repr(finder) for finder in sys.meta_path],
        "environ": dict(os.environ),
    }

wheel = open_wheel(Path(sys.argv[1]))
dataset = read_dataset(wheel)
before = look()
official = load_official(wheel)
for subset in dataset.rows:
    entry = dataset.rows[subset][0]
    chat_request(entry, official)
    score_sample(entry, Silence(), official)
foreign = [name for name in sys.modules if name.split(".")[0] in ("bfcl_eval", "filelock", "tenacity", "tree_sitter")]
print(json.dumps({"same": look() == before, "foreign": foreign, "cwd": os.listdir()}))
"""


def test_loading_leaves_no_trace_in_the_interpreter_or_on_disk(wheel: Wheel, tmp_path: Path) -> None:
    seen = json.loads(run_python(LOAD_AND_LOOK, str(wheel.path), cwd=tmp_path))
    assert seen == {"same": True, "foreign": [], "cwd": []}


def resolved(official: Official, source: str) -> Any:
    """Decode a call written in Python, as upstream does with what a model wrote."""
    return official._handler.resolve_ast_by_type(ast.parse(source, mode="eval").body)


# Upstream asks for ast.NameConstant, which Python 3.12 warns of.
upstream_is_dated = pytest.mark.filterwarnings("ignore:ast.NameConstant is deprecated:DeprecationWarning")


@upstream_is_dated
@pytest.mark.parametrize(
    "source",
    [
        "f(x=__import__('os').getpid() + 0)",
        "f(x=__import__('os').environ.setdefault('BFCL_TEST_TRACE', 'y') + '')",
        "f(x=1 + exit())",
        "f(x=open('trace', 'w').write('y') + 1)",
        "f(x=[1, __import__('os').getpid() + 0])",
        "f(x={'a': (lambda: 1)() + 1})",
    ],
)
def test_official_code_evaluates_no_code_a_model_wrote(
    source: str, official: Official, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is not arithmetic on literals"):
        resolved(official, source)
    assert "BFCL_TEST_TRACE" not in os.environ
    assert list(tmp_path.iterdir()) == []


@upstream_is_dated
@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("f(x=1 + 2 * 3)", {"x": 7}),
        ("f(x=7 / 2, y=7 // 2)", {"x": 3.5, "y": 3}),
        ("f(x='a' + 'b')", {"x": "ab"}),
        ("f(x=[60 * 60, 2 ** 10])", {"x": [3600, 1024]}),
        ("f(x=-5, y='plain')", {"x": -5, "y": "plain"}),
    ],
)
def test_official_code_still_computes_arithmetic(source: str, arguments: dict[str, Any], official: Official) -> None:
    assert resolved(official, source) == {"f": arguments}


def test_official_code_cannot_open_files(official: Official, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"id": 1}\n')
    with pytest.raises(NameError, match="open"):
        official._utils.load_file(str(path), use_lock=False)


def test_each_loading_gives_modules_of_its_own(wheel: Wheel, official: Official) -> None:
    assert load_official(wheel)._checker is not official._checker


@pytest.mark.parametrize(
    "module", ["socket", "subprocess", "agentcompass_bfcl", "bfcl_eval.constants.supported_models"]
)
def test_a_release_whose_code_wants_more_modules_is_refused(module: str, doctor: Doctor) -> None:
    path = doctor({"constants/enums.py": lambda content: f"import {module}\n".encode() + content}, pin_files=True)
    with pytest.raises(CheckerError, match=f"wants the module '{module}', which it should not need"):
        load_official(open_wheel(path))


def test_code_that_is_not_the_pinned_code_is_never_run(doctor: Doctor) -> None:
    path = doctor({"constants/enums.py": lambda content: content + b"\nraise SystemExit\n"}, pin_files=False)
    with pytest.raises(DatasetError, match=r"constants/enums\.py was altered"):
        load_official(open_wheel(path))


def test_the_checker_is_identified_by_release_and_content() -> None:
    assert checker_identity() == (
        f"bfcl-eval==2026.3.23;ast_checker-sha256:{release.FILE_SHA256['eval_checker/ast_eval/ast_checker.py']}"
    )


@pytest.mark.parametrize(
    ("decoded", "is_list", "holds_none"),
    [
        ([], True, True),
        ([{"f": {}}], True, False),
        ([{"f": {"x": 1}}, {"g": {}}], True, False),
        ([{"f": None}], False, True),
        ([{"f": [1]}], False, True),
        ([{"f": "{}"}], False, True),
        ([{"f": {}, "g": {}}], False, True),
        ([{}], False, True),
        ("f()", False, True),
        (None, False, True),
    ],
)
def test_what_counts_as_a_list_of_calls_and_as_no_call(
    decoded: Any, is_list: bool, holds_none: bool, official: Official
) -> None:
    assert official.is_call_list(decoded) is is_list
    assert official.holds_no_call(decoded) is holds_none


@pytest.mark.parametrize(
    ("name", "dots_became_underscores", "valid"),
    [
        ("math_factorial", True, True),
        ("math.factorial", True, False),
        ("math_factorial", False, False),
        ("math.factorial", False, True),
    ],
)
def test_a_name_with_dots_must_be_written_as_the_model_was_shown_it(
    name: str, dots_became_underscores: bool, valid: bool, dataset: Dataset, official: Official
) -> None:
    entry = next(row for row in dataset.rows["simple_python"] if row.functions()[0]["name"] == "math.factorial")
    verdict = official.check_calls(
        entry.functions(),
        [{name: {"number": 5}}],
        [{"math.factorial": {"number": [5]}}],
        Language.PYTHON,
        "simple_python",
        dots_became_underscores=dots_became_underscores,
    )
    assert verdict["valid"] is valid


@pytest.mark.parametrize(
    ("output", "decoded"),
    [
        ([], []),
        ("", []),
        ({}, []),
        ([{"f": "{}"}], [{"f": {}}]),
        ([{"f": ' {"x": 1, "x": 2} '}], [{"f": {"x": 2}}]),
        ([{"f": "null"}, {"g": "[1]"}], [{"f": None}, {"g": [1]}]),
        ([{"f": "{}", "g": "not JSON"}], [{"f": {}}]),
    ],
)
def test_the_first_key_of_each_call_is_decoded(output: Any, decoded: Any) -> None:
    assert decode_function_calls(output) == decoded


@pytest.mark.parametrize(
    "output", ["text", None, 3, [None], [{}], [{"f": ""}], [{"f": {"x": 1}}], [{"f": None}], ["f"], {"f": "{}"}]
)
def test_anything_else_cannot_be_decoded(output: Any) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError, LookupError)):
        decode_function_calls(output)


def test_arguments_nested_too_deep_cannot_be_decoded() -> None:
    with pytest.raises(RecursionError):
        decode_function_calls([{"f": "[" * 100_000}])

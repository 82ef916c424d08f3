from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentcompass_bfcl.errors import BfclError, CheckerError, ConfigError
from agentcompass_bfcl.official import Official, load_official
from agentcompass_bfcl.parsers import INSTALL_HINT, installed_version, load_parser_modules, require_prompt_parsers
from agentcompass_bfcl.stand_ins import ast_module, tree_sitter_modules
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Language, subset_named
from agentcompass_bfcl.wheel import Wheel, open_wheel
from conftest import Doctor
from fresh_python import run_python
from prompt_extra import needs_parsers

JAVA, JAVASCRIPT = Language.JAVA, Language.JAVASCRIPT
PYTHON_SUBSETS = [name for name in SINGLE_TURN_SUBSETS if subset_named(name).language is Language.PYTHON]
FITTING = {"tree-sitter": "0.25.2", "tree-sitter-java": "0.21.0", "tree-sitter-javascript": "0.21.4"}


def installed(**changes: str | None) -> Callable[[str], str | None]:
    """Describe an installation that fits but for the changes; underscores stand for hyphens."""
    versions: Mapping[str, str | None] = FITTING | {name.replace("_", "-"): found for name, found in changes.items()}
    return lambda distribution: versions[distribution]


def test_python_rows_need_nothing() -> None:
    require_prompt_parsers(PYTHON_SUBSETS, installed(tree_sitter=None, tree_sitter_java=None))


@pytest.mark.parametrize(
    ("subsets", "named"),
    [
        (["simple_java"], "rows of simple_java needs"),
        (["multiple", "simple_javascript", "simple_javascript"], "rows of simple_javascript needs"),
        (["simple_java", "simple_javascript", "simple_java"], "rows of simple_java and simple_javascript needs"),
    ],
)
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tree_sitter": None}, "the package tree-sitter, which is not installed"),
        ({"tree_sitter_java": None}, "the package tree-sitter-java, which is not installed"),
        ({"tree_sitter_javascript": None}, "the package tree-sitter-javascript, which is not installed"),
        ({"tree_sitter_java": "0.23.5"}, "tree-sitter-java 0.21.0, and 0.23.5 is installed"),
        ({"tree_sitter_javascript": "0.21.40"}, "tree-sitter-javascript 0.21.4, and 0.21.40 is installed"),
        ({"tree_sitter": "0.21.3"}, "tree-sitter 0.25 or 0.26, and 0.21.3 is installed"),
        ({"tree_sitter": "0.250.0"}, "tree-sitter 0.25 or 0.26, and 0.250.0 is installed"),
    ],
)
def test_other_rows_are_refused_without_the_parsers_in_their_versions_and_told_how_to_get_them(
    subsets: list[str], named: str, changes: dict[str, str | None], fault: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        require_prompt_parsers(subsets, installed(**changes))
    message = str(refusal.value)
    assert named in message
    assert fault in message
    assert message.endswith("pip install 'agentcompass-bfcl[prompt]'")
    assert "\n" not in message


@needs_parsers
def test_what_the_extra_installs_is_what_is_asked_for() -> None:
    require_prompt_parsers(SINGLE_TURN_SUBSETS)
    assert {name: installed_version(name) for name in FITTING} == FITTING | {
        "tree-sitter": installed_version("tree-sitter")
    }


def test_a_distribution_that_is_not_there_has_no_version() -> None:
    assert installed_version("no-such-distribution-of-ours") is None


WITHOUT = """
import sys
from pathlib import Path
sys.modules[sys.argv[2]] = None  # an import of it fails, though pip knows the package
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.official import load_official
from agentcompass_bfcl.parsers import require_prompt_parsers
from agentcompass_bfcl.score import Hit, score_output
from agentcompass_bfcl.task import Mode
from agentcompass_bfcl.wheel import open_wheel

wheel = open_wheel(Path(sys.argv[1]))
dataset, official = read_dataset(wheel), load_official(wheel)

def refused(call, *arguments):
    try:
        return call(*arguments)
    except ConfigError as error:
        return str(error)

python, java = dataset.rows["simple_python"][1], dataset.rows["simple_java"][0]
print(score_output(python, "[math.factorial(number=5)]", official, Mode.PROMPT) == Hit())
print(refused(require_prompt_parsers, ["simple_java"]))
for _ in range(2):
    print(refused(score_output, java, "[f()]", official, Mode.PROMPT))
"""


@pytest.mark.parametrize("module", ["tree_sitter", "tree_sitter_java", "tree_sitter_javascript"])
def test_without_the_parsers_python_is_scored_and_nothing_else_is_taken_for_a_wrong_answer(
    module: str, wheel: Wheel, tmp_path: Path
) -> None:
    printed = run_python(WITHOUT, str(wheel.path), module, cwd=tmp_path).splitlines()
    assert printed[0] == "True"
    assert len(printed) == 4
    assert all(line.startswith("prompt mode with ") and line.endswith(INSTALL_HINT) for line in printed[1:])


@needs_parsers
@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ('[a.B.c(x="1", y=2)]', [{"a.B.c": {"x": "1", "y": "2"}}]),
        ('f(x=\'a"b\', y="c")', [{"f": {"x": 'a"b', "y": "c"}}]),
        ("[f(x=new int[]{1, 2}, y=new Foo(1, g()))]", [{"f": {"x": "new int[]{1,2}", "y": "new Foo(1, g())"}}]),
        ('[f(x=new A<B>() {{ put("a", 1); }})]', [{"f": {"x": "new A<B>()"}}]),  # the body is lost
        ("[f(true, x=1, y)]", [{"f": {"x": "1", None: "y"}}]),
        ("[hello;]", {}),
        ("[f(x=1);]", [{"f": {"x": "1"}}]),
        ("[f(x=1); g(y=2)]", [{"f": {"x": "1"}}]),
        # Upstream cuts a str by byte offsets, so that everything behind a letter of two bytes is off by one.
        ('[f(x="é", y="ab")]', [{"f": {"x": 'é"', "=": 'b"'}}]),
        ('[f(x="日本", name="ab", flag=true)]', [{"f": {"x": '日本", n', '="ab': " f", "=tru": ")"}}]),
    ],
)
def test_java_is_decoded_as_upstream_does(text: str, decoded: Any, official: Official) -> None:
    assert official.decode_prompt(text, JAVA) == decoded


@needs_parsers
@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ('[a.b.c(x="1", y=2)]', [{"a.b.c": {"x": "1", "y": "2"}}]),
        ("[f(x='é', y=[1, {a: 2}])]", [{"f": {"x": "é", "y": "[1, {a: 2}]"}}]),
        ("[f(x=function (e) { return e; }, true)]", [{"f": {"x": "function (e) { return e; }", None: "true"}}]),
        ("[hello]", None),
        ("[f(x=1), g(y=2)]", None),  # a sequence of two calls is no call
        ("[f(x=1); g(y=2)]", [{"f": {"x": "1"}}]),
        ("hello", None),
    ],
)
def test_javascript_is_decoded_as_upstream_does(text: str, decoded: Any, official: Official) -> None:
    assert official.decode_prompt(text, JAVASCRIPT) == decoded


@needs_parsers
@pytest.mark.parametrize("language", [JAVA, JAVASCRIPT])
@pytest.mark.parametrize(
    "text", ["[f(x=1))]", "[f(x=1", "[f(x=1000, x=2000)]", "There is no function for that.", "[f(x=)]", "[f(x='a]"]
)
def test_text_that_is_no_call_cannot_be_decoded(text: str, language: Language, official: Official) -> None:
    with pytest.raises(Exception, match=r"Error parsing java|Error js parsing|Multiple arguments") as failure:
        official.decode_prompt(text, language)
    assert not isinstance(failure.value, BfclError)


DEEP = """
import sys
from pathlib import Path
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.official import load_official
from agentcompass_bfcl.score import Miss, score_output
from agentcompass_bfcl.task import Mode
from agentcompass_bfcl.wheel import open_wheel

wheel, depth = open_wheel(Path(sys.argv[1])), int(sys.argv[3])
entry = read_dataset(wheel).rows[sys.argv[2]][0]
official = load_official(wheel)
for head, opening, middle, closing in (
    ("f(x=", "(", "1", ")"), ("f(x=", "[", "", "]"), ("f(x=", "{", "", "}"), ("", "f(", "", ")"),
    ("f(x=", "-", "1", ""), ("f(x=a", ".b", "", ""), ("f(x=1", "+1", "", ""), ("f(x=a", "()", "", ""),
    ("f(x=", "not ", "1", ""), ("f(x=", "new A(", "", ")"), ("", "a.", "f(x=1", ""), ("f(x=", "f'{", "1", "}'"),
):
    body = head + opening * depth + middle
    for text in (body, body + closing * depth + ")"):
        verdict = score_output(entry, text, official, Mode.PROMPT)
        assert isinstance(verdict, Miss), text[:40]
print("alive")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "subset",
    [
        "simple_python",
        pytest.param("simple_java", marks=needs_parsers),
        pytest.param("simple_javascript", marks=needs_parsers),
    ],
)
def test_text_nested_however_deep_is_a_miss_and_never_the_end_of_the_interpreter(
    subset: str, wheel: Wheel, tmp_path: Path
) -> None:
    for depth in ("1000", "50000"):
        assert run_python(DEEP, str(wheel.path), subset, depth, cwd=tmp_path, seconds=120) == "alive\n"


@needs_parsers
@pytest.mark.parametrize(
    ("grammar", "text", "has_errors"),
    [
        ("tree_sitter_java", b"f(x=1, y=2)", False),  # a semicolon is missing, which is no error
        ("tree_sitter_java", b"f(x=1, y=2))", True),
        ("tree_sitter_java", b"", False),
        ("tree_sitter_javascript", b"f(x='ERROR')", False),
        ("tree_sitter_javascript", b"f(x=1))", True),
        ("tree_sitter_javascript", b"f(x=(((", True),
    ],
)
def test_the_stand_in_says_error_exactly_where_the_library_writes_one(
    grammar: str, text: bytes, has_errors: bool
) -> None:
    modules = tree_sitter_modules((grammar,))
    library = modules["tree_sitter"]
    parser = library.Parser()
    parser.set_language(library.Language(modules[grammar].language(), "any name"))
    root = parser.parse(text).root_node
    assert ("ERROR" in root.sexp()) is has_errors
    assert ("ERROR" in str(root.walk().node)) is has_errors  # the library's own node writes out its tree


@needs_parsers
def test_a_short_java_call_is_an_error_without_its_semicolon_as_upstream(official: Official) -> None:
    # The parser may insert the semicolon or drop what it read; for so little text it prefers the latter.
    with pytest.raises(SyntaxError, match="Error parsing java"):
        official.decode_prompt("[f(x=1)]", JAVA)
    assert official.decode_prompt("[f(x=1, y=2)]", JAVA) == [{"f": {"x": "1", "y": "2"}}]


@needs_parsers
def test_official_code_still_cannot_import_anything_else(doctor: Doctor) -> None:
    parser = "model_handler/parser/java_parser.py"
    path = doctor({parser: lambda content: content + b"\nimport socket\n"}, pin_files=True)
    official = load_official(open_wheel(path))
    with pytest.raises(CheckerError, match="wants the module 'socket', which it should not need"):
        official.decode_prompt("[f()]", JAVA)
    assert official.decode_prompt("[f()]", JAVASCRIPT) == [{"f": {}}]


@needs_parsers
def test_the_stand_ins_are_for_official_code_alone() -> None:
    modules = load_parser_modules("a test")
    assert set(modules) == {"tree_sitter", "tree_sitter_java", "tree_sitter_javascript"}
    assert not any(modules[name] is sys.modules[name] for name in modules)
    assert not hasattr(sys.modules["tree_sitter"].Parser, "set_language")


def test_the_ast_of_official_code_has_the_old_names_and_parses_in_silence() -> None:
    old = ast_module()
    node = old.parse(r"'\d'", mode="eval").body  # Python warns of \d, and warnings are errors in these tests
    assert isinstance(node, old.Constant)
    assert not isinstance(node, old.NameConstant)
    assert not isinstance(node, old.Ellipsis)

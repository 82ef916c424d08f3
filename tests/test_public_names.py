"""The names other programs import: all there, the same in whatever order things are imported, and cheap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import agentcompass_bfcl
from fresh_python import run_python

PUBLIC = [
    *("SINGLE_TURN_SUBSETS", "CATEGORIES", "NON_LIVE", "LIVE", "HALLUCINATION", "SIMPLE_AST", "MINI_SAMPLES"),
    *("PRESETS", "DrawSpec", "category_of", "reference_subset_totals", "plan", "total", "fingerprint"),
    *("Shard", "shard_owns", "shard_take", "shard_plan"),
    *("Tally", "union", "tallies_from_metrics", "aggregate", "Aggregate", "score_sample", "Verdict"),
    *("attempt_payload", "MetricResult", "register"),
]
FROM_THE_HOST = ["MetricResult", "register"]


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in FROM_THE_HOST])
def test_every_public_name_is_there_and_announced(name: str) -> None:
    assert getattr(agentcompass_bfcl, name) is not None
    assert name in agentcompass_bfcl.__all__
    assert name in dir(agentcompass_bfcl)


def test_every_announced_name_exists_once() -> None:
    assert len(set(agentcompass_bfcl.__all__)) == len(agentcompass_bfcl.__all__)
    assert set(PUBLIC) <= set(agentcompass_bfcl.__all__)
    for name in set(agentcompass_bfcl.__all__) - set(FROM_THE_HOST):
        assert hasattr(agentcompass_bfcl, name), name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'agentcompass_bfcl' has no attribute 'no_such_name'"):
        agentcompass_bfcl.no_such_name  # noqa: B018  # reading it is the test
    assert not hasattr(agentcompass_bfcl, "__path_to_nowhere__")


@pytest.mark.parametrize(
    "imports",
    [
        "import agentcompass_bfcl",
        "import agentcompass_bfcl.aggregate",
        "from agentcompass_bfcl.aggregate import WEIGHTS; import agentcompass_bfcl",
        "import agentcompass_bfcl; agentcompass_bfcl.aggregate; import agentcompass_bfcl.aggregate",
        "import importlib, agentcompass_bfcl; importlib.import_module('agentcompass_bfcl.aggregate')",
        "from agentcompass_bfcl import ResultDocument; import agentcompass_bfcl",
        "from agentcompass_bfcl import draw; import agentcompass_bfcl.settings",
    ],
)
def test_aggregate_is_the_function_whatever_was_imported_before(imports: str, tmp_path: Path) -> None:
    code = f"""
{imports}
from agentcompass_bfcl import aggregate, Tally
assert agentcompass_bfcl.aggregate is aggregate
import sys
assert sys.modules["agentcompass_bfcl.aggregate"].aggregate is aggregate
from agentcompass_bfcl.aggregate import OnError
print(aggregate({{"multiple": Tally(1, 2)}}, OnError.FAIL).overall_accuracy)
"""
    assert run_python(code, cwd=tmp_path) == "50.0\n"


def test_other_modules_are_still_attributes_of_the_package(tmp_path: Path) -> None:
    code = """
import agentcompass_bfcl.draw, agentcompass_bfcl.report.text
print(agentcompass_bfcl.draw.__name__, agentcompass_bfcl.report.text.__name__)
"""
    assert run_python(code, cwd=tmp_path) == "agentcompass_bfcl.draw agentcompass_bfcl.report.text\n"


LOADED = """
import json, sys
{imports}
heavy = ("agentcompass", "pydantic", "openai", "httpx", "litellm", "numpy", "asyncio")
print(json.dumps([name for name in heavy if name in sys.modules]))
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import agentcompass_bfcl",
        "from agentcompass_bfcl import DrawSpec, plan, Shard, Tally, aggregate, score_sample",
        "import agentcompass_bfcl.aggregate",
    ],
)
def test_counting_drawing_and_scoring_import_neither_the_host_nor_anything_heavy(imports: str, tmp_path: Path) -> None:
    assert json.loads(run_python(LOADED.format(imports=imports), cwd=tmp_path)) == []


def test_importing_the_package_imports_none_of_its_modules(tmp_path: Path) -> None:
    code = """
import sys
import agentcompass_bfcl
print([name for name in sys.modules if name.startswith("agentcompass_bfcl.")])
"""
    assert run_python(code, cwd=tmp_path) == "[]\n"


def test_the_two_names_that_need_the_host_are_there_as_well(tmp_path: Path) -> None:
    code = """
import sys
from agentcompass_bfcl import register
assert "agentcompass" not in sys.modules
from agentcompass_bfcl import MetricResult
from agentcompass.runtime.metrics import MetricReport
print(issubclass(MetricResult, MetricReport), callable(register))
"""
    assert run_python(code, cwd=tmp_path, seconds=120) == "True True\n"

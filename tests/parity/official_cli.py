"""Compare verdicts with those of the official command line, row by row. Not part of the test suite: it needs pip.

From the project's folder: ``python -m tests.parity.official_cli PATH``, where PATH is a run directory or results of
bfcl-eval. It makes an environment with bfcl-eval and the few libraries that evaluating uses (about a minute, once),
puts the outputs into a result tree, lets ``bfcl evaluate`` judge it, and compares. 0 when every row agrees.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentcompass_bfcl import release
from agentcompass_bfcl.dataset import Dataset, read_dataset
from agentcompass_bfcl.export import export_bfcl_eval, export_verdicts
from agentcompass_bfcl.official_results import find_results, result_file_name
from agentcompass_bfcl.run_request import is_run_dir
from agentcompass_bfcl.sources import open_pinned
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, subset_named
from agentcompass_bfcl.verdicts import verdict_lines

# bfcl-eval evaluates only models it knows. These two are judged by the plain rules of their mode.
MODELS = {"fc": "gpt-4o-2024-11-20-FC", "prompt": "gpt-4o-2024-11-20"}

_STAND_INS = Path(__file__).parent / "stand_ins"
_PINNED = (
    f"{release.DISTRIBUTION}=={release.VERSION}",
    *("tree_sitter==0.21.3", "tree-sitter-java==0.21.0", "tree-sitter-javascript==0.21.4"),
    *("numpy==1.26.4", "filelock==3.20.0"),
)
_LIBRARIES = ("overrides", "python-dotenv", "tabulate", "tenacity", "tqdm", "typer")
# What bfcl-eval imports besides, whatever it is asked to do; soundfile is qwen-agent's, which does not ask for it.
_CLIENTS = (
    *("anthropic", "boto3", "cohere==5.18.0", "datamodel-code-generator==0.25.7", "google-genai", "mistralai==1.7.0"),
    *("openai", "pandas", "qwen-agent", "requests", "soundfile", "writer-sdk", "numpy==1.26.4"),
)
_SECONDS = 900.0

type Verdicts = Mapping[str, str | None]  # by sample id: None for a hit, else upstream's error type


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder bfcl-eval takes for its project: ``result/<model>`` is in it, ``score/<model>`` will be."""

    root: Path
    model: str

    @property
    def results(self) -> Path:
        return self.root / "result" / self.model

    @property
    def scores(self) -> Path:
        return self.root / "score" / self.model


def make_environment(folder: Path, *, clients: bool = False) -> None:
    """Install bfcl-eval and what evaluating needs into a new environment; an environment that is there is kept.

    With ``clients`` the libraries of model vendors are installed as well (0.5 GB), instead of stood in for.
    """
    if (folder / "bin" / "bfcl").exists():
        return
    venv.create(folder, with_pip=True, clear=True)
    for requirements in (("--no-deps", *_PINNED), _LIBRARIES, _CLIENTS if clients else ()):
        if requirements:
            pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-warn-conflicts"]
            subprocess.run([*pip, *requirements], check=True, timeout=_SECONDS)


def make_tree(path: Path, root: Path, mode: str, dataset: Dataset) -> Tree:
    """Put the outputs of a run, or copies of one model's results, into a result tree."""
    tree = Tree(root, MODELS[mode])
    if is_run_dir(path):
        export_bfcl_eval(path, root, dataset, model=tree.model)
        shutil.move(root / "score", root / "exported_score")
        return tree
    (results,) = find_results(path)
    for subset, file in results.files.items():
        target = tree.results / subset_named(subset).group / result_file_name(subset)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    return tree


def official_command(environment: Path, tree: Tree) -> tuple[list[str], dict[str, str]]:
    """Write the command that evaluates a tree, and its environment variables."""
    command = [str(environment / "bin" / "bfcl"), "evaluate", "--partial-eval", "--model", tree.model]
    return [*command, "--test-category", ",".join(SINGLE_TURN_SUBSETS)], {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(_STAND_INS),
        "BFCL_PROJECT_ROOT": str(tree.root),
        "OPENAI_API_KEY": "none",  # the handler makes a client, and never uses it
    }


def our_command(tree: Tree, mode: str, verdicts: Path) -> list[str]:
    """Write the command that judges a tree by this package, with stored inference errors as upstream takes them."""
    program = [sys.executable, "-m", "agentcompass_bfcl", "rescore", str(tree.results), "--partial", "--mode", mode]
    return [*program, "--official-errors", "--verdicts", str(verdicts)]


def timed(command: list[str], environ: Mapping[str, str] | None = None) -> float:
    """Run a command as a process of its own, and return the seconds it took. Its words are shown when it fails."""
    begin = time.perf_counter()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode:
        sys.exit(
            f"{' '.join(command[:2])} ended with status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
    return seconds


def official_verdicts(tree: Tree) -> Verdicts:
    """Read which rows were wrong from the official score files; every other row of the results was right."""
    verdicts: dict[str, str | None] = {}
    for path in tree.results.rglob("*_result.json"):
        verdicts |= {json.loads(line)["id"]: None for line in path.read_text().splitlines()}
    for path in tree.scores.rglob("*_score.json"):
        _, *wrong = (json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line)
        verdicts |= {row["id"]: row["error_type"] for row in wrong}
    return verdicts


def our_verdicts(lines: str) -> Verdicts:
    """Read verdict lines; a row without a verdict reads as its reason, which upstream never says."""
    rows = [json.loads(line) for line in lines.splitlines()]
    return {row["id"]: row["error_type"] or (f"unscored: {row['reason']}" if row["reason"] else None) for row in rows}


def differences(name: str, ours: Verdicts, official: Verdicts) -> list[str]:
    """Say where two judges disagree, row by row."""
    return [
        f"{sample_id}: official {official.get(sample_id, 'none')}, {name} {ours.get(sample_id, 'none')}"
        for sample_id in sorted(official.keys() | ours.keys())
        if official.get(sample_id, "none") != ours.get(sample_id, "none")
    ]


def _headers(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text().partition("\n")[0] for path in sorted(folder.rglob("*_score.json"))}


def compare(path: Path, tree: Tree, mode: str, environment: Path) -> int:
    """Judge a tree by both, and print how they compare."""
    command, environ = official_command(environment, tree)
    official_seconds = timed(command, environ)
    verdicts = tree.root / "verdicts.jsonl"
    our_seconds = timed(our_command(tree, mode, verdicts))
    official = official_verdicts(tree)
    found = differences("rescore", our_verdicts(verdicts.read_text()), official)
    if is_run_dir(path):
        own = our_verdicts(verdict_lines(export_verdicts(path, read_dataset(open_pinned()))))
        found += differences("the run", {name: own[name] for name in official}, official)
        if _headers(tree.root / "exported_score") != _headers(tree.root / "score"):
            found.append("the exported score files begin with other totals than the official ones")
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(official)} rows, {sum(kind is None for kind in official.values())} right, {len(found)} differences")
    print(f"official {official_seconds:.2f} s, rescore {our_seconds:.2f} s (whole processes, once each)")
    return 1 if found else 0


def main() -> int:
    """Parse, prepare, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="a run directory, or one model's results")
    parser.add_argument("--mode", choices=sorted(MODELS), default="fc")
    parser.add_argument("--environment", type=Path, help="where to make the official environment, or where it is")
    parser.add_argument("--clients", action="store_true", help="install the libraries of model vendors, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bfcl-parity-") as scratch:
        environment = arguments.environment or Path(scratch) / "environment"
        make_environment(environment.absolute(), clients=arguments.clients)
        dataset = read_dataset(open_pinned())
        tree = make_tree(arguments.path, Path(scratch) / "project", arguments.mode, dataset)
        return compare(arguments.path, tree, arguments.mode, environment.absolute())


if __name__ == "__main__":
    sys.exit(main())

"""What the documentation says can be followed: its links lead somewhere, its commands work, its outputs are printed."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentcompass_bfcl.cli import main
from agentcompass_bfcl.cli.parser import build_parser
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.endpoint import Mistakes, parse_mistakes, planned_mistake
from agentcompass_bfcl.export import export_bfcl_eval
from agentcompass_bfcl.tally import Outcome
from docs_commands import PAGES, ROOT, Command, anchors, commands, filled_in, links, shown_outputs
from host_runs import Finished, MakeEndpoint
from records import Play, record, written

COMPARING = ROOT / "docs" / "comparing.md"
SHARDING = ROOT / "docs" / "sharding.md"
# What a run gets at its end, so that it takes seconds. Of fewer rows than that a third shard of four would have none.
LIMIT, LIMIT_OF_SHARDS = ("--limit", "3"), ("--limit", "36")

# Commands that are not run here, by how they begin, and why. The parser has to accept those of ours all the same.
NOT_RUN = {
    "agentcompass-bfcl demo": "twenty seconds; has a test of its own below",
    "agentcompass-bfcl serve": "does not end by itself; has a test of its own below",
    "agentcompass-bfcl doctor": "judges this installation, whose fault is none of the documentation",
    "agentcompass-bfcl agentcompass": "is the host's command line; test_cli.py runs `list` and `summary`",
    "agentcompass-bfcl watch results/mine": "needs shards that go on; test_watch.py has them",
    "agentcompass run": "a process that imports the host; test_cli.py does",
    "agentcompass ...": "stands for any command of the host",
    "pip download": "needs the network; test_provision.py has `provision` do it",
    "make": "needs the network and minutes; CI runs it",
    "pip install": "changes the environment; CI installs the wheel into one of its own",
    "python -m tests.parity.official_cli": "makes an environment of its own with the official command line; minutes",
    "python -m benchmarks": "minutes, and alone on the machine",
    "python benchmarks": "minutes, and alone on the machine",
    "sh examples/local_model/run.sh": "compiles llama.cpp; half an hour",
}
# Further ones, by an option that says why.
NOT_RUN_WITH = {
    "--executor": "needs Ray; test_workers_ray.py runs it where Ray is",
    "--shards": "starts processes that each import the host; test_workers.py does",
    "--repeat": "two runs; test_workers.py has them",
    "--reuse": "needs a run that was interrupted; test_cli.py and test_workers.py have them",
}
# What a command ends with that is not 0, and why: pages show refusals too.
EXIT_CODES = {
    "agentcompass-bfcl gate RUN --baseline mlperf-edge-agentic": 4,  # mini, and the baseline is about golden
    "agentcompass-bfcl gate new.json --baseline mlperf-edge-agentic": 4,
    "agentcompass-bfcl gate new.json --baseline-file release.toml": 3,
    "agentcompass-bfcl gate new.json --not-worse-than last.json": 3,
    "agentcompass-bfcl gate again.json --not-worse-than last.json --margin 3": 3,
    "agentcompass-bfcl gate candidate.json --baseline-file release.toml": 4,  # candidate.json has three rows here
    "agentcompass-bfcl merge results/mine --out whole": 1,  # a shard is missing, which is what is shown
    "agentcompass-bfcl merge results/mine --out results/mine-merged/whole": 1,  # the page runs two shards of four
    "agentcompass-bfcl merge results/mine --json": 1,
}


def not_run(command: Command) -> str | None:
    """Say why a command is not run here; None if it is."""
    for begin, reason in NOT_RUN.items():
        if re.match(rf"{re.escape(begin)}(?![\w-])", command.text):
            return reason
    return next((reason for option, reason in NOT_RUN_WITH.items() if option in command.words), None)


def ours() -> list[Command]:
    return [command for page in PAGES for command in commands(page)]


# --- links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_and_anchor_leads_somewhere(page: Path) -> None:
    broken = []
    for number, target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(f"{number}: {target}")
    assert not broken


def test_pages_of_the_site_link_to_nothing_outside_it() -> None:
    outside = [
        f"{page.name}:{number}: {target}"
        for page in (ROOT / "docs").glob("*.md")
        for number, target in links(page)
        if not re.match(r"[a-z]+:", target)
        and not (page.parent / target.partition("#")[0]).resolve().is_relative_to(ROOT / "docs")
    ]
    assert not outside  # a code host would follow them, and the built site would not


def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in tmp_path.glob("*.html"):
        fetched = re.findall(
            r'<(?:script|img|link rel="(?:stylesheet|preconnect|icon)")[^>]*(?:src|href)="(https?:[^"]+)',
            page.read_text(),
        )
        assert not fetched, page.name


# --- commands: run, or listed with a reason


def test_commands_are_found_in_every_form_they_are_written_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs_commands.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "Say `agentcompass-bfcl draw` or `draw`.\n```\n"
        "$ A=1 B=2 agentcompass-bfcl run m \\\n    --seed 1 > f.json  # why\n"
        "agentcompass-bfcl: a message\n- run: make demo\n```\n"
    )
    found = [(command.words, dict(command.environ), command.to_file) for command in commands(page)]
    assert found == [
        (("agentcompass-bfcl", "draw"), {}, None),
        (("agentcompass-bfcl", "run", "m", "--seed", "1"), {"A": "1", "B": "2"}, "f.json"),
        (("make", "demo"), {}, None),
    ]


def test_what_is_not_run_is_a_command_that_is_listed_with_a_reason() -> None:
    unlisted = [
        command.place for command in ours() if command.words[0] != "agentcompass-bfcl" and not_run(command) is None
    ]
    assert not unlisted


def test_what_make_is_to_make_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = {word for command in ours() if command.words[0] == "make" for word in command.words[1:]}
    assert named <= targets


def test_every_reason_is_of_some_command() -> None:
    texts = [command.text for command in ours()]
    unused = [begin for begin in (*NOT_RUN, *EXIT_CODES) if not any(text.startswith(begin) for text in texts)]
    unused += [option for option in NOT_RUN_WITH if not any(option in text for text in texts)]
    assert not unused


@pytest.mark.parametrize("command", [found for found in ours() if not_run(found)], ids=lambda found: found.place)
def test_the_parser_accepts_what_is_not_run(command: Command) -> None:
    if command.words[0] != "agentcompass-bfcl" or command.words[1] == "agentcompass":
        return
    build_parser().parse_args(command.words[1:])


FOREIGN_OPTIONS = {
    *("--enable-auto-tool-choice", "--tool-call-parser", "--reasoning-parser", "--max-model-len"),  # vLLM, SGLang
    *("--chat-template", "--jinja", "--ctx-size"),  # llama.cpp
    *("--partial-eval", "--no-deps"),  # bfcl, pip
    *("--benchmark-params", "--recipe-dir", "--model-base-url"),  # AgentCompass
    *("--array", "--outputs", "--short", "--resume", "--everything", "--strict"),  # Slurm, benchmarks, mkdocs
}


def test_every_option_that_is_named_exists() -> None:
    known = set(FOREIGN_OPTIONS)
    parsers: list[argparse.ArgumentParser] = [build_parser()]
    for parser in parsers:
        for action in parser._actions:
            known |= set(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                parsers.extend(action.choices.values())
    named = {
        (page.name, option)
        for page in PAGES
        for code in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", code)
    }
    assert sorted((page, option) for page, option in named if option not in known) == []


# --- the worked example: its three runs, as their endpoints answer


def played(mistakes: Mistakes, seed: int) -> Play:
    def play(entry: Entry) -> tuple[Outcome, ...]:
        return (Outcome.HIT if planned_mistake(entry, mistakes, seed) is None else Outcome.MISS,)

    return play


@pytest.fixture(scope="session")
def example(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the results of the example's runs: which rows an endpoint gets wrong is known beforehand."""
    folder = tmp_path_factory.mktemp("example")
    for name, serve in zip(("last", "new", "again"), _served(), strict=True):
        found = record(
            dataset,
            played(parse_mistakes(serve.mistakes), serve.seed),
            model="my-model",
            request={"temperature": 0.0, "seed": 42},
        )
        written(found, folder / f"{name}.json")
    return folder


def _served() -> Iterator[argparse.Namespace]:
    for command in commands(COMPARING):
        if command.words[1] == "serve":
            yield build_parser().parse_args(command.words[1:])


# --- what has a test of its own


@pytest.mark.slow
def test_the_demo_prints_the_table_of_the_readme(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(["demo"], capfd)
    assert code == 0
    (block,) = re.findall(r"^```\n(subset .*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    told, printed = block.splitlines(), out.splitlines()
    assert [line for line in told if line not in printed and not line.startswith(("model ", "run "))] == []


def test_the_example_s_endpoints_can_be_started(here: Path) -> None:
    command = next(command for command in commands(COMPARING) if command.words[1] == "serve")
    words = ["0" if word == "8000" else word for word in command.words[1:]]  # any port that is free
    with subprocess.Popen(
        [sys.executable, "-m", "agentcompass_bfcl", *words], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            first = server.stdout.readline()
            url = re.search(r"http://\S+/v1", first)
            assert url, first
            with urllib.request.urlopen(f"{url[0]}/models", timeout=30) as answer:  # noqa: S310 - the address is ours
                assert answer.status == 200
        finally:
            server.terminate()


# --- running them


@pytest.fixture(scope="session")
def values(lean: Finished, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give what the placeholders of the documentation stand for. Everything is of one finished run."""
    folder = tmp_path_factory.mktemp("values")
    again = [folder / "again.json", folder / "once-more.json"]
    for file in again:
        file.write_text(lean.result.to_json(), encoding="utf-8")
    tree = export_bfcl_eval(lean.run_dir, folder / "tree", dataset).folder
    run = str(lean.run_dir)
    return {
        **dict.fromkeys(("RUN", "RUN_A", "RUN_DIR", "RUN_OF_LAST_RELEASE"), run),
        "RUN_B": str(again[0]),
        "RUN_A2": str(again[1]),
        "MODEL": "some-model",
        "result/MODEL": str(tree),
        "ID": "simple_python_0",
    }


@pytest.fixture
def here(tmp_path: Path, example: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to an empty folder with the files that the example's first steps made."""
    for file in example.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


def expected_code(command: Command) -> int:
    return next((code for begin, code in EXIT_CODES.items() if command.text.startswith(begin)), 0)


PAGES_WITH_COMMANDS = [
    page for page in PAGES if any(c.words[0] == "agentcompass-bfcl" and not not_run(c) for c in commands(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says_one_after_the_other(
    page: Path,
    here: Path,
    values: dict[str, str],
    endpoint_with: MakeEndpoint,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown, failed = shown_outputs(page), []
    with endpoint_with() as endpoint:
        for command in commands(page):
            if command.words[0] != "agentcompass-bfcl" or not_run(command):
                continue
            words = filled_in(command.words, {**values, **_new_places(here, command)})
            words = [endpoint.base_url if _is_address(word) else word for word in words]
            if words[1] == "run":
                words += LIMIT_OF_SHARDS if "--shard" in words else LIMIT
            for name, value in {**_shard_variables(words), **command.environ}.items():
                monkeypatch.setenv(name, value)
            code, out, err = _run(words[1:], capfd)
            if code != expected_code(command):
                failed.append(f"{command.place}: {command.text}: exit code {code}: {err or out[-2000:]}")
            if command.to_file and not (here / command.to_file).exists():
                (here / command.to_file).write_text(out, encoding="utf-8")
            if page == COMPARING:
                missing = [line for line in shown.get(command.text, []) if line not in (out + err).splitlines()]
                failed += [f"{command.place}: not printed: {line}" for line in missing]
    assert not failed, "\n".join(failed)


def _run(words: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capfd.readouterr()
    try:
        code = main(words)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    return code, *capfd.readouterr()


def _is_address(word: str) -> bool:
    return word in ("URL", "$BASE_URL") or re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", word) is not None


def _new_places(here: Path, command: Command) -> dict[str, str]:
    """Give a folder and a file that are not there yet, for each command others."""
    number = len(list(here.iterdir()))
    return {"DIR": str(here / f"new-{number}"), "FILE": str(here / f"file-{number}")}


def _shard_variables(words: list[str]) -> dict[str, str]:
    return {"BFCL_SHARD_INDEX": "0", "BFCL_SHARD_COUNT": "4"} if "auto" in words and "--shard" in words else {}

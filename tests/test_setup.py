"""``make`` prepares its own environment: it finds a fitting Python, installs once, and survives interruptions."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = ("cat", "cp", "dirname", "make", "mkdir", "rm", "sh", "sleep", "sort", "tail")
SHELL = shutil.which("sh")
PATIENCE = 30  # seconds for what takes a fraction of one

# Code is run by this very interpreter, told that it is another version at another place.
PRETEND = """\
for code; do :; done
exec '{real}' -I -c '
import sys
sys.version_info = ({version})
sys._base_executable = "{place}"
{trouble}
exec(sys.argv[1])' "$code"
"""
BROKEN_SHIM = "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n"

# `-m venv` and `-m pip`, which would take minutes and the network, are only written down; pip waits while the file
# `hold` exists and fails while `fail` does.
STAND_IN = """\
case "$*" in
    '-m venv .venv')
        echo venv >>'{folder}/calls'
        mkdir -p .venv/bin && cp "$0" .venv/bin/python
        exit ;;
    *'-m pip install '*)
        echo pip >>'{folder}/calls'
        while [ -e '{folder}/hold' ]; do sleep 0.05; done
        if [ -e '{folder}/fail' ]; then echo 'ERROR: no such package' >&2; exit 1; fi
        exit ;;
    *'import pip') exit ;;
esac
"""


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def pretend(path: Path, version: str, *, trouble: str = "", first: str = "") -> Path:
    """Make a Python of some version; ``trouble`` is Python that it runs beforehand, ``first`` is shell."""
    numbers = version.replace(".", ", ")
    answer = PRETEND.format(real=sys.executable, version=numbers, place=path, trouble=trouble)
    return executable(path, f"#!/bin/sh\n{first}{answer}")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Make a PATH folder that holds what the scripts need and no Python."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None, f"these tests need {name}"
        (folder / name).symlink_to(found)
    return folder


class Finder:
    """``scripts/find-python`` with a PATH and a home folder of its own."""

    def __init__(self, tools: Path, home: Path) -> None:
        self.tools, self.home = tools, home
        self.bin = home / "bin"

    def add(self, name: str, version: str, *, trouble: str = "") -> str:
        return str(pretend(self.bin / name, version, trouble=trouble))

    def add_pyenv(self, version: str) -> str:
        return str(pretend(self.home / f".pyenv/versions/{version}/bin/python", version))

    def run(self, **environ: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": f"{self.bin}:{self.tools}", "HOME": str(self.home), **environ}
        return subprocess.run(
            [str(SHELL), str(ROOT / "scripts/find-python")], env=environ, capture_output=True, text=True, check=False
        )

    def found(self, **environ: str) -> str:
        done = self.run(**environ)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.removesuffix("\n")

    def refusal(self, **environ: str) -> str:
        done = self.run(**environ)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1, "a refusal is one line"
        return done.stderr


@pytest.fixture
def finder(tools: Path, tmp_path: Path) -> Finder:
    return Finder(tools, tmp_path / "home with a space")


@pytest.mark.parametrize(
    ("on_path", "picked"),
    [
        ({"python3": "3.12.0"}, "python3"),
        ({"python": "3.12.4"}, "python"),
        ({"python3.13": "3.13.1", "python3.12": "3.12.1"}, "python3.12"),
        ({"python3.14": "3.14.0", "python3.13": "3.13.1"}, "python3.13"),
        ({"python3": "3.15.0", "python3.14": "3.14.0"}, "python3.14"),
        ({"python3": "3.11.9", "python": "3.12.0"}, "python"),
        ({"python3.12": "2.7.18", "python3": "3.100.0"}, "python3"),
    ],
)
def test_the_first_fitting_python_on_path_is_picked(finder: Finder, on_path: dict[str, str], picked: str) -> None:
    places = {name: finder.add(name, version) for name, version in on_path.items()}
    assert finder.found() == places[picked]


def test_a_shim_that_cannot_run_is_passed_over_quietly(finder: Finder) -> None:
    executable(finder.bin / "python3.12", BROKEN_SHIM)
    place = finder.add("python3.13", "3.13.0")
    assert finder.found() == place


def test_path_comes_before_pyenv(finder: Finder) -> None:
    finder.add_pyenv("3.12.1")
    place = finder.add("python3", "3.14.2")
    assert finder.found() == place


@pytest.mark.parametrize(
    ("versions", "picked"),
    [
        (["3.13.0", "3.12.10", "3.12.9"], "3.12.9"),
        (["3.9.18", "3.11.7", "3.14.0"], "3.14.0"),
        (["2.7.18", "3.13.2"], "3.13.2"),
    ],
)
def test_pyenvs_lowest_fitting_version_is_picked(finder: Finder, versions: list[str], picked: str) -> None:
    places = {version: finder.add_pyenv(version) for version in versions}
    assert finder.found() == places[picked]


def test_pyenv_may_live_elsewhere(finder: Finder, tmp_path: Path) -> None:
    place = pretend(tmp_path / "elsewhere/versions/3.12.3/bin/python", "3.12.3")
    assert finder.found(PYENV_ROOT=str(tmp_path / "elsewhere")) == str(place)


def test_without_any_python_one_line_says_what_to_install(finder: Finder) -> None:
    assert "install python3.12" in finder.refusal()


def test_old_and_broken_pythons_are_as_good_as_none(finder: Finder) -> None:
    executable(finder.bin / "python3.12", BROKEN_SHIM)
    finder.add("python3", "3.11.2")
    finder.add_pyenv("3.10.13")
    assert "no Python 3.12 or newer found" in finder.refusal()


def test_a_missing_venv_module_is_what_the_refusal_names(finder: Finder) -> None:
    place = finder.add("python3.13", "3.13.1", trouble='sys.modules["ensurepip"] = None')
    assert f"{place} is without its venv or ensurepip module: install python3.13-venv" in finder.refusal()


def test_python_from_the_environment_is_taken(finder: Finder) -> None:
    finder.add("python3.12", "3.12.1")
    by_name = finder.add("my-python", "3.13.0")
    assert finder.found(PYTHON="my-python") == by_name
    by_path = finder.add_pyenv("3.14.0")
    assert finder.found(PYTHON=by_path) == by_path


def test_python_from_the_environment_is_refused_when_it_does_not_fit(finder: Finder) -> None:
    finder.add("python3.12", "3.12.1")
    finder.add("older", "3.11.7")
    finder.add("bare", "3.12.2", trouble='sys.modules["venv"] = None')
    executable(finder.bin / "broken", BROKEN_SHIM)
    assert "PYTHON=older is Python 3.11.7: 3.12 or newer is needed" in finder.refusal(PYTHON="older")
    assert "PYTHON=bare lacks the venv or ensurepip module" in finder.refusal(PYTHON="bare")
    assert "PYTHON=broken cannot be run" in finder.refusal(PYTHON="broken")
    assert "PYTHON=absent cannot be run" in finder.refusal(PYTHON="absent")


class Project:
    """A folder with this project's scripts and a stand-in for Python, whose calls can be counted."""

    def __init__(self, folder: Path, outside: Path, tools: Path) -> None:
        self.folder, self.outside = folder, outside
        shutil.copytree(ROOT / "scripts", folder / "scripts")
        shutil.copy(ROOT / "Makefile", folder)
        shutil.copy(ROOT / "pyproject.toml", folder)
        outside.mkdir()
        self.python = pretend(outside / "bin/python3.12", "3.12.1", first=STAND_IN.format(folder=outside))
        self.environ = {"PATH": f"{outside / 'bin'}:{tools}", "HOME": str(outside)}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["make", "-s", *(words or ("setup",))],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def make(self, *words: str, status: int = 0) -> str:
        with self.start(*words) as process:
            _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == status, errors
        return errors

    def calls(self) -> list[str]:
        """List and forget what was asked of the stand-in."""
        try:
            calls = (self.outside / "calls").read_text().split()
        except FileNotFoundError:
            return []
        (self.outside / "calls").unlink()
        return calls

    def switch(self, name: str, *, on: bool) -> None:
        if on:
            (self.outside / name).touch()
        else:
            (self.outside / name).unlink()

    def edit(self) -> None:
        with (self.folder / "pyproject.toml").open("a") as file:
            file.write("# edited\n")

    def wait_for_pip(self) -> None:
        calls, deadline = self.outside / "calls", time.monotonic() + PATIENCE
        while not calls.exists() or "pip" not in calls.read_text():
            assert time.monotonic() < deadline, "pip was never started"
            time.sleep(0.02)


@pytest.fixture
def project(tmp_path: Path, tools: Path) -> Project:
    return Project(tmp_path / "project", tmp_path / "outside", tools)


def end_midway(project: Project, by: signal.Signals) -> None:
    project.calls()
    project.switch("hold", on=True)
    with project.start() as process:
        project.wait_for_pip()
        os.killpg(process.pid, by)
    assert process.returncode != 0
    project.switch("hold", on=False)
    project.calls()


def test_the_first_run_installs_and_says_that_it_takes_long(project: Project) -> None:
    assert "takes some minutes" in project.make()
    assert project.calls() == ["venv", "pip"]


def test_the_next_run_does_nothing_and_says_nothing(project: Project) -> None:
    project.make()
    project.calls()
    assert project.make() == ""
    assert project.make(f"PYTHON={project.python}", "setup") == ""
    assert project.calls() == []


def test_an_edited_pyproject_is_installed_into_the_same_environment(project: Project) -> None:
    project.make()
    project.calls()
    project.edit()
    assert "up to date" in project.make()
    assert project.calls() == ["pip"]
    assert project.make() == ""


def test_an_environment_made_by_hand_is_kept(project: Project) -> None:
    project.make()
    (project.folder / ".venv/set-up-done").unlink()
    (project.folder / ".venv/mine").touch()
    project.calls()
    project.make()
    assert project.calls() == ["pip"]
    assert (project.folder / ".venv/mine").exists()


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("finished_before", [False, True])
def test_an_install_that_was_cut_short_is_started_afresh(
    project: Project, finished_before: bool, by: signal.Signals
) -> None:
    if finished_before:
        project.make()
        project.edit()
    end_midway(project, by)
    project.make()
    assert project.calls() == ["venv", "pip"]
    assert project.make() == ""


def test_a_failed_install_shows_why_and_is_tried_again(project: Project) -> None:
    project.switch("fail", on=True)
    assert "ERROR: no such package" in project.make(status=2)
    project.switch("fail", on=False)
    project.calls()
    project.make()
    assert project.calls() == ["venv", "pip"]


def test_a_failed_update_keeps_the_environment(project: Project) -> None:
    project.make()
    project.edit()
    project.switch("fail", on=True)
    project.make(status=2)
    project.switch("fail", on=False)
    project.calls()
    project.make()
    assert project.calls() == ["pip"]


def test_an_environment_whose_python_is_gone_is_made_anew(project: Project) -> None:
    project.make()
    (project.folder / ".venv/bin/python").unlink()
    project.calls()
    project.make()
    assert project.calls() == ["venv", "pip"]


def test_an_environment_that_was_moved_is_made_anew(project: Project) -> None:
    project.make()
    project.calls()
    project.folder = project.folder.rename(project.folder.with_name("moved"))
    project.make()
    assert project.calls() == ["venv", "pip"]


def test_two_at_the_same_time_install_once(project: Project) -> None:
    project.switch("hold", on=True)
    with project.start() as first, project.start() as second:
        project.wait_for_pip()
        time.sleep(0.5)  # for the other to come as far as the lock
        project.switch("hold", on=False)
        complaints = [process.communicate(timeout=PATIENCE)[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), complaints
    assert project.calls() == ["venv", "pip"]
    assert sum("waiting for another set-up" in text for text in complaints) == 1


def test_make_refuses_a_python_that_does_not_fit_and_makes_nothing(project: Project) -> None:
    older = pretend(project.outside / "older", "3.11.7")
    assert "is Python 3.11.7: 3.12 or newer is needed" in project.make(f"PYTHON={older}", "setup", status=2)
    assert not (project.folder / ".venv").exists()


@pytest.mark.parametrize("target", ["demo", "test", "lint", "wheel"])
def test_every_target_sets_up_first(project: Project, target: str) -> None:
    done = subprocess.run(
        ["make", "-n", target], cwd=project.folder, env=project.environ, capture_output=True, text=True, check=True
    )
    assert "sh scripts/set-up" in done.stdout.splitlines()[0]

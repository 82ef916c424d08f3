"""Files made to hurt, and commands run on them in this process with everything they say and touch looked at."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import strategies as st

from agentcompass_bfcl.cli import main

type Json = Any  # a parsed JSON value

# Moves the cursor, changes the title, turns the writing round, ends the line, and looks like a row of ours.
ESCAPES = "\x1b[31m\x1b]0;title\x07\x9b2J\u202eevil\u2066\x7f\r\n\u2028overall  100.00\t\x00"
# Nothing of this may reach a terminal, a line's end aside. Half letters cannot even be printed.
_RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]")
_SECONDS = 30.0  # for one command; all of them take below one


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote to standard output and to stderr."""

    code: int
    out: str
    err: str


def command(*arguments: str | Path) -> Ended:
    """Run a command in this process, with streams that take only what UTF-8 can hold; one that hangs fails the test."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict", newline="")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict", newline="")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _deadline(_SECONDS):
        code = main([str(argument) for argument in arguments])
    return Ended(code, _said(out), _said(err))


def _said(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def sane(ended: Ended, *codes: int) -> Ended:
    """Require one of the codes, nothing raw for a terminal, and on stderr only whole lines of ours."""
    assert ended.code in codes, ended
    for text in (ended.out, ended.err):
        raw = _RAW.search(text)
        assert raw is None, (raw, ended)
    assert all(line.startswith("agentcompass-bfcl: ") for line in ended.err.splitlines()), ended.err
    if ended.code == 1:
        assert ended.err or ended.out.endswith(": nothing there yet\n")  # as ``watch`` says of a folder without a run
    return ended


def refused(ended: Ended, *words: str, codes: tuple[int, ...] = (1,)) -> str:
    """Require an error in one line, of bounded length, with these words in it."""
    sane(ended, *codes)
    (line,) = ended.err.splitlines()
    assert len(line) < 2_000, line
    assert all(word in line for word in words), line
    return line


def contents(folder: Path) -> dict[str, str]:
    """Describe everything below a folder, links and special files among it."""
    return {str(path.relative_to(folder)): _content(path) for path in sorted(folder.rglob("*"))}


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    found = path.stat()
    large = found.st_size > 1_000_000
    if not path.is_file() or large:
        return f"{found.st_mode:o} {found.st_size if large else ''}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not done within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# What is no file to read, made at a path, by name.
SPECIAL = ("absent", "folder", "link to itself", "link to nothing", "pipe", "link to a device", "huge", "link to huge")


def make_special(kind: str, path: Path) -> Path:
    match kind:
        case "folder":
            path.mkdir()
        case "link to itself":
            path.symlink_to(path.name)
        case "link to nothing":
            path.symlink_to("nowhere")
        case "pipe":
            os.mkfifo(path)
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "huge" | "link to huge":
            place = path if kind == "huge" else path.with_name(f"{path.name}.huge")
            with place.open("wb") as file:
                file.truncate(1 << 30)  # no block of it is stored
            if place != path:
                path.symlink_to(place.name)
    return path


# Bytes that are no JSON of ours, or none at all, by name.
NO_JSON: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\t ",
    "half": b'{"schema_version": 1, "metr',
    "a list": b"[]",
    "a text": b'"x"',
    "a number": b"3",
    "null": b"null",
    "an empty object": b"{}",
    "no UTF-8": b'{"a": "\xff\xfe\xc3"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "zeros": b"\x00" * 1000,
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "digits": b'{"schema_version": ' + b"9" * 5_000 + b"}",
    "NaN": b'{"schema_version": NaN}',
    "infinite": b'{"schema_version": 1e999}',
    "escapes": json.dumps({ESCAPES: ESCAPES}).encode(),
    "two documents": b"{} {}",
    "a zip file": b"PK\x03\x04" + b"\x00" * 26,
}

_DEEP: Json = 1
for _level in range(500):
    _DEEP = [_DEEP]

POISON: tuple[Json, ...] = (
    *(None, True, False, 0, -1, 1, 2.5, -0.0, 1e308, float("nan"), float("inf")),
    *(10**30, -(10**30), 10**400, 10**4_000),
    *(
        "",
        " ",
        ESCAPES,
        "\ud800",
        "../../outside",
        "/etc/passwd",
        "-rf",
        "x" * 5_000,
        "9" * 5_000,
        "=1+1",
        "0/1",
        "3/2",
    ),
    *("0/999999999999", "9" * 5_000 + "/1", "h" * 5_000, "<script>"),
    *([], {}, [[]], {"": {}}, [ESCAPES], {ESCAPES: 1}, {"k": 1}, [1, "x", None], _DEEP, {"code": 1}, {"severity": []}),
)


def places(value: Json, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List the place of every part of a document, itself first."""
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*here, key))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(POISON),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def spoilt(draw: st.DrawFn, document: Json) -> Json:
    """Replace or drop up to three parts of a document, or give them a neighbour."""
    changed = _copy(document)
    for _ in range(draw(st.integers(1, 3))):
        inside = [place for place in places(changed) if place]
        *parents, last = draw(st.sampled_from(inside or [("x",)]))
        parent = changed
        for key in parents:
            parent = parent[key]
        how = draw(st.sampled_from(("replace", "replace", "replace", "drop", "add")))
        if how == "add" and isinstance(parent, dict):
            parent[draw(st.sampled_from((ESCAPES, "\ud800", "subset.parallel.hits", "", "a.b")))] = _copy(draw(_JSON))
        elif how == "drop" and inside:
            del parent[last]
        else:
            parent[last] = _copy(draw(_JSON))
    return changed


def _copy(value: Json) -> Json:
    return json.loads(json.dumps(value))  # copy.deepcopy does not go as deep


def written(document: Json) -> bytes:
    """Write JSON as nobody should: with half letters, NaN, and numbers of any length."""
    return json.dumps(document, ensure_ascii=True, allow_nan=True).encode()


@st.composite
def torn(draw: st.DrawFn, content: bytes) -> bytes:
    """Cut a file off anywhere, flip some of its bytes, or both."""
    kept = bytearray(content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content)
    for _ in range(draw(st.integers(0, 4))):
        if kept:
            kept[draw(st.integers(0, len(kept) - 1))] = draw(st.integers(0, 255))
    return bytes(kept)

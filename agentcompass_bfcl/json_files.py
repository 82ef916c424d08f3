"""JSON that others wrote, read within limits, and JSON for others, written so that any terminal and file can take it.

Results, run directories and baselines come from anywhere. No file of theirs may block, fill the memory, or hold what a
report of it could not be written with.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

type Json = Any  # a parsed JSON value

LARGEST_RESULT = 16 * 1024 * 1024
"""Bytes of a result: a JSON file, or a run's metrics.json. That of a full run has some 60,000."""

LARGEST_ATTEMPT = 96 * 1024 * 1024
"""Bytes of any other file of a run. An attempt's has some thousands; 12 MB of two-byte letters make 78 MB."""

LARGEST_RUN_INFO = 256 * 1024 * 1024
"""Bytes of a run_info.json. The host describes every attempt at every sample in it, in some 1,300 bytes each."""

LARGEST_BASELINE = 256 * 1024
"""Bytes of a file of baselines. One has some 2,000."""

DEEPEST = 200
"""Levels of lists and objects. Python's JSON reader takes more of them than its writer, which needs 1,000 at most."""

MOST_DIGITS = 300
"""Digits of a whole number. One of 309 is no float any more, and one of 4,301 is not even text."""

_SHOWN_KEY = 80
_LARGEST_WHOLE = 10**MOST_DIGITS
_HALF_LETTER = re.compile("[\ud800-\udfff]")
# What moves a terminal's cursor, turns its writing round or ends a line, and what UTF-8 cannot hold. JSON escapes what
# is below U+0020 by itself.
_ESCAPED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def read_limited(path: Path, largest: int) -> bytes:
    """Read a file of at most ``largest`` bytes.

    Only a regular one, also at the end of links: a pipe would block, and a device need not end. Raises ``OSError``,
    whose ``strerror`` says why not.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would wait for its writer otherwise
    except ValueError:
        raise OSError(errno.EINVAL, "no file can have this name") from None
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if found.st_size > largest:
            raise OSError(errno.EFBIG, f"larger than {largest} bytes")
        with open(handle, "rb", closefd=False) as file:
            return file.read(found.st_size)
    finally:
        os.close(handle)


def read_json(path: Path, largest: int) -> Json:
    """Read a JSON file of at most ``largest`` bytes; parsed it takes up to some 25 times as many.

    Of a key that stands twice the last one counts. Raises ``OSError`` as ``read_limited``, ``ValueError`` for what is
    no JSON, and ``RecursionError`` for what is nested too deeply to be read.
    """
    return json.loads(read_limited(path, largest))


def fault_in(value: Json) -> str | None:
    """Say what in a parsed value cannot be written out again for everybody, with its place; None when all can.

    That is a number that is not finite or has more than ``MOST_DIGITS`` digits, half of a surrogate pair, and what is
    nested deeper than ``DEEPEST``.
    """
    found = _fault(value, 0)
    if found is None:
        return None
    *places, what = found
    return f"{'.'.join(places)}: {what}" if places else what


def too_deep(value: Json) -> bool:
    """Tell whether a parsed value is nested deeper than ``DEEPEST``, whatever else is in it."""
    level = [value]
    for _ in range(DEEPEST):
        nested = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in nested for child in (item.values() if isinstance(item, dict) else item)]
        if not level:
            return False
    return True


def _fault(value: Json, depth: int) -> tuple[str, ...] | None:
    """Give the places from the outermost on, and what is wrong there."""
    match value:
        case str():
            return ("half of a letter, which UTF-8 cannot hold",) if _HALF_LETTER.search(value) else None
        case float():
            return None if math.isfinite(value) else (f"{value} is no number JSON can hold",)
        case int():
            return None if abs(value) < _LARGEST_WHOLE else (f"a number of more than {MOST_DIGITS} digits",)
        case dict() | list() if depth == DEEPEST:
            return (f"nested deeper than {DEEPEST} levels",)
        case dict() | list():
            items: Iterable[tuple[Json, Json]] = value.items() if isinstance(value, dict) else enumerate(value)
        case _:
            return None
    for key, item in items:
        found = _fault(key, depth) or _fault(item, depth + 1)
        if found is not None:
            return (str(key)[:_SHOWN_KEY], *found)
    return None


def json_text(value: Json, *, sort_keys: bool = False) -> str:
    """Write JSON with two blanks a level, readable, and a newline at the end.

    Letters stay what they are. What a terminal would obey, or a file could not hold, is escaped; to a reader of JSON
    that is the same text.
    """
    text = json.dumps(value, indent=2, sort_keys=sort_keys, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"

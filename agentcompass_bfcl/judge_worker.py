"""The judge process: it reads samples as JSON lines, answers with verdicts, and may be killed at any moment.

``bounded.Judge`` starts it and speaks with it. It stands alone because upstream's regular expressions hold the
interpreter's lock while they run away: nothing inside a process can stop them, only the end of the process does.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.official import Official, load_official
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict, score_output
from agentcompass_bfcl.task import Mode
from agentcompass_bfcl.wheel import open_wheel

type Json = Any  # a parsed JSON value
type Reply = Verdict | ConfigError  # what ``score_output`` returns or, for want of prompt mode's parsers, raises

READY = b"ready\n"
"""What the process says once it can judge. Whatever comes before is a complaint of the interpreter."""

_MEMORY_BYTES = 2 * 1024**3
# Upstream takes any exception of its decoder for "no call", so that want of memory could pass for an abstention. A
# process that came near its bound therefore gives no verdict; a fresh one takes 0.05 GiB.
_TRUSTED_BYTES = 1024**3
# Longer than the parent waits: this alarm matters only when there is no parent left to do the killing.
_ALARM_MARGIN_SECONDS = 1.0
_STATUS = Path("/proc/self/status")


def request_line(number: int, entry: Entry, output_json: str, mode: Mode) -> bytes:
    """Write one request, ``[number, mode, row, output]``.

    The whole row goes along, so that the process need not read the data set (0.3 s). ASCII only: lone surrogates
    survive as escapes, and no line end can stand inside.
    """
    row = [getattr(entry, field.name) for field in fields(entry)]
    return f"[{number}, {json.dumps(mode)}, {json.dumps(row)}, {output_json}]\n".encode("ascii")


def reply_line(number: int, reply: Reply) -> bytes:
    """Write one reply: a list of the number, "hit", "miss", "unscored" or "refused", and what belongs to it."""
    match reply:
        case Hit(malformed_call):
            line = [number, "hit", malformed_call]
        case Miss(why, detail):
            line = [number, "miss", why, detail]
        case Unscored(why, detail):
            line = [number, "unscored", why, detail]
        case ConfigError():
            line = [number, "refused", str(reply)]
    return f"{json.dumps(line)}\n".encode("ascii")


def reply_from(line: bytes, number: int) -> Reply:
    """Read the reply to request ``number``. Raises ``ValueError`` for anything that is not exactly one."""
    if not line.startswith(f"[{number}, ".encode("ascii")):
        raise ValueError(f"not the reply to request {number}")
    match json.loads(line):
        case [_, "hit", bool(malformed_call)]:
            return Hit(malformed_call)
        case [_, "miss", str(why), str(detail)]:
            return Miss(why, detail)
        case [_, "unscored", str(why), str(detail)]:
            return Unscored(why, detail)
        case [_, "refused", str(message)]:
            return ConfigError(message)
    raise ValueError("not a verdict")


def main(wheel: str, limit_seconds: str) -> None:
    """Judge what stands on standard input until it ends.

    Raises ``DatasetError`` or ``CheckerError`` when the official code cannot be loaded, before anything is read.
    """
    official = load_official(open_wheel(Path(wheel)))
    replies = _only_way_out()
    _bound_resources()
    _default_signals()
    replies.write(READY)
    for line in sys.stdin.buffer:
        if not line.endswith(b"\n"):  # the parent died while it wrote
            return
        signal.setitimer(signal.ITIMER_REAL, float(limit_seconds) + _ALARM_MARGIN_SECONDS)
        reply = _answer(line, official)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if _peak_bytes() > _TRUSTED_BYTES:
            raise SystemExit(errno.ENOMEM)
        replies.write(reply)


def _answer(line: bytes, official: Official) -> bytes:
    number, mode, row, output = json.loads(line)
    try:
        reply: Reply = score_output(Entry(*row), output, official, Mode(mode))
    except ConfigError as error:
        reply = error
    return reply_line(number, reply)


def _peak_bytes() -> int:
    """The most memory this process ever had; 0 where the system does not tell, and does not bound it either."""
    # Not getrusage alone: through exec a process inherits the peak of its parent.
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < _TRUSTED_BYTES:
        return 0
    with contextlib.suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _only_way_out() -> BinaryIO:
    """Keep the pipe to the parent for replies alone: whatever else is printed goes nowhere."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return replies


def _bound_resources() -> None:
    for kind, most in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),  # no file can grow; pipes are not files
    ):
        hard = resource.getrlimit(kind)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS knows RLIMIT_AS and refuses to set it
            resource.setrlimit(kind, (bound, bound))


def _default_signals() -> None:
    """Undo what was inherited: Ctrl-C is the parent's affair, and the alarm must kill, regular expression or not."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])

"""Verdicts in bounded time and memory: no output of a model can hang or kill the process that scores it.

What provably ends soon is judged here. Everything else goes to a judge process, which is killed and replaced when it
exceeds the limit or breaks off; that output is then ``Unscored``, and the next one is judged as if nothing had been.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.judge_process import START_SECONDS, JudgeProcess, Spawn, start_process, worker_command
from agentcompass_bfcl.judge_worker import reply_from, request_line
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.score import Unscored, Verdict, score_output
from agentcompass_bfcl.sources import load_sources, open_pinned
from agentcompass_bfcl.subsets import Language, subset_named
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value

LARGEST_OUTPUT = 16 * 1024 * 1024
"""Characters of ASCII JSON a judge process is given. Real outputs have some hundreds."""

# The longest reference answer has 1,310 characters. The worst of 2,000 that was found, a list of 660 empty texts
# against the 18 answers of multiple_23, takes 45 ms, and time grows no faster than the length.
_SMALL = 2_000
_FEW_BRACKETS = 100  # bounds the nesting, far from any recursion limit, whatever stack the caller has left
# The worst texts of this length found for upstream's regular expressions take 2 ms; every 8 characters more, ten
# times as long.
_SHORT_SOURCE = 40


def can_run_away(entry: Entry, output: Json, mode: Mode) -> bool:
    """Tell whether an output may take long, or much memory, to judge in this process; if not, it takes below 0.1 s.

    Native calls are decoded as JSON and compared with the answers, in proportion to their length. An output that is no
    list of calls fails at its first element, whatever its size. Java and JavaScript arguments go through regular
    expressions that backtrack. In prompt mode parsers written in C read the text, and arithmetic makes millions of
    list items of a few characters.
    """
    if mode is not Mode.FC:
        return True
    texts, length = [], 0
    for name, arguments in _decodable_calls(output):
        length += len(name) + len(arguments) + 1
        if length > _SMALL:
            return True
        texts += [name, arguments]
    if sum(text.count("[") + text.count("{") for text in texts) > _FEW_BRACKETS:
        return True
    if subset_named(entry.subset).language is Language.PYTHON:
        return False
    return any(len(source) > _SHORT_SOURCE for text in texts for source in _sources(text))


def _decodable_calls(output: Json) -> Iterator[tuple[str, str]]:
    """Give the calls the decoder gets to read: it raises at the first element that is none, and goes no further."""
    for call in output if isinstance(output, list) else ():
        name = next(iter(call), None) if isinstance(call, dict) else None
        if name is None or not isinstance(call[name], str):
            return
        yield name, call[name]


def _sources(arguments: str) -> list[str]:
    try:
        decoded = json.loads(arguments)
    except ValueError:  # the decoder fails as well, and nothing is checked
        return []
    return [value for value in decoded.values() if isinstance(value, str)] if isinstance(decoded, dict) else []


class Judge:
    """Judges outputs, each within ``limit_seconds`` and a little. Threads may share it; a fork may copy it.

    The judge process starts when an output first needs it (0.3 s, not counted against that output) and serves until
    ``close``. It ends with this process, however that ends, even in the middle of a regular expression.
    """

    def __init__(
        self, official: Official, wheel_path: Path, *, limit_seconds: float = 5.0, spawn: Spawn = start_process
    ) -> None:
        self._official = official
        self._wheel_path = wheel_path
        self._limit_seconds = limit_seconds
        self._spawn = spawn
        self._lock = threading.Lock()
        self._process: JudgeProcess | None = None
        self._is_ready = False
        self._number = 0
        _JUDGES.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def process_id(self) -> int | None:
        """The id of the judge process, or None while there is none."""
        process = self._process
        return None if process is None else process.pid

    def start(self) -> None:
        """Start the judge process ahead of the output that will need it, and do not wait for it.

        One that cannot be started is no error yet: the output that needs it says so.
        """
        with self._lock, contextlib.suppress(OSError):
            self._started_process()

    def close(self) -> None:
        """End the judge process, after the output it is at. An output that needs one later starts another."""
        with self._lock:
            self._end_process()

    def verdict(self, entry: Entry, output: Json, mode: Mode = Mode.FC) -> Verdict:
        """Judge an output as ``score_output`` does, with three more reasons to leave it ``Unscored``.

        ``output_too_large``: nobody looked at it. ``time_limit``: no verdict came in time. ``checker_died``: the judge
        process broke off, for want of memory for example, or could not be started. Raises ``ConfigError`` as
        ``score_output`` does.
        """
        if not can_run_away(entry, output, mode):
            return score_output(entry, output, self._official, mode)
        try:
            output_json = json.dumps(output)
        except RecursionError:
            return Unscored("output_too_large", "nested too deep to be written as JSON")
        if len(output_json) > LARGEST_OUTPUT:
            return Unscored("output_too_large", f"{len(output_json)} characters of JSON, more than {LARGEST_OUTPUT}")
        with self._lock:
            return self._verdict_of_process(entry, output_json, mode)

    def _verdict_of_process(self, entry: Entry, output_json: str, mode: Mode) -> Verdict:
        self._number += 1
        request = request_line(self._number, entry, output_json, mode)
        answered = False
        try:
            process = self._ready_process()
            reply = reply_from(process.ask(request, self._limit_seconds), self._number)
            answered = True
        except TimeoutError:
            return Unscored("time_limit", f"no verdict within {self._limit_seconds:g} s")
        except (OSError, ValueError) as error:
            return Unscored("checker_died", f"the judge process broke off: {error}")
        finally:
            if not answered:  # also after Ctrl-C: what it would answer next belongs to this output
                self._end_process()
        if isinstance(reply, ConfigError):
            raise reply
        return reply

    def _ready_process(self) -> JudgeProcess:
        process = self._started_process()
        if not self._is_ready:
            process.wait_until_ready(START_SECONDS)
            self._is_ready = True
        return process

    def _started_process(self) -> JudgeProcess:
        if self._process is None:
            command = worker_command(self._wheel_path, self._limit_seconds, sys.path)
            self._process, self._is_ready = JudgeProcess(self._spawn(command)), False
        return self._process

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _forget_process(self) -> None:
        process, self._process = self._process, None
        self._lock = threading.Lock()  # a thread that did not survive the fork may hold the old one
        if process is not None:
            process.disown()


@functools.lru_cache(maxsize=4)
def load_judge(wheel: Path | None = None) -> Judge:
    """Give this process's judge for a wheel, the one at hand unless a path is given; it is closed at exit."""
    judge = Judge(load_sources(wheel).official, open_pinned(wheel).path)
    atexit.register(judge.close)
    return judge


_JUDGES: weakref.WeakSet[Judge] = weakref.WeakSet()


def _after_fork() -> None:
    for judge in list(_JUDGES):
        judge._forget_process()


os.register_at_fork(after_in_child=_after_fork)

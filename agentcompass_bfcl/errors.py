"""One tree of errors: whatever this package refuses, it refuses as a ``BfclError``.

A message says what is wrong, where, and what to do about it, in one line: the command line prints it as it is.
"""

from __future__ import annotations

from pathlib import Path

_MOST_SHOWN = 160  # characters of a value in a message


def shortened(value: object) -> str:
    """Write a value for a message, cut where it would make the line unreadable."""
    text = str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


class BfclError(Exception):
    """Base of every refusal of this package."""


class ConfigError(BfclError, ValueError):
    """A setting has a value that is not allowed. Also a ``ValueError``: AgentCompass prints those in one line."""


class DatasetError(BfclError):
    """The official wheel, or a file in it, is missing, damaged or not the pinned one."""


class DrawError(ConfigError):
    """A draw names something unknown, is out of range, or selects nothing."""


class ShardError(ConfigError):
    """A shard's index and count do not fit each other."""


class CheckerError(BfclError):
    """The official checker cannot be loaded."""


class ResponseError(BfclError):
    """A reply or stored result does not have the shape of an assistant message."""


class TallyError(BfclError):
    """Counts contradict each other: more hits than samples, or one attempt counted twice."""


class ResultError(BfclError):
    """A stored result cannot be read as one of ours."""


class RunDirError(BfclError):
    """A run directory is missing, damaged or not a BFCL run."""


class OfficialResultsError(BfclError):
    """A place holds no result files of bfcl-eval, or one that is named has another name than theirs."""


class ExportError(BfclError):
    """A run cannot be written in the wanted form, or not to the wanted place."""


class MergeError(BfclError):
    """Shards do not make up one run: one is missing, twice, torn, of another run or damaged. ``faults`` says all."""

    def __init__(self, message: str, faults: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class CompareError(BfclError):
    """Two results are not about the same question, or do not say what came of each row."""


class GateError(BfclError):
    """A baseline cannot be read, or says something a gate cannot mean."""


class WorkerError(BfclError):
    """A worker that ran a shard failed, or could not be started."""


class RunFailedError(BfclError):
    """The host ended a run as failed. ``run_dir`` holds what it has; None when it has nothing."""

    def __init__(self, message: str, run_dir: Path | None) -> None:
        super().__init__(message)
        self.run_dir = run_dir


class EndpointError(BfclError):
    """The model endpoint cannot be used for any sample: refused, unauthorised, or unknown model."""


def counted(number: int, one: str, several: str) -> str:
    """Write how many there are of something: ``counted(1, "fault", "faults")`` is ``1 fault``."""
    return f"{number} {one if number == 1 else several}"


def one_line(text: str) -> str:
    """Put text on one line, without what would move a terminal's cursor or change its colours."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())

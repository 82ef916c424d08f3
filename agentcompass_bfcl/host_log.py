"""Failures of the host, said once: in its log with every traceback, on the terminal in the line that ends the run."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_TELLING = ("orchestration", "runner", "progress")
_HOST = "agentcompass.runtime"


@contextlib.contextmanager
def failures_said_once() -> Iterator[None]:
    """Keep what the host says about a failure out of the terminal while the block runs; run.log has all of it.

    The host logs a failure with its traceback and raises it as well, and on a full disk it does so for every row on its
    way, with a further traceback each time that run.log itself cannot be written.
    """
    loggers = [logging.getLogger(f"{_HOST}.{name}") for name in _TELLING]
    raising = logging.raiseExceptions
    for logger in loggers:
        logger.addFilter(_only_into_the_log)
    logging.raiseExceptions = False
    try:
        yield
    finally:
        logging.raiseExceptions = raising
        for logger in loggers:
            logger.removeFilter(_only_into_the_log)


def _only_into_the_log(record: logging.LogRecord) -> bool:
    # The terminal shows warnings and what is worse, run.log also what is less.
    values = record.args if isinstance(record.args, tuple) else ()
    if record.exc_info or any(isinstance(value, OSError) for value in values):
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return True

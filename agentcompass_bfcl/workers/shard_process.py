"""A worker process: it runs one shard, and ends when its driver does.

Started as ``python -c``, by ``command``; the run comes as a line of JSON on standard input, which stays open as long as
the driver lives. What it says goes to its log.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from agentcompass_bfcl.errors import BfclError, EndpointError, RunFailedError
from agentcompass_bfcl.host import HostRun, run_in_host

EXIT_DONE, EXIT_ERROR, EXIT_UNUSABLE_ENDPOINT, EXIT_RUN_FAILED = 0, 1, 5, 6
"""How a worker ends. After the last, the host called the run failed, and a result is there all the same."""

_DRIVER = 0  # the file descriptor of standard input


def command(import_path: Sequence[str]) -> list[str]:
    """Write the command of a worker that finds modules exactly where this process finds them."""
    places = json.dumps([os.path.abspath(place) for place in import_path])  # noqa: PTH100 - "" is the directory we are in
    start = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        "from agentcompass_bfcl.workers.shard_process import main; sys.exit(main())"
    )
    return [sys.executable, "-c", start, places]


def run_line(run: HostRun) -> bytes:
    """Write a run as the line a worker reads. The key travels here, and on no command line."""
    return f"{json.dumps(asdict(run), default=str)}\n".encode()


def read_run(line: bytes) -> HostRun:
    """Read the line back."""
    fields = json.loads(line)
    return HostRun(**{**fields, "results_dir": Path(fields["results_dir"])})


def main() -> int:
    """Run the shard that stands on standard input. The last line said is why it ended, where that needs a word."""
    run = read_run(_first_line())
    # The driver stops its workers itself, and some shells start background jobs with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_driver, daemon=True).start()
    try:
        run_in_host(run)
    except EndpointError as error:
        return _said(error, EXIT_UNUSABLE_ENDPOINT)
    except RunFailedError as error:
        has_result = error.run_dir is not None and (error.run_dir / "metrics.json").is_file()
        return _said(error, EXIT_RUN_FAILED if has_result else EXIT_ERROR)
    except BfclError as error:
        return _said(error, EXIT_ERROR)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return EXIT_DONE


def _first_line() -> bytes:
    # Not through sys.stdin: a thread that waits in it at the end of this process makes the interpreter abort.
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(_DRIVER, 65536)
        if not piece:
            raise SystemExit("no run on standard input")
        line += piece
    return line


def _end_with_driver() -> None:
    """End this process, at once, when the driver's end of the pipe closes: also after the driver was killed."""
    while os.read(_DRIVER, 65536):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _said(error: BfclError, code: int) -> int:
    print(" ".join(str(error).split()), file=sys.stderr, flush=True)
    return code

"""A worker process: it runs one shard after the other, and ends when its driver does.

Started as ``python -c``, by ``command``. Shards come as lines of JSON on standard input, which stays open as long as
the driver lives; on standard output the worker says how each one ended, a line with a number and, where that needs
words, why. What is said besides goes to the shard's log. A worker serves several shards because importing AgentCompass
takes it some seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from agentcompass_bfcl.errors import BfclError, EndpointError, RunFailedError
from agentcompass_bfcl.host import HostRun, run_in_host

EXIT_DONE, EXIT_ERROR, EXIT_UNUSABLE_ENDPOINT, EXIT_RUN_FAILED = 0, 1, 5, 6
"""How a shard ends, and how a worker does after its last. After the last of these the host called the run failed, and
a result is there all the same."""

NO_MORE = b"null\n"
"""The line after the last shard."""

_MOST_WORDS = 500  # characters; a pipe takes them at once

_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = 0, 1, 2


def command(import_path: Sequence[str]) -> list[str]:
    """Write the command of a worker that finds modules exactly where this process finds them."""
    places = json.dumps([os.path.abspath(place) for place in import_path])  # noqa: PTH100 - "" is the directory we are in
    start = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        "from agentcompass_bfcl.workers.shard_process import main; sys.exit(main())"
    )
    return [sys.executable, "-c", start, places]


def shard_line(run: HostRun, log: Path) -> bytes:
    """Write a shard's run as the line a worker reads. The key travels here, and on no command line."""
    return f"{json.dumps({'run': asdict(run), 'log': str(log)}, default=str)}\n".encode()


def read_shard(line: bytes) -> tuple[HostRun, Path]:
    """Read the line back."""
    content = json.loads(line)
    fields = content["run"]
    return HostRun(**{**fields, "results_dir": Path(fields["results_dir"])}), Path(content["log"])


def main() -> int:
    """Run the shards that come. Why one ended, where that needs words, is the last line of its log as well."""
    reported = os.dup(_STANDARD_OUTPUT)
    os.dup2(_STANDARD_ERROR, _STANDARD_OUTPUT)
    # The driver stops its workers itself, and some shells start background jobs with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    code = EXIT_DONE
    try:
        while (line := lines.get()) != NO_MORE:
            run, log = read_shard(line)
            _say_into(log)
            code, why = _run(run)
            os.write(reported, f"{code} {why}".strip().encode("utf-8", "replace") + b"\n")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return code


def _listen(lines: queue.SimpleQueue[bytes]) -> None:
    """Pass lines on. End this process, at once, when the driver's end of the pipe closes: also after it was killed."""
    # Not through sys.stdin: a thread that waits in it at the end of this process makes the interpreter abort.
    begun = b""
    while piece := os.read(_STANDARD_INPUT, 65536):
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            lines.put(line + b"\n")
    os.kill(os.getpid(), signal.SIGKILL)


def _say_into(log: Path) -> None:
    """Let whatever is said from now on, by whatever library, go to this log; if it cannot be opened, where it went."""
    with contextlib.suppress(OSError), log.open("ab") as file:
        sys.stdout.flush()
        sys.stderr.flush()
        for place in (_STANDARD_OUTPUT, _STANDARD_ERROR):
            os.dup2(file.fileno(), place)


def _run(run: HostRun) -> tuple[int, str]:
    try:
        run_in_host(run)
    except EndpointError as error:
        return EXIT_UNUSABLE_ENDPOINT, _said(error)
    except RunFailedError as error:
        has_result = error.run_dir is not None and (error.run_dir / "metrics.json").is_file()
        return EXIT_RUN_FAILED if has_result else EXIT_ERROR, _said(error)
    except BfclError as error:
        return EXIT_ERROR, _said(error)
    return EXIT_DONE, ""


def _said(error: BfclError) -> str:
    words = " ".join(str(error).split())
    with contextlib.suppress(OSError):  # a log on a full disk
        print(words, file=sys.stderr, flush=True)
    return words[:_MOST_WORDS]

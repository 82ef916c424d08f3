"""The command line ``agentcompass-bfcl``: parse, call, print. What a command needs is imported when it runs."""

from __future__ import annotations

import sys

from agentcompass_bfcl.cli.parser import build_parser
from agentcompass_bfcl.errors import BfclError, one_line

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130
_HOST_COMMAND = "agentcompass"


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 error, 2 usage, 130 interrupted.

    Errors go to stderr in one line that says what to do.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == [_HOST_COMMAND]:
        # The host parses its own options, ``--help`` included.
        from agentcompass_bfcl.cli.host import run_host_command

        return run_host_command(arguments[1:])
    namespace = build_parser().parse_args(arguments)
    try:
        return int(namespace.command(namespace))
    except BfclError as error:
        print(f"agentcompass-bfcl: {one_line(str(error))}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("agentcompass-bfcl: interrupted; a run goes on with the same command and --reuse", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe left; there is nobody to tell
        return EXIT_ERROR

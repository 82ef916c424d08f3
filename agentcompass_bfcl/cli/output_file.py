"""Where a command writes what it was asked for: a file, or standard output for ``-``."""

from __future__ import annotations

import sys
from pathlib import Path

from agentcompass_bfcl.errors import ExportError

STANDARD_OUTPUT = Path("-")


def write_output(file: Path, text: str) -> None:
    """Write text to a file, over what it held, or to standard output. Raises ``ExportError`` naming the file."""
    if file == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{file}: cannot be written to ({error.strerror})") from None

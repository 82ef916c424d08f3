"""``python -m agentcompass_bfcl``: the command line."""

from __future__ import annotations

import sys

from agentcompass_bfcl.cli import main

if __name__ == "__main__":
    sys.exit(main())

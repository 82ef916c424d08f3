"""Whether the parsers of the extra ``prompt`` are installed; CI has them."""

from __future__ import annotations

import pytest

from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.parsers import INSTALL_HINT, load_parser_modules
from agentcompass_bfcl.subsets import Language


def _are_here() -> bool:
    try:
        load_parser_modules("a test")
    except ConfigError:
        return False
    return True


needs_parsers = pytest.mark.skipif(
    not _are_here(), reason=f"Java and JavaScript need the parsers of prompt mode: {INSTALL_HINT}"
)


def skip_without_parsers(language: Language) -> None:
    """Skip the rest of a test about a language that needs them."""
    if language is not Language.PYTHON and not _are_here():
        pytest.skip(f"{language.value} needs the parsers of prompt mode: {INSTALL_HINT}")

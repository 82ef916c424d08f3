"""The parsers that prompt mode needs for Java and JavaScript: which, in which versions, and whether they are here."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, ModuleType

from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.stand_ins import tree_sitter_modules
from agentcompass_bfcl.subsets import Language, subset_named

INSTALL_HINT = "pip install 'agentcompass-bfcl[prompt]'"

# The grammars decide what is a call, so they are upstream's versions to the digit: with tree-sitter-javascript 0.25
# 11 of 40,750 mutated answers are decoded otherwise. The library only has to read them: on the same answers, its
# versions 0.23.2, 0.24.0, 0.25.2 and 0.26.1 all agree with upstream's 0.21.3, which has no wheel for Python 3.13.
_VERSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"tree-sitter": ("0.25.", "0.26."), "tree-sitter-java": ("0.21.0",), "tree-sitter-javascript": ("0.21.4",)}
)
_GRAMMARS = ("tree_sitter_java", "tree_sitter_javascript")

type Installed = Callable[[str], str | None]


def installed_version(distribution: str) -> str | None:
    """Look up the version of an installed distribution; None when there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def require_prompt_parsers(subsets: Iterable[str], installed: Installed = installed_version) -> None:
    """Raise ``ConfigError`` when prompt mode cannot score these subsets here; call it before the first request.

    Python rows need nothing; Java and JavaScript rows need the parsers of the extra ``prompt``.
    """
    wanting = [name for name in dict.fromkeys(subsets) if subset_named(name).language is not Language.PYTHON]
    if wanting:
        load_parser_modules(f"prompt mode with rows of {' and '.join(wanting)}", installed)


def load_parser_modules(purpose: str, installed: Installed = installed_version) -> dict[str, ModuleType]:
    """Load the stand-ins that upstream's Java and JavaScript parsers import (some milliseconds).

    Raises ``ConfigError`` that says what is missing for ``purpose`` and how to install it.
    """
    fault = _fault(installed)
    if fault is not None:
        raise ConfigError(f"{purpose} needs {fault}: {INSTALL_HINT}")
    try:
        return tree_sitter_modules(_GRAMMARS)
    except ImportError as error:
        raise ConfigError(f"{purpose} needs parsers that do not load ({error}): {INSTALL_HINT}") from None


def _fault(installed: Installed) -> str | None:
    for distribution, accepted in _VERSIONS.items():
        found = installed(distribution)
        if found is None:
            return f"the package {distribution}, which is not installed"
        if not any(found == version or (version.endswith(".") and found.startswith(version)) for version in accepted):
            versions = " or ".join(version.rstrip(".") for version in accepted)
            return f"{distribution} {versions}, and {found} is installed"
    return None

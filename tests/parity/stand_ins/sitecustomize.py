"""Stand-ins for the client libraries that bfcl-eval imports for every model it knows and that evaluating never uses.

Python runs a module of this name at start-up when it is on ``PYTHONPATH``. An installed library is preferred: only
what is missing is stood in for, by modules whose every attribute is an empty class.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_NEVER_USED = frozenset(
    {"anthropic", "boto3", "cohere", "datamodel_code_generator", "google", "httpx", "mistralai", "openai", "pandas"}
    | {"qwen_agent", "requests", "writerai"}
)


class _AnyAttribute(type):
    def __getattr__(cls, name: str) -> type:
        return _empty_class(name)


def _empty_class(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    # An exception, since some are named in ``except`` clauses; handlers make clients of others when they start.
    return _AnyAttribute(name, (Exception,), {"__init__": lambda self, *args, **options: None})


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> type:
        return _empty_class(name)


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] in _NEVER_USED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it was made."""


sys.meta_path.append(_Finder())

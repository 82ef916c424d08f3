"""What official modules import in the place of the real thing; nobody else can import it.

Among it are interfaces they were written against and that are gone: ``ast`` of Python 3.11, tree-sitter 0.21. No
verdict changes by any of it.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import threading
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from agentcompass_bfcl.errors import CheckerError

_WARNINGS = threading.Lock()


def stub(name: str, **attributes: object) -> ModuleType:
    """Make a module that holds just these attributes."""
    module = ModuleType(name)
    vars(module).update(attributes)
    return module


def refusal(name: str) -> type:
    """Make what stands for a name that official code imports and must never call: calling it raises ``CheckerError``.

    A class, so that ``dict[str, FileLock]`` in an annotation still evaluates.
    """

    def refuse(_self: object, *_args: object, **_kwargs: object) -> None:
        raise CheckerError(f"official code called {name}, which single-turn scoring should not need")

    return type(name, (), {"__init__": refuse})


def ast_module() -> ModuleType:
    """Make an ``ast`` that still has the node classes Python 3.12 warns of and 3.14 lacks, and parses in silence.

    Upstream asks ``isinstance(node, ast.NameConstant)`` only after ``ast.Constant``, which covers it. Where warnings
    are errors, ``ast.parse`` would fail on a text such as ``"\\d"``, and a verdict hang on the interpreter's options.
    """
    public = {name: value for name, value in vars(ast).items() if not name.startswith("_")}
    return stub("ast", **{**public, "parse": _parse, "NameConstant": _Nothing, "Ellipsis": _Nothing})


class _Nothing:
    """A class without instances."""


def _parse(*args: Any, **kwargs: Any) -> Any:
    # The warning filters belong to the process: two threads that changed them at once could leave them changed.
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(*args, **kwargs)


def tree_sitter_modules(grammars: tuple[str, ...]) -> dict[str, ModuleType]:
    """Make ``tree_sitter`` with the few names of version 0.21 that upstream's parsers use, and the grammars' modules.

    Raises ``ImportError`` when one of the real modules cannot be imported.
    """
    library = importlib.import_module("tree_sitter")
    modules = {"tree_sitter": stub("tree_sitter", Language=_language_maker(library), Parser=_parser_class(library))}
    for grammar in grammars:
        modules[grammar] = stub(grammar, language=importlib.import_module(grammar).language)
    return modules


def _language_maker(library: Any) -> Any:
    def language(pointer: int, _name: str) -> Any:
        """Take a grammar as a number, which today's library warns of; it wants the number in a capsule."""
        return library.Language(_capsule(pointer, _CAPSULE_NAME, None))

    return language


_CAPSULE_NAME = b"tree_sitter.Language"  # kept here, since a capsule keeps no copy of its name
_capsule = ctypes.pythonapi["PyCapsule_New"]  # a function object of our own, so that its types are set for nobody else
_capsule.restype = ctypes.py_object
_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def _parser_class(library: Any) -> type:
    class Parser:
        def __init__(self) -> None:
            self._parser = library.Parser()

        def set_language(self, language: Any) -> None:
            self._parser.language = language

        def parse(self, source: bytes) -> _Tree:
            return _Tree(self._parser.parse(source))

    return Parser


class _Tree:
    def __init__(self, tree: Any) -> None:
        self.root_node = _Root(tree.root_node)


class _Root:
    """A tree's root with the method ``sexp``; all other attributes, and all other nodes, are the library's own."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def sexp(self) -> str:
        """Say whether the text has errors, all that upstream looks for: ``"(ERROR)"``, or the kind of the root.

        The library writes out a whole tree by recursion in C, which kills the process for 100,000 brackets.
        """
        return "(ERROR)" if any(node.is_error for node in _faulty_nodes(self._node)) else f"({self._node.type})"


def _faulty_nodes(root: Any) -> Iterator[Any]:
    """Walk over the nodes in or below which the parser had to recover."""
    waiting = [root] if root.has_error else []
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in node.children if child.has_error)

"""Arithmetic on literals: what remains of upstream's ``eval`` of model text.

Upstream's Python decoder (``model_handler/utils.py``, ``resolve_ast_by_type``) evaluates any binary operation a
model writes, function calls included. Here only operators on literal values are computed, with Python's own
results; everything else raises ``ValueError``, which the decoder reports as ``decoder_failed``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

type Literal = Any  # int, float, complex, str, bytes, bool, None or a container of these

# Upstream would compute 9**9**9 until it runs out of memory; no real answer comes near these sizes.
_LARGEST_BITS = 65_536
_LONGEST = 1_000_000

_BINARY: dict[type[ast.operator], Callable[[Literal, Literal], Literal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
}
_UNARY: dict[type[ast.unaryop], Callable[[Literal], Literal]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}


def evaluate_literals(source: str) -> Literal:
    """Compute an expression made of literals and operators, as Python would.

    Raises ``ValueError`` for names, calls and anything else that is not a literal, for results beyond a size no
    answer has, and whatever Python raises for the operation itself (``1 / 0``, ``1 + 'a'``).
    """
    return _value(ast.parse(source, mode="eval").body)


def _value(node: ast.expr) -> Literal:
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp():
            return _UNARY[type(node.op)](_value(node.operand))
        case ast.BinOp():
            left, right = _value(node.left), _value(node.right)
            _refuse_giants(node.op, left, right)
            return _BINARY[type(node.op)](left, right) if type(node.op) in _BINARY else _unsupported(node)
        case ast.List():
            return [_value(item) for item in node.elts]
        case ast.Tuple():
            return tuple(_value(item) for item in node.elts)
        case ast.Set():
            return {_value(item) for item in node.elts}
        case ast.Dict() if None not in node.keys:
            return {_value(key): _value(item) for key, item in zip(node.keys, node.values, strict=True) if key}
        case _:
            return _unsupported(node)


def _unsupported(node: ast.expr) -> Literal:
    raise ValueError(f"{type(node).__name__} is not arithmetic on literals")


def _refuse_giants(op: ast.operator, left: Literal, right: Literal) -> None:
    if isinstance(op, ast.Pow) and isinstance(left, int) and isinstance(right, int):
        size, limit = left.bit_length() * abs(right), _LARGEST_BITS
    elif isinstance(op, ast.LShift) and isinstance(left, int) and isinstance(right, int):
        size, limit = left.bit_length() + max(right, 0), _LARGEST_BITS
    elif isinstance(op, ast.Mult) and isinstance(left, int) and isinstance(right, int):
        size, limit = left.bit_length() + right.bit_length(), _LARGEST_BITS
    elif isinstance(op, ast.Mult):
        size, limit = _repeated_size(left, right), _LONGEST
    elif isinstance(op, ast.Mod) and isinstance(left, str | bytes):
        # A width such as '%9999999999d' allocates it: formatting is not arithmetic, and no answer needs it.
        raise ValueError("string formatting is not arithmetic on literals")
    else:
        return
    if size > limit:
        raise ValueError("the result is too large to be an answer")


def _repeated_size(left: Literal, right: Literal) -> int:
    sequence, times = (right, left) if isinstance(left, int) else (left, right)
    if isinstance(times, int) and isinstance(sequence, str | bytes | list | tuple):
        return _size(sequence) * max(times, 0)
    return 0


def _size(value: Literal) -> int:
    # With all that is inside: the lists in [[[0] * 10**6] * 10**6] are one object, but not to whoever prints them.
    if isinstance(value, list | tuple):
        return 1 + sum(map(_size, value))
    return len(value) if isinstance(value, str | bytes) else 1

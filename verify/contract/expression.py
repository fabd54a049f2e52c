"""Arithmetic expressions over named values, for fixtures and contracts.

Grammar: integers and floats, names, ``+ - * // / % **``, unary minus, comparisons (chained), ``and or not``,
indexing (``len[0]``), and the calls ``min max abs sum ceil_div round_up log2 sqrt``. Nothing else: an
expression comes from a TOML file, so its syntax tree is interpreted here, never passed to ``eval``.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Value = int | float | bool | tuple[int, ...]


class ExpressionError(ValueError):
    """An expression cannot be parsed or evaluated; the message names the expression and the part."""


def ceil_div(a: int, b: int) -> int:
    """Smallest integer not below a / b, for integers with b > 0."""
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    """Smallest multiple of b that is not below a."""
    return ceil_div(a, b) * b


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "sum": sum,
    "ceil_div": ceil_div,
    "round_up": round_up,
    "log2": math.log2,
    "sqrt": math.sqrt,
}
MAX_LENGTH = 2000
"""Characters of an expression; this also limits the depth of its syntax tree."""

MAX_BITS = 256
"""Of an intermediate integer: far beyond any size or offset, and still fast to compute."""


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    shown = repr(text if len(text) <= 80 else f"{text[:77]}...")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"{shown} has {len(text)} characters; the limit is {MAX_LENGTH}")
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{shown} is not an expression: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ExpressionError(f"{shown} is nested too deeply") from None
    except ValueError as error:  # a NUL character
        raise ExpressionError(f"{shown} is not an expression: {error}") from None


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Names that an expression uses, except functions."""
    found = {node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name)}
    return frozenset(found - _FUNCTIONS.keys())


def evaluate(expression: int | float | str, values: Mapping[str, Any]) -> Any:
    """Evaluate ``expression`` over ``values``.

    Raises ExpressionError, naming the expression, for an unknown name, an operation outside the grammar, or
    arithmetic that fails (division by zero, index out of range).
    """
    if not isinstance(expression, str):
        return expression
    try:
        return _walk(_parse(expression), values)
    except ExpressionError as error:
        raise ExpressionError(f"in {expression!r}: {error}") from None
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        raise ExpressionError(f"in {expression!r}: {error}") from None
    except RecursionError:
        raise ExpressionError(f"in {expression!r}: is nested too deeply") from None


def _walk(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name(id=name):
            if name not in values:
                raise ExpressionError(f"unknown name {name!r} (known: {', '.join(sorted(values))})")
            return values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            a, b = _number(_walk(left, values), left), _number(_walk(right, values), right)
            if isinstance(op, ast.Pow):
                _check_power(a, b)
            return _bounded(_BINARY[type(op)](a, b))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(_walk(operand, values), operand)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _walk(operand, values)
        case ast.BoolOp(op=op, values=parts):
            outcomes = (bool(_walk(part, values)) for part in parts)
            return all(outcomes) if isinstance(op, ast.And) else any(outcomes)
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(o) in _COMPARE for o in ops):
            operands = [_walk(left, values), *(_walk(part, values) for part in rest)]
            return all(_COMPARE[type(o)](a, b) for o, a, b in zip(ops, operands, operands[1:], strict=False))
        case ast.Subscript(value=value, slice=index):
            return _walk(value, values)[_walk(index, values)]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_walk(arg, values) for arg in args))
        case _:
            raise ExpressionError(f"{ast.unparse(node)!r} is not allowed in an expression")


def _number(value: Any, node: ast.expr) -> int | float:
    """Check that an operand is a number: Python would repeat a list that is multiplied by a number."""
    if not isinstance(value, int | float):
        raise ExpressionError(f"{ast.unparse(node)!r} is not a number")
    return value


def _check_power(base: int | float, exponent: int | float) -> None:
    if not isinstance(exponent, int):
        raise ExpressionError("an exponent must be an integer")
    if isinstance(base, int) and base.bit_length() * abs(exponent) > MAX_BITS and abs(base) > 1:
        raise ExpressionError(f"a power of more than {MAX_BITS} bits")


def _bounded(value: int | float) -> int | float:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ExpressionError(f"a number of more than {MAX_BITS} bits")
    return value

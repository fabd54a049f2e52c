"""Faults of values: constants, initial values, factors, maxima, signs, bits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from verify.mutation.kinds import Kind
from verify.mutation.operators.code import Change, Code, Operator, dropped, replaced, statement_of
from verify.source.syntax import enclosing, nodes_of

if TYPE_CHECKING:
    from tree_sitter import Node

_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F']+|[0-9']+)[uUlL]*")
_ZERO = re.compile(r"0(?:\.0*)?[fF]?|0\.[fF]?|-?(?:INFINITY|FLT_MAX|CUDART_INF_F)")
_EXPONENTIALS = ("exp", "expf", "exp2", "exp2f", "__expf", "ex2", "h2exp", "hexp", "exp10f")
_EXPONENTIAL = re.compile(r"\bex2\.")
_EXTREMES = ("fmaxf", "fminf", "fmax", "fmin", "max", "min", "__hmax", "__hmin", "__hmax2", "__hmin2")
_OTHER_SIGN = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}


def _constant(code: Code) -> Iterator[Change]:
    for node in code.find("number_literal"):
        if _INTEGER.fullmatch(code.text(node)) and enclosing(node, "gnu_asm_expression") is None:
            yield Change((replaced(node, f"({code.text(node)} + 1)"),), f"a {code.text(node)} is one more")


def _initial(code: Code) -> Iterator[Change]:
    """Where a maximum, a minimum or a sum begins."""
    for node in code.find("init_declarator"):
        value = node.child_by_field_name("value")
        declaration = node.parent
        if value is None or declaration is None or declaration.parent is None:
            continue
        if declaration.parent.type == "for_statement" or not _ZERO.fullmatch(code.text(value)):
            continue
        other = "1" if code.text(value).startswith("0") else "0"
        name = code.name_of(node.child_by_field_name("declarator"))
        yield Change((replaced(value, other),), f"{name} begins with {other}, not {code.text(value)}")


def _rescale(code: Code) -> Iterator[Change]:
    for node in code.find("assignment_expression"):
        operator = node.child_by_field_name("operator")
        statement = statement_of(node)
        if operator is not None and operator.type == "*=" and statement is not None:
            yield Change((dropped(statement),), f"{code.text(node)} is missing")
    for call in code.calls(*_EXPONENTIALS, *code.wrappers(_EXPONENTIAL), *_exponential_functions(code)):
        yield Change((replaced(call, "1.0f"),), f"{code.text(call)} is 1")


def _exponential_functions(code: Code) -> Iterator[str]:
    """Functions of the source that are little more than the instruction."""
    for function in code.functions:
        assembly = code.tree.find("gnu_asm_expression", within=function.body)
        if len(function.body.named_children) <= 4 and any(
            _EXPONENTIAL.search(code.text(a)) for a in assembly
        ):
            yield function.name


def _first(code: Code) -> Iterator[Change]:
    for call in code.calls(*_EXTREMES):
        given = code.arguments(call)
        if len(given) == 2:
            for kept, lost in (given, given[::-1]):
                text = f"({code.text(kept)})"
                yield Change((replaced(call, text),), f"{code.text(call)} does not look at {code.text(lost)}")


def _sign(code: Code) -> Iterator[Change]:
    for node in code.find("binary_expression", "assignment_expression"):
        operator = node.child_by_field_name("operator")
        if operator is not None and operator.type in _OTHER_SIGN:
            other = _OTHER_SIGN[operator.type]
            yield Change((replaced(operator, other),), f"{code.text(node)} has {other}")
    for node in code.find("unary_expression"):
        operator, argument = node.child_by_field_name("operator"), node.child_by_field_name("argument")
        if operator is not None and operator.type == "-" and argument is not None:
            yield Change((replaced(node, code.text(argument)),), f"{code.text(node)} has lost its sign")


def _bits(code: Code) -> Iterator[Change]:
    """A nibble, a byte, a group of bits: the shift or the mask that picks it."""
    for node in code.find("binary_expression"):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if operator is None or left is None or right is None:
            continue
        shifts = operator.type in ("<<", ">>") and not _prints(code, node)
        if shifts or (operator.type == "&" and _is_mask(code, right)):
            what = "shift" if shifts else "mask"
            yield Change(
                (replaced(node, f"({code.text(left)})"),), f"{code.text(node)} is without its {what}"
            )


def _is_mask(code: Code, node: Node) -> bool:
    return any(n.type == "number_literal" for n in nodes_of(node)) or code.text(node).lower().endswith("mask")


def _prints(code: Code, node: Node) -> bool:
    """Whether a shift writes to a stream."""
    return any(n.type == "string_literal" for n in nodes_of(node))


OPERATORS = (
    Operator("rescale-dropped", Kind.RESCALE, _rescale),
    Operator("initial-value", Kind.EMPTY, _initial),
    Operator("max-to-first", Kind.RESCALE, _first),
    Operator("sign", Kind.ARITHMETIC, _sign),
    Operator("bits-dropped", Kind.QUANTISED, _bits),
    Operator("constant-plus-1", Kind.ARITHMETIC, _constant),
)

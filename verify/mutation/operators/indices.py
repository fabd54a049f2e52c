"""Faults of indices: terms, strides, remainders, the width of an index, and which element it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from verify.mutation.kinds import Kind
from verify.mutation.operators.code import Change, Code, Operator, replaced
from verify.source.syntax import enclosing, nodes_of

if TYPE_CHECKING:
    from tree_sitter import Node

_WIDE = re.compile(r"(?:unsigned )?long long(?: int)?|(?:std::)?(?:u?int64_t|size_t|ptrdiff_t|ssize_t)")
_WIDE_NUMBER = re.compile(r"(\d+)[uU]?[lL]{2}")
_PLACES = ("declaration", "expression_statement", "return_statement", "argument_list", "for_statement")


def _binary(code: Code, *operators: str) -> Iterator[tuple[Node, Node, Node]]:
    for node in code.find("binary_expression"):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is not None and right is not None and operator is not None and operator.type in operators:
            yield node, left, right


def _is_index(code: Code, node: Node) -> bool:
    """Whether a sum makes an address: in brackets, or one of its terms is a product with a name."""
    if enclosing(node, "subscript_argument_list", *_PLACES) is not None:
        around = enclosing(node, "subscript_argument_list", *_PLACES)
        if around is not None and around.type == "subscript_argument_list":
            return True
    return any(
        n.type == "*" and n.parent is not None and n.parent.type == "binary_expression"
        for n in nodes_of(node)
    )


def _modulo(code: Code) -> Iterator[Change]:
    for node, left, _ in _binary(code, "%"):
        yield Change((replaced(node, f"({code.text(left)})"),), f"{code.text(node)} is without its remainder")


def _term(code: Code) -> Iterator[Change]:
    for node, left, right in _binary(code, "+"):
        if _is_index(code, node):
            for kept, lost in ((left, right), (right, left)):
                if kept is left or _is_term(lost):
                    text = f"({code.text(kept)})"
                    yield Change(
                        (replaced(node, text),), f"the term {code.text(lost)} of an index is missing"
                    )


def _is_term(node: Node) -> bool:
    """The left side of a sum is one term only where it is no sum itself."""
    operator = node.child_by_field_name("operator")
    return node.type != "binary_expression" or operator is None or operator.type not in ("+", "-")


def _stride(code: Code) -> Iterator[Change]:
    for node, left, right in _binary(code, "*"):
        if all(
            side.type in ("identifier", "field_expression", "qualified_identifier") for side in (left, right)
        ):
            yield Change((replaced(node, code.text(left)),), f"{code.text(node)} is without its factor")


def _narrowed(code: Code) -> Iterator[Change]:
    for node in code.find(
        "sized_type_specifier", "type_identifier", "primitive_type", "qualified_identifier"
    ):
        around = enclosing(node, "declaration", "type_descriptor", "parameter_declaration")
        if (
            around is None
            or around.child_by_field_name("type") != node
            or not _WIDE.fullmatch(code.text(node))
        ):
            continue
        declarator = around.child_by_field_name("declarator")
        if declarator is not None and any("pointer" in n.type for n in _declarators(declarator)):
            continue
        narrow = (
            "unsigned" if code.text(node).startswith(("unsigned", "u", "size", "std::u", "std::s")) else "int"
        )
        yield Change((replaced(node, narrow),), f"a {code.text(node)} has 32 bits")
    for node in code.find("number_literal"):
        if match := _WIDE_NUMBER.fullmatch(code.text(node)):
            yield Change((replaced(node, match[1]),), f"{code.text(node)} has 32 bits")


def _declarators(declarator: Node) -> Iterator[Node]:
    """A declarator and those inside it."""
    inner: Node | None = declarator
    while inner is not None:
        yield inner
        inner = inner.child_by_field_name("declarator")


def _next_element(code: Code) -> Iterator[Change]:
    for node in code.find("subscript_expression"):
        listed = node.child_by_field_name("indices")
        if listed is not None and len(listed.named_children) == 1:
            index = listed.named_children[0]
            more = f"{code.text(index)} + 1"
            yield Change((replaced(index, more),), f"{code.text(node)} is one element too far")


def _first_element(code: Code) -> Iterator[Change]:
    for node in code.find("subscript_expression"):
        listed = node.child_by_field_name("indices")
        if listed is not None and len(listed.named_children) == 1:
            index = listed.named_children[0]
            if index.type != "number_literal":
                yield Change((replaced(index, "0"),), f"{code.text(node)} is always the first element")


OPERATORS = (
    Operator("modulo-dropped", Kind.RING, _modulo),
    Operator("index-term-dropped", Kind.STRIDES, _term),
    Operator("stride-dropped", Kind.STRIDES, _stride),
    Operator("index-narrowed", Kind.OVERFLOW, _narrowed),
    Operator("next-element", Kind.STRIDES, _next_element),
    Operator("first-element", Kind.STRIDES, _first_element),
)

"""Faults of comparisons, bounds, predicates and guards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from verify.mutation.edit import Edit
from verify.mutation.kinds import Kind
from verify.mutation.operators.code import Change, Code, Operator, replaced

if TYPE_CHECKING:
    from tree_sitter import Node

_OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_AWAY = {"<": "- 1", "<=": "+ 1", ">": "+ 1", ">=": "- 1"}
"""Where the bound goes that the other comparison does not reach already."""
_LEAVES = ("return_statement", "continue_statement", "break_statement")


def _comparisons(code: Code) -> Iterator[tuple[Node, Node, Node, Node]]:
    """(whole, left, operator, right) of each comparison of order."""
    for node in code.find("binary_expression"):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is not None and right is not None and operator is not None and operator.type in _OTHER:
            yield node, left, operator, right


def _comparison(code: Code) -> Iterator[Change]:
    for node, _, operator, _ in _comparisons(code):
        other = _OTHER[operator.type]
        yield Change((replaced(operator, other),), f"{code.text(node)} compares by {other}")


def _bound(code: Code) -> Iterator[Change]:
    for node, _, operator, right in _comparisons(code):
        away = _AWAY[operator.type]
        yield Change(
            (replaced(right, f"({code.text(right)}) {away}"),), f"{code.text(node)} has its bound {away}"
        )


def _predicate(code: Code) -> Iterator[Change]:
    for node in code.find("if_statement", "while_statement"):
        condition = node.child_by_field_name("condition")
        value = condition.child_by_field_name("value") if condition is not None else None
        if (
            value is not None
            and value.type != "declaration"
            and "constexpr" not in [c.type for c in node.children]
        ):
            yield Change(
                (replaced(value, f"!({code.text(value)})"),), f"the condition {code.text(value)} is inverted"
            )
    for node in code.find("conditional_expression"):
        condition = node.child_by_field_name("condition")
        if condition is not None:
            text = code.text(condition)
            yield Change((replaced(condition, f"!({text})"),), f"the condition {text} is inverted")


def _guard(code: Code) -> Iterator[Change]:
    """A condition under which something is left, or is done, holds never, or always."""
    for node in code.find("if_statement"):
        condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        value = condition.child_by_field_name("value") if condition is not None else None
        plain = node.child_by_field_name("alternative") is None and "constexpr" not in [
            c.type for c in node.children
        ]
        if condition is None or value is None or value.type == "declaration" or then is None or not plain:
            continue
        text = code.text(value)
        statements = [c for c in then.named_children if c.type != "comment"]
        only = statements[0] if then.type == "compound_statement" and len(statements) == 1 else then
        if only.type in _LEAVES:
            yield Change((replaced(value, f"false && ({text})"),), f"nothing is left when {text}")
        else:
            yield Change((replaced(value, f"true || ({text})"),), f"what only {text} allows is always done")
    for node in code.find("binary_expression"):
        operator = node.child_by_field_name("operator")
        if operator is None or operator.type not in ("&&", "||"):
            continue
        for side in ("left", "right"):
            part = node.child_by_field_name(side)
            if part is None or _is_same_chain(part, operator.type):
                continue
            other = node.child_by_field_name("right" if side == "left" else "left")
            if other is None:
                continue
            whole = Edit(node.start_byte, node.end_byte, f"({code.text(other)})")
            yield Change((whole,), f"the condition {code.text(part)} is missing")


def _is_same_chain(node: Node, operator: str) -> bool:
    """``a && b`` as the left side of ``a && b && c``: its parts have their own turn."""
    inner = node.child_by_field_name("operator")
    return node.type == "binary_expression" and inner is not None and inner.type == operator


OPERATORS = (
    Operator("comparison", Kind.BOUNDS, _comparison),
    Operator("bound-moved", Kind.BOUNDS, _bound),
    Operator("predicate-inverted", Kind.BOUNDS, _predicate),
    Operator("guard-removed", Kind.LAUNCH, _guard),
)

"""Faults in one instantiation of a template only, which others' fixtures do not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from verify.mutation.kinds import Kind
from verify.mutation.operators.code import Change, Code, Operator, replaced, statement_of
from verify.mutation.operators.synchronisation import BARRIERS
from verify.source.declarations import Function

if TYPE_CHECKING:
    from tree_sitter import Node

_LATE = {"<": "<=", ">": ">="}


def _instances(code: Code, function: Function) -> list[str]:
    """Conditions of the template's own values, one for each literal that the source instantiates it with."""
    values = [p for p in function.template if p.kind not in ("typename", "class") and p.name]
    if not values:
        return []
    # Templates pass their parameter on under its name, so any list with a number at that place counts.
    literals: dict[str, None] = {}
    for listed in code.tree.find("template_argument_list"):
        given = listed.named_children
        if len(given) == len(function.template):
            at = function.template.index(values[0])
            if given[at].type == "number_literal":
                literals[code.text(given[at])] = None
    return [f"{values[0].name} == {literal}" for literal in literals] if len(literals) > 1 else []


def _in_one(code: Code) -> Iterator[Change]:
    for function in code.functions:
        if not function.on_device_only:
            continue
        for condition in _instances(code, function):
            for node in code.find("call_expression", "for_statement"):
                if not function.holds(node.start_byte, node.end_byte):
                    continue
                change = _late_loop(code, node, condition) or _missing_barrier(code, node, condition)
                if change is not None:
                    yield change


def _late_loop(code: Code, node: Node, condition: str) -> Change | None:
    bound = node.child_by_field_name("condition") if node.type == "for_statement" else None
    if bound is None or bound.type != "binary_expression":
        return None
    left, right = bound.child_by_field_name("left"), bound.child_by_field_name("right")
    operator = bound.child_by_field_name("operator")
    if left is None or right is None or operator is None or operator.type not in _LATE:
        return None
    text = f"{code.text(left)} {operator.type} {code.text(right)} - ({condition} ? 1 : 0)"
    return Change((replaced(bound, text),), f"a loop ends one round early where {condition}")


def _missing_barrier(code: Code, node: Node, condition: str) -> Change | None:
    statement = statement_of(node) if code.called(node) in BARRIERS else None
    if statement is None:
        return None
    text = f"if (!({condition})) {code.text(statement)}"
    return Change((replaced(statement, text),), f"{code.text(statement)} is missing where {condition}")


OPERATORS = (Operator("one-instance", Kind.SPLITS, _in_one),)

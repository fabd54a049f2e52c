"""What operators look at: the syntax tree of one source, and the functions in it that synchronise or copy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from verify.mutation.edit import Edit
from verify.mutation.kinds import Kind
from verify.source.declarations import Function, Launch, functions_of, launches_of
from verify.source.syntax import SyntaxTree, declared_name, enclosing, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_NO_CODE = ("static_assert_declaration", "template_parameter_list", "attribute_specifier", "launch_bounds")


@dataclass(frozen=True)
class Change:
    """A fault: its edits, and one sentence without a full stop that says what is wrong."""

    edits: tuple[Edit, ...]
    fault: str

    @property
    def start(self) -> int:
        """The first byte that changes."""
        return min(e.start for e in self.edits)


@dataclass(frozen=True)
class Operator:
    """Makes faults. name: short and stable. kind: of its faults. changes: all that it makes of a source."""

    name: str
    kind: Kind
    changes: Callable[[Code], Iterator[Change]]


@dataclass(frozen=True)
class Code:
    """One source."""

    tree: SyntaxTree

    @classmethod
    def of(cls, source: str | bytes) -> Code:
        """The code of a source. Raises ParserMissingError."""
        return cls(parse(source))

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Its functions, in order."""
        return functions_of(self.tree)

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """Its launches, in order."""
        return launches_of(self.tree)

    def text(self, node: Node | None) -> str:
        """The source of a node; empty for none."""
        return self.tree.text(node) if node is not None else ""

    def find(self, *kinds: str) -> Iterator[Node]:
        """Nodes of some kinds in the bodies of functions that the grammar has read whole, in order."""
        for function in self.functions:
            if enclosing(function.node, "function_definition") is not None:
                continue  # of a class inside a function: the outer one's walk comes by
            for node in self.tree.find(*kinds, within=function.body):
                if self._is_code(node):
                    yield node

    def _is_code(self, node: Node) -> bool:
        unread = enclosing(node, "ERROR", "function_definition")
        whole = self.tree.is_whole(node) and (unread is None or unread.type != "ERROR")
        return whole and enclosing(node, *_NO_CODE) is None

    def function_at(self, offset: int) -> Function | None:
        """The function whose body holds a byte."""
        return next((f for f in self.functions if f.holds(offset, offset + 1)), None)

    def called(self, call: Node) -> str:
        """The name of what is called, without scope and template arguments; empty for an expression."""
        callee = call.child_by_field_name("function")
        while callee is not None:
            if callee.type in ("identifier", "field_identifier"):
                return self.text(callee)
            field = "field" if callee.type == "field_expression" else "name"
            callee = callee.child_by_field_name(field)
        return ""

    def calls(self, *names: str) -> Iterator[Node]:
        """Calls of functions of some names."""
        return (c for c in self.find("call_expression") if self.called(c) in names)

    def arguments(self, call: Node) -> list[Node]:
        """The arguments of a call."""
        listed = call.child_by_field_name("arguments")
        return [c for c in listed.named_children if c.type != "comment"] if listed is not None else []

    def wrappers(self, instruction: re.Pattern[str]) -> dict[str, Function]:
        """Functions whose body is one statement of inline assembly with such an instruction."""
        found = {}
        for function in self.functions:
            statements = list(_statements(function.body))
            if (
                not function.is_kernel
                and len(statements) == 1
                and instruction.search(self._assembly(statements[0]))
            ):
                found[function.name] = function
        return found

    def assembly_statements(self, instruction: re.Pattern[str]) -> Iterator[Node]:
        """Statements of inline assembly with such an instruction that are no wrapper's whole body."""
        wrapped = [f.body for f in self.wrappers(instruction).values()]
        for node in self.find("expression_statement"):
            inside = any(b.start_byte <= node.start_byte < b.end_byte for b in wrapped)
            if not inside and instruction.search(self._assembly(node)):
                yield node

    def name_of(self, declarator: Node | None) -> str:
        """The name that a declarator declares."""
        return self.text(declared_name(declarator))

    def _assembly(self, statement: Node) -> str:
        inner = statement.named_children[0] if statement.named_children else None
        if inner is None or inner.type != "gnu_asm_expression":
            return ""
        return self.text(inner.child_by_field_name("assembly_code"))


def _statements(body: Node) -> Iterator[Node]:
    """The statements of a body, those under its conditions of the preprocessor among them."""
    for node in body.named_children:
        if node.type in ("preproc_if", "preproc_ifdef", "preproc_else"):
            yield from _statements(node)
        elif node.type.endswith("_statement") or node.type == "declaration":
            yield node


def replaced(node: Node, text: str) -> Edit:
    """The edit that puts a text in a node's place."""
    return Edit(node.start_byte, node.end_byte, text)


def statement_of(node: Node) -> Node | None:
    """The expression statement that is a call or an assignment alone."""
    parent = node.parent
    return parent if parent is not None and parent.type == "expression_statement" else None


def dropped(statement: Node) -> Edit:
    """A statement that does nothing any more."""
    return replaced(statement, ";")

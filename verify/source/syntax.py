"""CUDA C++ as a syntax tree, by tree-sitter's CUDA grammar.

Offsets are bytes of the source, not characters. The grammar does not cover the whole language: what it cannot
parse is an error node, and the rest of the tree is valid. Check a node with :meth:`SyntaxTree.is_whole`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


class ParserMissingError(ValueError):
    """The packages of the extra ``mutate`` are not installed."""


@dataclass(frozen=True)
class SyntaxFault:
    """What the grammar could not read: 1-based line and column, the first line of its text (empty: something
    is missing there), and the function that it stands in, empty outside all of them."""

    line: int
    column: int
    text: str
    function: str

    def __str__(self) -> str:
        what = f"cannot be read: {self.text}" if self.text else "something is missing"
        return f"{self.line}:{self.column}: {what}"


@dataclass(frozen=True)
class SyntaxTree:
    """A parsed source. source: its bytes. root: the tree's node for all of it."""

    source: bytes
    root: Node

    def text(self, node: Node) -> str:
        """The source of a node."""
        return self.source[node.start_byte : node.end_byte].decode(errors="replace")

    def find(self, *kinds: str, within: Node | None = None) -> Iterator[Node]:
        """The nodes of some kinds, in the order of the source."""
        return (node for node in nodes_of(within or self.root) if node.type in kinds)

    @cached_property
    def faults(self) -> tuple[SyntaxFault, ...]:
        """All that the grammar could not read, in order."""
        return tuple(
            SyntaxFault(
                node.start_point.row + 1,
                node.start_point.column + 1,
                self.text(node).partition("\n")[0],
                self._function_around(node),
            )
            for node in nodes_of(self.root)
            if node.is_error or node.is_missing
        )

    def is_whole(self, node: Node) -> bool:
        """Whether the grammar has parsed all of a node, whatever is wrong elsewhere."""
        return not node.has_error and not node.is_missing

    def _function_around(self, node: Node) -> str:
        around = enclosing(node, "function_definition")
        name = declared_name(around.child_by_field_name("declarator")) if around is not None else None
        return self.text(name) if name is not None else ""


def parse(source: str | bytes) -> SyntaxTree:
    """The tree of a source. Raises ParserMissingError where the extra is not installed."""
    data = source.encode() if isinstance(source, str) else source
    return SyntaxTree(data, _parser().parse(data).root_node)


def nodes_of(node: Node) -> Iterator[Node]:
    """A node and all below it, in the order of the source."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(one.children)


def enclosing(node: Node | None, *kinds: str) -> Node | None:
    """The innermost node of some kinds around a node, itself left out."""
    around = node.parent if node is not None else None
    while around is not None and around.type not in kinds:
        around = around.parent
    return around


def declared_name(declarator: Node | None) -> Node | None:
    """The name that a declarator declares, through pointers, arrays, references and parameter lists."""
    while declarator is not None:
        if declarator.type in ("identifier", "field_identifier", "qualified_identifier", *_OTHER_NAMES):
            return declarator
        if declarator.type in ("template_function", "template_method"):
            declarator = declarator.child_by_field_name("name")
            continue
        inner = declarator.child_by_field_name("declarator")
        if inner is None:  # a reference's and a parenthesis' have no name for their part
            inner = next((c for c in declarator.named_children if c.type in _DECLARATORS), None)
        declarator = inner
    return None


_OTHER_NAMES = ("operator_name", "destructor_name")
_DECLARATORS = (
    *("identifier", "field_identifier", "pointer_declarator", "reference_declarator", "array_declarator"),
    *("function_declarator", "parenthesized_declarator", "init_declarator"),
)


@cache
def _parser() -> Parser:
    try:
        import tree_sitter
        import tree_sitter_cuda
    except ImportError as error:
        why = f"{error.name} is missing: install kernel-verify with its extra 'mutate'"
        raise ParserMissingError(f"the parser of CUDA sources needs tree-sitter: {why}") from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))

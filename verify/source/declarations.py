"""What a CUDA source declares: functions and kernels with their parameters, launches, includes, macros."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verify.source.syntax import SyntaxTree, declared_name, enclosing

if TYPE_CHECKING:
    from tree_sitter import Node

SPACES = ("__global__", "__device__", "__host__")
_SPECIFIERS = ("constexpr", "inline", "static", "__forceinline__", "__noinline__", "extern", "virtual")
_NAMED_SCOPES = ("namespace_definition", "class_specifier", "struct_specifier")


@dataclass(frozen=True)
class Parameter:
    """A function's parameter: its type as written (``const float* __restrict__``, ``int (&)[4]``), its name,
    empty where it has none, and its default."""

    type: str
    name: str
    default: str = ""


@dataclass(frozen=True)
class TemplateParameter:
    """A template's parameter. kind: ``typename``, ``class``, or the type of a value."""

    kind: str
    name: str
    default: str = ""


@dataclass(frozen=True)
class Function:
    """A function that has a body.

    name: without its scope. scope: names of namespaces and classes around it. specifiers: where it runs
    (``__global__``...), ``constexpr``, ``static`` and the like. body: its compound statement's node.
    """

    name: str
    scope: tuple[str, ...]
    result: str
    specifiers: frozenset[str]
    parameters: tuple[Parameter, ...]
    template: tuple[TemplateParameter, ...]
    launch_bounds: tuple[str, ...]
    extern_c: bool
    node: Node
    body: Node

    @property
    def is_kernel(self) -> bool:
        """Whether it is a ``__global__`` function."""
        return "__global__" in self.specifiers

    @property
    def on_device_only(self) -> bool:
        """Whether no host code is made of its body. A constexpr function's is, whatever it says."""
        device = self.is_kernel or "__device__" in self.specifiers
        return device and "__host__" not in self.specifiers and "constexpr" not in self.specifiers

    @property
    def line(self) -> int:
        """1-based line on which it begins."""
        return self.node.start_point.row + 1

    def holds(self, start: int, end: int) -> bool:
        """Whether a range of bytes lies in its body."""
        return self.body.start_byte <= start and end <= self.body.end_byte


@dataclass(frozen=True)
class Launch:
    """A launch by ``<<<...>>>``. configuration: grid, block, shared bytes and stream, as far as they are
    given. function: the host function that it stands in. node: of the whole call."""

    kernel: str
    template: tuple[str, ...]
    configuration: tuple[Node, ...]
    arguments: tuple[Node, ...]
    function: str
    node: Node


@dataclass(frozen=True)
class Include:
    """An included file. system: given in angle brackets."""

    name: str
    system: bool


@dataclass(frozen=True)
class Macro:
    """A macro's name, its parameters (None: not a function-like macro), and its text."""

    name: str
    parameters: tuple[str, ...] | None
    text: str


def functions_of(tree: SyntaxTree) -> tuple[Function, ...]:
    """All functions that have a body, in order, methods among them, lambdas not."""
    return tuple(filter(None, (_function(tree, n) for n in tree.find("function_definition"))))


def kernels_of(tree: SyntaxTree) -> tuple[Function, ...]:
    """The ``__global__`` functions, in order."""
    return tuple(f for f in functions_of(tree) if f.is_kernel)


def launches_of(tree: SyntaxTree) -> tuple[Launch, ...]:
    """All launches by ``<<<...>>>``, in order."""
    return tuple(_launch(tree, n) for n in tree.find("call_expression") if _configuration(n) is not None)


def includes_of(tree: SyntaxTree) -> tuple[Include, ...]:
    """All included files, in order, except those named by a macro."""
    found = []
    for node in tree.find("preproc_include"):
        path = node.child_by_field_name("path")
        if path is not None and path.type in ("system_lib_string", "string_literal"):
            found.append(Include(tree.text(path)[1:-1], path.type == "system_lib_string"))
    return tuple(found)


def macros_of(tree: SyntaxTree) -> tuple[Macro, ...]:
    """All macros that are defined, in order."""
    found = []
    for node in tree.find("preproc_def", "preproc_function_def"):
        parameters, value = node.child_by_field_name("parameters"), node.child_by_field_name("value")
        names = tuple(tree.text(p) for p in parameters.named_children) if parameters is not None else None
        found.append(Macro(_text(tree, node, "name"), names, tree.text(value).strip() if value else ""))
    return tuple(found)


def _text(tree: SyntaxTree, node: Node, field: str) -> str:
    found = node.child_by_field_name(field)
    return tree.text(found) if found is not None else ""


def _function(tree: SyntaxTree, node: Node) -> Function | None:
    declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
    name = declared_name(declarator)
    signature = declarator
    while signature is not None and signature.type != "function_declarator":
        signature = signature.child_by_field_name("declarator") or next(iter(signature.named_children), None)
    if name is None or body is None or signature is None:
        return None
    parent = node.parent
    template = parent if parent is not None and parent.type == "template_declaration" else None
    bounds = next((c for c in node.children if c.type == "launch_bounds"), None)
    # A specifier that the grammar reads as a qualifier or a storage class is one level deeper.
    words = [
        tree.text(w) for c in node.children if c.end_byte <= signature.start_byte for w in (c, *c.children)
    ]
    own = tree.text(name).split("::")
    return Function(
        own[-1],
        (*_scope(tree, node), *own[:-1]),
        _text(tree, node, "type"),
        frozenset(w for w in words if w in (*SPACES, *_SPECIFIERS)),
        tuple(_parameters(tree, signature.child_by_field_name("parameters"))),
        tuple(_template(tree, template)) if template is not None else (),
        tuple(tree.text(c) for c in bounds.named_children) if bounds is not None else (),
        _is_extern_c(node),
        node,
        body,
    )


def _is_extern_c(node: Node) -> bool:
    return enclosing(node, "linkage_specification") is not None


def _scope(tree: SyntaxTree, node: Node) -> tuple[str, ...]:
    names: list[str] = []
    around = enclosing(node, *_NAMED_SCOPES)
    while around is not None:
        if name := _text(tree, around, "name"):
            names.insert(0, name)
        around = enclosing(around, *_NAMED_SCOPES)
    return tuple(names)


def _parameters(tree: SyntaxTree, listed: Node | None) -> Iterator[Parameter]:
    for node in listed.named_children if listed is not None else ():
        if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
            continue
        default = node.child_by_field_name("default_value")
        end = default.start_byte if default is not None else node.end_byte
        name = declared_name(node.child_by_field_name("declarator"))
        source = tree.source
        if name is None:
            written = source[node.start_byte : end]
        else:
            written = source[node.start_byte : name.start_byte] + source[name.end_byte : end]
        kind = " ".join(written.decode(errors="replace").split()).removesuffix("=").strip()
        yield Parameter(
            kind, tree.text(name) if name is not None else "", tree.text(default) if default else ""
        )


def _template(tree: SyntaxTree, declaration: Node) -> Iterator[TemplateParameter]:
    listed = declaration.child_by_field_name("parameters")
    for node in listed.named_children if listed is not None else ():
        if node.type in ("parameter_declaration", "optional_parameter_declaration"):
            name = declared_name(node.child_by_field_name("declarator"))
            kind = _text(tree, node, "type")
            default = _text(tree, node, "default_value")
            yield TemplateParameter(kind, tree.text(name) if name is not None else "", default)
        elif node.type.endswith("parameter_declaration"):
            named = node.child_by_field_name("name") or next(
                (c for c in node.named_children if c.type == "type_identifier"), None
            )
            kind = tree.text(node.children[0])
            default = _text(tree, node, "default_type")
            yield TemplateParameter(kind, tree.text(named) if named is not None else "", default)


def _configuration(call: Node) -> Node | None:
    return next((c for c in call.children if c.type == "kernel_call_syntax"), None)


def _launch(tree: SyntaxTree, call: Node) -> Launch:
    configuration, called = _configuration(call), call.child_by_field_name("function")
    assert configuration is not None and called is not None
    last = called
    while last.type == "qualified_identifier" and (inner := last.child_by_field_name("name")) is not None:
        last = inner
    listed = next((c for c in last.children if c.type == "template_argument_list"), None)
    end = listed.start_byte if listed is not None else called.end_byte
    arguments = call.child_by_field_name("arguments")
    around = enclosing(call, "function_definition")
    function = declared_name(around.child_by_field_name("declarator")) if around is not None else None
    return Launch(
        tree.source[called.start_byte : end].decode(errors="replace"),
        tuple(tree.text(c) for c in listed.named_children) if listed is not None else (),
        tuple(configuration.named_children),
        tuple(arguments.named_children) if arguments is not None else (),
        tree.text(function) if function is not None else "",
        call,
    )

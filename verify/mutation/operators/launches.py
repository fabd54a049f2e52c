"""Faults of launches, copies and the errors that they return."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from verify.mutation.kinds import Kind
from verify.mutation.operators.code import Change, Code, Operator, replaced

if TYPE_CHECKING:
    from tree_sitter import Node

_FIELDS = {"gridDim": 0, "blockDim": 1, "dynamicSmemBytes": 2, "stream": 3}
_PARTS = ("grid", "block", "shared memory", "stream")
_COPIES = {"cudaMemcpy": 2, "cudaMemcpyAsync": 2, "cudaMemset": 2, "cudaMemsetAsync": 2, "memcpy": 2,
           "__pipeline_memcpy_async": 2}  # fmt: skip
_COPY = re.compile(r"\bcp\.async\b")
_STATUS = re.compile(r"cuda[A-Z]\w*")


def _parts(code: Code) -> Iterator[tuple[int, Node]]:
    """(0 grid, 1 block, 2 shared bytes, 3 stream; the expression) of each launch."""
    for launch in code.launches:
        yield from enumerate(launch.configuration)
    for node in code.find("assignment_expression"):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        field = left.child_by_field_name("field") if left is not None else None
        if right is not None and (part := _FIELDS.get(code.text(field))) is not None:
            yield part, right


def _number(code: Code, node: Node) -> Node:
    """The first extent of a ``dim3(x, y)``, else the expression itself."""
    if node.type == "call_expression" and code.called(node) == "dim3" and (given := code.arguments(node)):
        return given[0]
    return node


def _configuration(code: Code) -> Iterator[Change]:
    for part, node in _parts(code):
        inner = _number(code, node)
        text = code.text(inner)
        if part == 0:
            others = (f"({text}) - 1", f"({text}) + 1")
        elif part == 1:
            others = (f"({text}) / 2", f"({text}) * 2")
        elif part == 2 and text not in ("0", "0u"):
            others = (f"({text}) / 2", "0")
        else:
            continue
        for other in others:
            yield Change((replaced(inner, other),), f"the launch's {_PARTS[part]} is {other}")


def _stream(code: Code) -> Iterator[Change]:
    for part, node in _parts(code):
        if part == 3 and code.text(node) not in ("0", "nullptr"):
            yield Change((replaced(node, "cudaStream_t(0)"),), "the launch goes to the default stream")


def _arguments(code: Code) -> Iterator[Change]:
    """Two arguments that stand side by side change places; most such pairs of one type compile."""
    for launch in code.launches:
        for first, second in zip(launch.arguments, launch.arguments[1:], strict=False):
            texts = code.text(first), code.text(second)
            if texts[0] != texts[1]:
                edits = (replaced(first, texts[1]), replaced(second, texts[0]))
                yield Change(edits, f"{texts[0]} and {texts[1]} change places in a launch of {launch.kernel}")


def _copy_size(code: Code) -> Iterator[Change]:
    for call in code.calls(*_COPIES):
        given, place = code.arguments(call), _COPIES[code.called(call)]
        if len(given) > place:
            half = f"({code.text(given[place])}) / 2"
            yield Change((replaced(given[place], half),), f"{code.called(call)} does half of its bytes")
    for assembly in code.find("gnu_asm_expression"):
        if not _COPY.search(code.text(assembly.child_by_field_name("assembly_code"))):
            continue
        for operand in code.tree.find("gnu_asm_input_operand", within=assembly):
            value = operand.child_by_field_name("value")
            if value is not None and value.type in ("conditional_expression", "number_literal"):
                whole = value.child_by_field_name("consequence") or value
                what = "the copy reads all of its bytes, whatever its predicate says"
                if value.type == "conditional_expression":
                    yield Change((replaced(value, code.text(whole)),), what)
                halved = replaced(whole, f"({code.text(whole)}) / 2")
                yield Change((halved,), "the copy reads half of its bytes")


def _swallowed(code: Code) -> Iterator[Change]:
    for node in code.find("return_statement"):
        value = node.named_children[0] if node.named_children else None
        if value is not None and value.type == "call_expression" and _returns_status(code, value):
            text = f"((void)({code.text(value)}), cudaSuccess)"
            yield Change((replaced(value, text),), f"the error of {code.called(value)} is swallowed")


def _returns_status(code: Code, call: Node) -> bool:
    name = code.called(call)
    known = any(f.name == name and f.result == "cudaError_t" for f in code.functions)
    return known or _STATUS.fullmatch(name) is not None


OPERATORS = (
    Operator("launch-configuration", Kind.LAUNCH, _configuration),
    Operator("stream-ignored", Kind.STREAM, _stream),
    Operator("launch-arguments", Kind.STRIDES, _arguments),
    Operator("copy-size", Kind.BOUNDS, _copy_size),
    Operator("error-swallowed", Kind.LAUNCH, _swallowed),
)

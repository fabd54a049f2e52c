"""The reference of the contract language, from the docstrings of the code.

``python ci/contract_page.py > docs/reference/contract.md`` prints it again; a test keeps it true.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from verify.contract import compared, entries, expression, hypothesis, model, symbols  # noqa: E402
from verify.contract.default_profiles import DEFAULT_PROFILES  # noqa: E402
from verify.contract.formats import FORMATS  # noqa: E402
from verify.oracle import tracked  # noqa: E402

CLASSES = (
    (model, "Contract"),
    (symbols, "Symbol"),
    (model, "Buffer"),
    (symbols, "DtypeChoice"),
    (entries, "Launcher"),
    (entries, "Global"),
    (entries, "Refusal"),
    (model, "Profile"),
    (model, "Plan"),
    (compared, "Intermediate"),
    (compared, "KernelOracle"),
    (compared, "Effect"),
    (hypothesis, "Hypothesis"),
    (hypothesis, "Prediction"),
    (model, "Case"),
)
ARITHMETIC = (
    "exact", "add", "multiply", "divide", "sqrt", "rsqrt", "exp", "exp2", "log", "maximum", "where", "total",
    "dot", "tensor_core_scores", "round_result",
)  # fmt: skip

INTRODUCTION = """\
# The contract language

Printed by `python ci/contract_page.py` from the docstrings of the code; a test keeps it true. The names are
imported from `verify` (`from verify import Buffer, Contract, ...`), the arithmetic as
`from verify.oracle import tracked as t`. The [tutorial](../tutorial/first_kernel.md) and
[the how-to guide](../how_to/write_a_contract.md) show them at work.

A field without a default must be given. Where a type says `Expression`, an integer will do, or text that is
[an expression](#expressions) over the fixture's symbols and the plan's fields."""


@dataclass(frozen=True)
class Field:
    """One field of a class: its annotation and default as they are written, its docstring in two parts."""

    name: str
    kind: str
    default: str
    text: str
    example: str


def fields_of(module: object, name: str) -> list[Field]:
    """The fields of a dataclass of a module, with the docstrings below them (empty where there is none)."""
    source = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    (node,) = (n for n in source.body if isinstance(n, ast.ClassDef) and n.name == name)
    found = []
    for statement, below in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign):
            continue
        doc = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            doc = " ".join(str(below.value.value).split())
        text, _, example = doc.partition("Example: ")
        default = ast.unparse(statement.value) if statement.value is not None else ""
        default = {"field(default_factory=dict)": "{}"}.get(default, default)
        kind = ast.unparse(statement.annotation)
        found.append(Field(ast.unparse(statement.target), kind, default, text.strip(), example.strip("`")))
    return found


def page() -> Iterator[str]:
    """docs/reference/contract.md, line by line."""
    yield from INTRODUCTION.split("\n")
    for module, name in CLASSES:
        kind = getattr(module, name)
        yield from ("", f"## {name}", "", *plain(inspect.getdoc(kind) or "").split("\n"), "")
        yield from ("| field | type | default | meaning | example |", "|---|---|---|---|---|")
        for field in fields_of(module, name):
            yield row(
                code(field.name),
                code(field.kind),
                code(field.default),
                plain(field.text),
                code(field.example),
            )
        methods = list(methods_of(kind))
        if methods:
            yield from ("", "| method | gives |", "|---|---|", *(row(code(m), plain(d)) for m, d in methods))
    yield from ("", "## Element types", "", *ELEMENT_TEXT.split("\n"), "")
    yield "| name | bits | largest | stored as | is |"
    yield "|---|---:|---:|---|---|"
    for form in FORMATS.values():
        largest = f"{form.max_finite:.6g}"
        storage = f"{form.dtype}, {form.packed} in each" if form.packed > 1 else f"{form.dtype}"
        yield row(code(form.name), str(form.bits), largest, storage, what_is(form.name))
    yield from ("", "## Expressions", "", *plain(inspect.getdoc(expression) or "").split("\n"))
    yield from (
        "",
        "## Default profiles",
        "",
        "For a contract that names none; floating-point inputs alone.",
        "",
    )
    yield from ("| profile | makes visible |", "|---|---|")
    yield from (row(code(profile.name), profile.pins) for profile in DEFAULT_PROFILES)
    yield from (
        "",
        "## Tracked arithmetic",
        "",
        *ARITHMETIC_TEXT.split("\n"),
        "",
        "| function | gives |",
        "|---|---|",
    )
    for name in ARITHMETIC:
        function = getattr(tracked, name)
        doc = (inspect.getdoc(function) or "").split("\n\n")[0]
        yield row(code(f"t.{name}{signature(function)}"), plain(" ".join(doc.split())))


ELEMENT_TEXT = """\
`case.raw("x")` is the storage array, `case.f64("x")` the values. Of a packed type the shape counts storage
items, and the values have twice the last extent, the low half first."""
ARITHMETIC_TEXT = """\
`t.Tracked(value, bound)` holds two float64 arrays of one shape: what exact arithmetic would give, and how far
a right kernel may be from it. `+ - * /`, unary minus and indexing work on it, in fp32.
`t.Arithmetic(format="f32", flush=True)` is another precision: the element type of a result, and whether
subnormal results become zero."""


def methods_of(kind: type) -> Iterator[tuple[str, str]]:
    """Public methods and properties of a class with the first paragraph of their docstrings."""
    for name, member in vars(kind).items():
        function = member.fget if isinstance(member, property) else getattr(member, "func", member)
        if not inspect.isfunction(function) or (name.startswith("_") and name != "__getitem__"):
            continue
        doc = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
        called = name if not inspect.isfunction(member) else f"{name}{signature(function)}"
        yield ("case[name]" if name == "__getitem__" else f"{kind.__name__.lower()}.{called}"), doc


def signature(function: object) -> str:
    """The parameters with their defaults, without types."""
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    words = []
    for parameter in parameters:
        if parameter.name == "self":
            continue
        default = parameter.default
        shown = (
            "F32"
            if default == tracked.F32
            else "APPROXIMATE"
            if default == tracked.APPROXIMATE
            else repr(default)
        )
        words.append(parameter.name if default is parameter.empty else f"{parameter.name}={shown}")
    return f"({', '.join(words)})"


def what_is(name: str) -> str:
    """A format in words."""
    form = FORMATS[name]
    if not form.is_float:
        return f"{'signed' if form.signed else 'unsigned'} integer"
    words = f"float of {form.exponent} exponent and {form.mantissa} mantissa bits"
    lacks = [what for what, bits in (("infinity", form.infinity), ("NaN", form.quiet_nan)) if bits is None]
    sign = "" if form.signed else ", unsigned"
    return words + sign + (f", without {' or '.join(lacks)}" if lacks else "")


def plain(text: str) -> str:
    """A docstring's markup as Markdown."""
    text = re.sub(r":(?:class|data|mod|func):`~?([^`]*)`", r"`\1`", text)
    return text.replace("``", "`")


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print("\n".join(page()))

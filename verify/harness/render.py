"""Renders the harness of a contract. Only validated names reach the template; values never do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2

from verify.contract.entries import Global, Launcher
from verify.contract.model import Contract
from verify.contract.slots import SM_COUNT, Slots, argument_kind, entry_arguments, slots_of
from verify.contract.symbols import Expression
from verify.system.resources import resource_folder
from verify.toolchain.compile import is_includable

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*$")
_TOKEN = re.compile(r"\s*(::|[A-Za-z_]\w*|-?\d+[uUlL]*|[<>,*&])")


class RenderError(ValueError):
    """A name in a contract is not valid C++ for the harness; the message names contract, field and text."""


def render(contract: Contract, source_include: str | None = None, *, whole: bool = False) -> str:
    """The harness source of a contract.

    source_include: the name by which the production file is included, by default its file name. whole: also
    include the fixed part, for a single-source program that has all files beside it. Raises RenderError for a
    name that is not an identifier, template-id or file name.
    """
    slots = slots_of(contract)
    source = source_include or Path(contract.source).name
    if not is_includable(source):
        raise RenderError(f"{contract.name}: source: {source!r} cannot stand in an #include")
    _identifier(contract, "name", contract.name)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resource_folder("harness_templates")),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template("harness.cu.j2").render(
        contract=contract.name,
        source=source,
        fixed_part="verify_core.cu" if whole else resource_folder("harness_templates") / "verify_entry.hpp",
        takes_stream=takes_stream(contract),
        value_count=len(slots.expressions),
        buffer_count=len(contract.buffers),
        entries=[_entry(contract, entry, slots) for entry in contract.entries],
        plan=_plan(contract, slots),
    )


def takes_stream(contract: Contract) -> bool:
    """Whether every launch of the entry uses the stream that the harness passes."""
    return all(
        isinstance(e, Global) or e.struct is not None or "stream" in entry_arguments(e)
        for e in contract.entries
    )


def template_id(text: str) -> str | None:
    """Why ``text`` is not a (possibly qualified) C++ name with optional template arguments, or None.

    Grammar: ``name := identifier ("::" identifier)* ["<" argument ("," argument)* ">"]``, an argument being a
    name with trailing ``*`` or ``&``, or an integer. The tokens of a type may be separated by blanks
    (``unsigned char``).
    """
    tokens: list[str] = []
    position = 0
    while position < len(text.rstrip()):
        token = _TOKEN.match(text, position)
        if token is None:
            return f"{text[position:].strip()[:12]!r} is not allowed"
        tokens.append(token[1])
        position = token.end()
    problem, rest = _read_name(tokens, function=True)
    return problem or (f"unexpected {rest[0]!r}" if rest else None)


def _read_name(tokens: list[str], *, function: bool = False) -> tuple[str | None, list[str]]:
    if not tokens or not re.match(r"[A-Za-z_]", tokens[0]):
        return f"a name is missing before {tokens[0]!r}" if tokens else "a name is missing", tokens
    tokens = tokens[1:]
    while tokens and tokens[0] == "::":
        if len(tokens) < 2 or not re.match(r"[A-Za-z_]", tokens[1]):
            return "a name is missing after '::'", tokens
        tokens = tokens[2:]
    while not function and tokens and re.match(r"[A-Za-z_]", tokens[0]):
        tokens = tokens[1:]
    if tokens and tokens[0] == "<":
        while True:
            problem, tokens = _read_argument(tokens[1:])
            if problem:
                return problem, tokens
            if not tokens or tokens[0] not in ",>":
                return "'>' is missing", tokens
            if tokens[0] == ">":
                tokens = tokens[1:]
                break
    while not function and tokens and tokens[0] in "*&":
        tokens = tokens[1:]
    return None, tokens


def _read_argument(tokens: list[str]) -> tuple[str | None, list[str]]:
    if tokens and re.match(r"-?\d", tokens[0]):
        return None, tokens[1:]
    return _read_name(tokens)


def _identifier(contract: Contract, where: str, text: str) -> str:
    if not _IDENTIFIER.match(text):
        raise RenderError(f"{contract.name}: {where}: {text!r} is not a C++ identifier")
    return text


def _function(contract: Contract, where: str, text: str) -> str:
    problem = template_id(text)
    if problem:
        raise RenderError(f"{contract.name}: {where}: {text!r} is not a C++ function name: {problem}")
    return text.strip()


def _argument(contract: Contract, argument: Expression, slots: Slots) -> str:
    kind, index = argument_kind(contract, argument)
    match kind:
        case "stream":
            return "stream"
        case "pointer":
            return f"a.pointer({index})"
        case "bytes":
            return f"a.bytes({index})"
        case "zero":
            return "verify::Zero()"
        case _:
            return f"a.value({slots.index(argument)})"


def _fields(contract: Contract, entry: Launcher, slots: Slots) -> list[tuple[str, str]]:
    if isinstance(entry.args, tuple | list):
        raise RenderError(f"{contract.name}: {entry.function}: struct needs args as a mapping of its fields")
    return [
        (_identifier(contract, f"{entry.struct} field", name), _argument(contract, value, slots))
        for name, value in entry.args.items()
    ]


def _entry(contract: Contract, entry: Launcher | Global, slots: Slots) -> dict[str, Any]:
    function = _function(contract, "entry", entry.function)
    if isinstance(entry, Global):
        for what, extents in (("grid", entry.grid), ("block", entry.block)):
            if not 1 <= len(extents) <= 3:
                raise RenderError(
                    f"{contract.name}: {function}: {what} has {len(extents)} extents, not 1 to 3"
                )
        if "stream" in entry.args:
            raise RenderError(f"{contract.name}: {function}: a __global__ function takes no stream")
        return {
            "kind": "global",
            "function": function,
            "grid": ", ".join(f"a.value({slots.index(e)})" for e in entry.grid),
            "block": ", ".join(f"a.value({slots.index(e)})" for e in entry.block),
            "shared": slots.index(entry.shared),
            "arguments": ", ".join(_argument(contract, a, slots) for a in entry.args),
        }
    shared = {"kind": "launcher", "function": function, "returns_error": entry.returns_error}
    if entry.struct is not None:
        return {
            **shared,
            "struct": _function(contract, "struct", entry.struct),
            "fields": _fields(contract, entry, slots),
            "arguments": "a.structure(arguments), stream",
        }
    arguments = ", ".join(_argument(contract, a, slots) for a in entry_arguments(entry))
    return {**shared, "struct": None, "fields": [], "arguments": arguments}


def _plan(contract: Contract, slots: Slots) -> dict[str, Any] | None:
    plan = contract.plan
    if plan is None:
        return None
    rendered: dict[str, Any] = {
        "function": _function(contract, "plan", plan.function),
        "result": _function(contract, "plan result", plan.result),
        "fields": [_identifier(contract, "plan field", f) for f in plan.fields],
        "struct": None,
        "struct_fields": [],
    }
    if plan.args is not None:
        given = ["sm_count" if a == SM_COUNT else _argument(contract, a, slots) for a in plan.args]
        return {**rendered, "arguments": ", ".join([*given, "&result"])}
    launcher = next((e for e in contract.entries if isinstance(e, Launcher) and e.struct is not None), None)
    if launcher is None:
        raise RenderError(f"{contract.name}: plan: without args it needs a launcher that takes a struct")
    # A struct's stream stays the null stream: a plan function launches nothing.
    fields = [(name, value) for name, value in _fields(contract, launcher, slots) if value != "stream"]
    return {
        **rendered,
        "struct": launcher.struct,
        "struct_fields": fields,
        "arguments": "&arguments, sm_count, &result",
    }

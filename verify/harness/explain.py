"""Translates compiler errors about the rendered harness into errors about the contract's fields.

``harness.cu`` is generated from the contract, so an error there means that a field of the contract does not
match the production file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from verify.contract.entries import Global, Launcher
from verify.contract.model import Contract

_PLACE = re.compile(r"^harness\.cu\((\d+)\): ")
_COUNT = re.compile(r"\d+ errors? detected in the compilation of")
_KINDS = (
    ('"verify::Value"', "a value (a symbol or an expression)"),
    ('"verify::Pointer"', "a buffer"),
    ('"verify::Zero"', "the number 0"),
)
_RETURN = 'no instance of overloaded function "verify_answer"'


def explained(words: str, rendered: str, contract: Contract) -> str:
    """The compiler's output with places in the rendered source replaced by file and field of the contract.

    words: the compiler's output. rendered: the text of ``harness.cu``. Lines about other files stay.
    """
    file = contract.file.name or f"{contract.name}_contract.py"
    lines = rendered.splitlines()
    messages = []
    for line in words.splitlines():
        place = _PLACE.match(line)
        if place is None:
            if named := next((f for f in contract.nvcc_flags if f"'{f}'" in line), None):
                line = f"{file}: nvcc_flags: {named}: {line}"
            if not _COUNT.match(line):
                messages.append(line)
            continue
        message = line[place.end() :]
        if message.startswith("note ") and "verify_answer" in message:
            continue
        field = field_of(lines[int(place[1]) - 1], contract) if int(place[1]) <= len(lines) else ""
        if _RETURN in message:
            message = "error: must return cudaError_t or int; if it returns void, set returns_error=False"
        for spelled, meant in _KINDS:
            message = message.replace(spelled, meant)
        messages.append(f"{file}: {field or 'entry'}: {message}")
    return "\n".join(messages)


def field_of(line: str, contract: Contract) -> str:
    """The field of the contract that a rendered line comes from; empty if from none."""
    plan = contract.plan
    if plan is not None and (f"{plan.function}(" in line or f"{plan.result} result" in line):
        return f"plan: {plan.function}, result {plan.result}"
    if plan is not None and (member := re.search(r"\(result\.(\w+)\)", line)):
        return f"plan: fields: {member[1]}"
    for entry in contract.entries:
        called = f"{entry.function}(" in line or f"{entry.function}<<<" in line
        if called or f"({entry.function}, shared)" in line:
            return _entry(entry)
        if isinstance(entry, Launcher) and entry.struct is not None:
            if f"{entry.struct} arguments" in line:
                return f"entry: {entry.function}: struct: {entry.struct}"
            if member := re.search(r"arguments\.(\w+)\b", line):
                return f"entry: {entry.function}: args: {member[1]}"
    return ""


def _entry(entry: Launcher | Global) -> str:
    if isinstance(entry.args, Mapping):
        return f"entry: {entry.function}(const {getattr(entry, 'struct', None)}*, cudaStream_t)"
    return f"entry: {entry.function}({', '.join(map(str, entry.args))})"

"""Rejects a contract whose names contradict each other: a misspelt one must not silently drop a check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from verify.case.default_profiles import DEFAULT_PROFILES
from verify.contract import Contract, DtypeChoice, Expression, Launcher
from verify.expression import ExpressionError, names_in
from verify.oracle.formats import FORMATS

_ARCHITECTURE = re.compile(r"sm_(8\d|9\d|1\d\d)[af]?")
_SIZE_OF = re.compile(r"bytes\((\w+)\)")


def contradictions(contract: Contract, path: Path) -> Iterator[str]:
    """One line for each name that a field uses and the contract does not have, with file and field."""
    buffers = [b.name for b in contract.buffers]
    symbols = [s.name for s in contract.declared_symbols]
    values = [*symbols, *(contract.plan.fields if contract.plan is not None else ())]
    profiles = [p.name for p in contract.profiles or DEFAULT_PROFILES]

    def missing(field: str, names: Iterable[str], known: list[str]) -> Iterator[str]:
        for name in names:
            if name not in known:
                yield f"{path}: {field}: {name!r} is not one of {', '.join(known)}"

    for buffer in contract.buffers:
        dtypes = [buffer.dtype] if not isinstance(buffer.dtype, DtypeChoice) else []
        yield from missing(f"{buffer.name}: dtype", dtypes, list(FORMATS))
        for expression in (*buffer.shape, *(buffer.strides or ())):
            yield from missing(f"{buffer.name}: shape", _names(expression), values)
    yield from missing("exact", (profile for profile, _ in contract.exact), profiles)
    yield from missing("pinned", contract.pinned, symbols)
    yield from missing("captured_at", contract.captured_at, symbols)
    yield from missing("row_reads", contract.row_reads, buffers)
    for refusal in contract.refusals:
        named = (*refusal.null, *refusal.misalign, *refusal.shrink)
        yield from missing(f"refusal {refusal.name}", named, buffers)
        yield from missing(f"refusal {refusal.name}: symbols", refusal.symbols, symbols)
    for entry in contract.entries:
        arguments = list(entry.args.values() if isinstance(entry.args, dict) else entry.args)
        for argument in arguments:
            sized = _SIZE_OF.fullmatch(argument) if isinstance(argument, str) else None
            names = {sized[1]} if sized else _names(argument) - {"stream"}
            known = buffers if sized else [*buffers, *values]
            yield from missing(f"{entry.function}: args", sorted(names), known)
        if not isinstance(entry, Launcher):
            for expression in (*entry.grid, *entry.block, entry.shared):
                yield from missing(f"{entry.function}: geometry", _names(expression), values)
    for architecture in contract.architectures:
        if not _ARCHITECTURE.fullmatch(architecture):
            yield f"{path}: architectures: {architecture!r} is not sm_80 or later"


def _names(expression: Expression | float) -> frozenset[str]:
    try:
        return names_in(expression) if isinstance(expression, str) else frozenset()
    except ExpressionError:
        return frozenset()

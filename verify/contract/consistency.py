"""Rejects a contract with inconsistent names: a misspelt name must not silently disable a check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from verify.contract.default_profiles import DEFAULT_PROFILES
from verify.contract.entries import Launcher
from verify.contract.expression import ExpressionError, names_in
from verify.contract.formats import FORMATS
from verify.contract.model import Buffer, Contract
from verify.contract.slots import SM_COUNT, entry_arguments
from verify.contract.symbols import DtypeChoice

_ARCHITECTURE = re.compile(r"sm_(8\d|9\d|1\d\d)[af]?")
_SIZE_OF = re.compile(r"bytes\((\w+)\)")


@dataclass(frozen=True)
class _Names:
    """The names that a contract defines, and errors about names that it does not."""

    path: Path
    buffers: list[str]
    symbols: list[str]
    values: list[str]

    def missing(self, field: str, names: Iterable[str], known: Iterable[str]) -> Iterator[str]:
        for name in names:
            if name not in known:
                yield f"{self.path}: {field}: {name!r} is not one of {', '.join(known)}"

    def unknown(
        self, field: str, expressions: Iterable[object], known: Iterable[str] | None = None
    ) -> Iterator[str]:
        for expression in expressions:
            if not isinstance(expression, str):
                continue  # a number, or a function of the case
            try:
                names = sorted(names_in(expression))
                yield from self.missing(field, names, self.values if known is None else known)
            except ExpressionError as error:
                yield f"{self.path}: {field}: {error}"

    def argument(self, field: str, argument: object, *more: str) -> Iterator[str]:
        if isinstance(argument, str) and (sized := _SIZE_OF.fullmatch(argument)):
            yield from self.missing(field, [sized[1]], self.buffers)
        else:
            yield from self.unknown(field, [argument], [*self.buffers, *self.values, *more])


def contradictions(contract: Contract, path: Path) -> Iterator[str]:
    """One line, with file and field, for each name that a field uses and the contract does not define."""
    names = _Names(
        path,
        [b.name for b in contract.buffers],
        [s.name for s in contract.declared_symbols],
        value_names(contract),
    )
    for symbol in contract.declared_symbols:
        yield from names.unknown(f"{symbol.name}: default", [symbol.default])
    for buffer in contract.buffers:
        yield from _buffer_errors(contract, buffer, names)
    for part in contract.intermediates:
        yield from names.missing(f"{part.name}: dtype", [part.dtype], list(FORMATS))
        yield from names.unknown(f"{part.name}: shape", part.shape)
        yield from names.unknown(f"{part.name}: offset", [part.offset])
    profiles = [p.name for p in contract.profiles or DEFAULT_PROFILES]
    yield from names.missing("exact", (profile for profile, _ in contract.exact), profiles)
    yield from names.missing("pinned", contract.pinned, names.symbols)
    yield from names.unknown("pinned", contract.pinned.values())
    yield from names.missing("captured_at", contract.captured_at, names.symbols)
    yield from names.unknown("captured_at", contract.captured_at.values())
    yield from names.missing("row_reads", contract.row_reads, names.buffers)
    yield from names.unknown("row_reads", contract.row_reads.values())
    yield from names.unknown("instantiations", contract.instantiations.values())
    yield from _call_errors(contract, names)
    if not contract.architectures:
        yield f"{path}: architectures: is empty, so nothing would be verified"
    for architecture in contract.architectures:
        if not _ARCHITECTURE.fullmatch(architecture):
            yield f"{path}: architectures: {architecture!r} is not sm_80 or later"


def _buffer_errors(contract: Contract, buffer: Buffer, names: _Names) -> Iterator[str]:
    if isinstance(buffer.dtype, DtypeChoice):
        yield from names.missing(f"{buffer.name}: dtype", [buffer.dtype.symbol], names.symbols)
        yield from names.missing(f"{buffer.name}: dtype", buffer.dtype.choices, list(FORMATS))
    else:
        yield from names.missing(f"{buffer.name}: dtype", [buffer.dtype], list(FORMATS))
    yield from names.unknown(f"{buffer.name}: shape", buffer.shape)
    yield from names.unknown(f"{buffer.name}: strides", buffer.strides or ())
    yield from names.unknown(f"{buffer.name}: given", [buffer.given], names.symbols)
    yield from _held_optional(contract, buffer, names.path)
    if buffer.align < 1 or buffer.align & buffer.align - 1:
        yield f"{names.path}: {buffer.name}: align: must be a power of two, is {buffer.align}"
    formats = (buffer.dtype,) if isinstance(buffer.dtype, str) else buffer.dtype.choices
    for name in formats:
        if name in FORMATS and buffer.align < (size := FORMATS[name].itemsize):
            yield f"{names.path}: {buffer.name}: align: is {buffer.align}, but one {name} has {size} bytes"


def _call_errors(contract: Contract, names: _Names) -> Iterator[str]:
    """Errors of the plan, the refusals and the entries."""
    if contract.plan is not None:
        yield from names.missing("plan: promised", contract.plan.promised, contract.plan.fields)
        yield from names.unknown("plan: promised", contract.plan.promised.values())
    structs = [e.struct for e in contract.entries if isinstance(e, Launcher) and e.struct is not None]
    for refusal in contract.refusals:
        at = f"refusal {refusal.name}"
        yield from names.missing(at, refusal.null, [*names.buffers, *structs])
        yield from names.missing(at, (*refusal.misalign, *refusal.shrink), names.buffers)
        yield from names.missing(f"{at}: symbols", refusal.symbols, names.symbols)
        yield from names.unknown(f"{at}: symbols", refusal.symbols.values())
    for entry in contract.entries:
        for given in entry.args.values() if isinstance(entry.args, Mapping) else entry.args:
            yield from names.argument(f"{entry.function}: args", given, "stream")
        if not isinstance(entry, Launcher):
            yield from names.unknown(f"{entry.function}: geometry", (*entry.grid, *entry.block, entry.shared))
    if contract.plan is not None:
        for given in contract.plan.args or ():
            yield from names.argument(f"{contract.plan.function}: args", given, SM_COUNT)


def _held_optional(contract: Contract, buffer: Buffer, path: Path) -> Iterator[str]:
    """Errors of an optional buffer: what its ``given`` may not use, and what may not use the buffer."""
    if buffer.given is None:
        return
    at = f"{path}: {buffer.name}: given"
    if not isinstance(buffer.given, str):
        yield f"{at}: must be an expression over symbols, is {buffer.given!r}"
        return
    pointers = [a for e in contract.entries for a in entry_arguments(e)]
    if buffer.name not in pointers:
        yield f"{at}: no entry takes {buffer.name} as an argument"
    for part in contract.intermediates:
        if part.buffer == buffer.name:
            yield f"{at}: the intermediate {part.name} is a view of it, so it cannot be a null pointer"
    for name in sorted(names_in(buffer.given) & contract.captured_at.keys()):
        yield f"{at}: {name} changes between replays of a graph (captured_at), but a pointer cannot"


def value_names(contract: Contract) -> list[str]:
    """The names that an expression of a contract or fixture may use: symbols and plan fields."""
    return [
        *(s.name for s in contract.declared_symbols),
        *(contract.plan.fields if contract.plan is not None else ()),
    ]

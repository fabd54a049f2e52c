"""The values that a fixture gives to a contract, and what an expression over them is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Expression = int | str
SymbolKind = Literal["int", "float", "ints"]


@dataclass(frozen=True)
class Symbol:
    """One value that a fixture gives: a shape, a window, a list of lengths.

    kind: ``int``, ``float``, or ``ints`` (a list of integers, such as one length a batch row).
    default: expression used when a fixture is silent; None makes the symbol required.
    minimum / choices: what the schema check accepts.
    doc: one line, shown by ``verify list`` and in schema errors.
    """

    name: str
    kind: SymbolKind = "int"
    default: Expression | float | None = None
    minimum: int | None = None
    choices: tuple[int, ...] = ()
    doc: str = ""


@dataclass(frozen=True)
class DtypeChoice:
    """An element type that a symbol chooses: its value is the index into ``choices``."""

    symbol: str
    choices: tuple[str, ...]

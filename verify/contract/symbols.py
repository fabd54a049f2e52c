"""The values that a fixture assigns to a contract's symbols, and the type of expressions over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Expression = int | str
SymbolKind = Literal["int", "float", "ints"]


@dataclass(frozen=True)
class Symbol:
    """One value that a fixture assigns: a shape, a window, a list of lengths."""

    name: str
    """The name in expressions and in ``case["..."]``. Example: ``name="window"``"""

    kind: SymbolKind = "int"
    """``int``, ``float``, or ``ints``: a list of integers, one per batch row. Example: ``kind="ints"``"""

    default: Expression | float | None = None
    """Value or expression used when a fixture omits the symbol; None makes it required.
    Example: ``default="columns"``"""

    minimum: int | None = None
    """The smallest value that a fixture may assign. Example: ``minimum=0``"""

    choices: tuple[int, ...] = ()
    """The only values that a fixture may assign; empty: any. Example: ``choices=(16, 32)``"""

    doc: str = ""
    """One line, shown by ``verify list --json`` and in messages about fixtures.
    Example: ``doc="weights that share a scale"``"""


@dataclass(frozen=True)
class DtypeChoice:
    """An element type that a symbol chooses."""

    symbol: str
    """The symbol whose value is the index into ``choices``. Example: ``symbol="output"``"""

    choices: tuple[str, ...]
    """Element types, by index. Example: ``choices=("bf16", "f32")``"""

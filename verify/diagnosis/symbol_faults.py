"""Symbols that a kernel confuses: off by one, the default, another row's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from verify.contract.expression import ExpressionError
from verify.contract.hypothesis import Prediction
from verify.contract.model import Case
from verify.contract.symbols import Symbol
from verify.diagnosis.altered import altered


def symbols(case: Case, seen: Mapping[str, np.ndarray]) -> Iterator[Prediction]:
    """Each symbol that decides no shape, as it might be mistaken."""
    shapes = [case.shape(b) for b in case.contract.buffers if b.role != "workspace"]
    for symbol in case.contract.declared_symbols:
        held = case.symbols.get(symbol.name)
        for words, value in _mistaken(case, symbol, held):
            if value == held:
                continue
            other = altered(case, symbols={symbol.name: value})
            try:
                alike = shapes == [other.shape(b) for b in case.contract.buffers if b.role != "workspace"]
            except (ExpressionError, ArithmeticError):
                continue
            if alike:
                yield Prediction(f"{symbol.name} taken for {words}", other)


def _mistaken(case: Case, symbol: Symbol, held: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(held, tuple):
        yield "that of the first row in all rows", (held[0],) * len(held)
        yield "one less in all rows", tuple(x - 1 for x in held)
        yield "one more in all rows", tuple(x + 1 for x in held)
        yield "that of the row before", (held[-1], *held[:-1])
        yield "that of the row behind", (*held[1:], held[0])
    elif isinstance(held, int) and not isinstance(held, bool):
        for count in (held - 1, held + 1, 0):
            if count >= 0:
                yield f"{count}, not {held}", count
    if isinstance(held, int | float) and symbol.default is not None:
        default = case.evaluate(symbol.default)
        if default != held and default != 0:
            yield f"its default, {default:.6g}, not {held:.6g}", default
    if isinstance(held, float):
        yield "1", 1.0
        yield "its reciprocal", 1 / held if held else held
        yield "its square", held**2
        yield "its square root", abs(held) ** 0.5
        yield "its negative", -held

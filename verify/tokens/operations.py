"""The decoder's operations as cases of the kernels' contracts, and their execution by the oracle.

An operation is one kernel call for each decoded position. The oracle path evaluates the contract's reference
and rounds it to the kernel's output format; the kernel path (verify.tokens.device_path) runs the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from verify.contract.discovery import find_contracts
from verify.contract.formats import round_to
from verify.contract.model import Case, Contract
from verify.fixture.resolve import resolve_symbols
from verify.fixture.schema import Fixture

KERNELS = ("flash_decode", "fp4_matvec", "fp8_matvec")
ACTIVATIONS = ("q", "k", "v", "x")
RESULT = {"flash_decode": "out", "fp4_matvec": "y", "fp8_matvec": "y"}

Plans = Callable[[Contract, Mapping[str, Any]], Mapping[str, int]]
"""A launcher's plan for symbol values."""


@dataclass(frozen=True)
class Operation:
    """One op of one layer over some positions. layer: its number, or None for the head."""

    layer: int | None
    name: str
    kernel: str
    symbols: Sequence[Mapping[str, Any]]
    arrays: Sequence[Mapping[str, np.ndarray]]
    positions: Sequence[int]

    @property
    def place(self) -> str:
        """``layer 3, attention``, for messages."""
        return self.name if self.layer is None else f"layer {self.layer}, {self.name}"


class Executor(Protocol):
    """Computes an operation: one row of results per position, float64."""

    def __call__(self, operation: Operation) -> np.ndarray: ...


class CaseBuilder:
    """Builds cases from operations. plans: queries the launcher, once for each set of symbol values.

    stored: the format of activations and results. The kernels use ``bf16``; with ``f64`` the cases are only
    for the references, and nothing is rounded.
    """

    def __init__(self, plans: Plans, stored: str = "bf16") -> None:
        self.stored = stored
        self.contracts = {name: _storing(find_contracts([name])[0], stored) for name in KERNELS}
        self._plans = plans
        self._known: dict[tuple[Any, ...], tuple[dict[str, Any], Mapping[str, int]]] = {}

    def cases(self, operation: Operation) -> list[Case]:
        """One case per position."""
        contract = self.contracts[operation.kernel]
        where = "head" if operation.layer is None else f"layer{operation.layer}"
        built = []
        given = zip(operation.positions, operation.symbols, operation.arrays, strict=True)
        for position, symbols, arrays in given:
            values, plan = self._resolved(contract, symbols)
            profile = f"step{position}"
            built.append(Case(contract, f"{where}-{operation.name}", profile, values, plan, arrays))
        return built

    def joint(self, operation: Operation) -> Case:
        """All positions as the rows of one batch, for the references: a contract's rows are independent.

        Not for a launch: the plan is that of a single row.
        """
        cases = self.cases(operation)
        first, contract = cases[0], cases[0].contract
        assert contract.batch is not None
        by_row = {b.name for b in contract.buffers if b.shape[0] == contract.batch}
        arrays = {
            name: np.concatenate([case.arrays[name] for case in cases]) if name in by_row else array
            for name, array in first.arrays.items()
        }
        lists = {
            s.name: tuple(value for case in cases for value in case.symbols[s.name])
            for s in contract.declared_symbols
            if s.kind == "ints"
        }
        symbols = {**first.symbols, **lists, contract.batch: len(cases)}
        return replace(first, profile="steps", symbols=symbols, arrays=arrays)

    def _resolved(
        self, contract: Contract, symbols: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Mapping[str, int]]:
        """All symbol values, and the plan, which does not depend on values in device memory."""
        key = (contract.name, *(v for n, v in sorted(symbols.items()) if n not in contract.captured_at))
        fixture = Fixture(contract.name, "tokens", "", {n: _listed(v) for n, v in symbols.items()})
        if key not in self._known:
            values = resolve_symbols(fixture, contract, {})
            self._known[key] = values, self._plans(contract, values)
        values, plan = self._known[key]
        changed = {name: symbols[name] for name in contract.captured_at}
        return {**values, **changed}, plan


def _storing(contract: Contract, stored: str) -> Contract:
    """The contract with bf16 activations and all results in another format."""
    if stored == "bf16":
        return contract
    buffers = tuple(
        replace(b, dtype=stored) if b.role == "out" or b.name in ACTIVATIONS else b for b in contract.buffers
    )
    return replace(contract, buffers=buffers)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


class Oracle:
    """The reference, rounded to the kernel's output format."""

    def __init__(self, builder: CaseBuilder) -> None:
        self._builder = builder

    def __call__(self, operation: Operation) -> np.ndarray:
        case, result = self._builder.joint(operation), RESULT[operation.kernel]
        value = case.contract.reference(case)[result]
        return np.asarray(round_to(case.dtype(case.contract.buffer(result)), value))

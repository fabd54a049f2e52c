"""Rung 1 of the oracle ladder: sampled elements in arbitrary precision check the float64 reference.

The contract's ``exact_reference`` computes one element from the case's stored inputs with mpmath. The
float64 reference must agree with it far inside the bound, and an ideal kernel, whose result is the exact
value rounded once to the output's format, must not be rejected by the bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import mpmath
import numpy as np

from verify.contract.formats import round_to
from verify.contract.model import Case
from verify.contract.returned import ReturnedError
from verify.oracle.expectation import Quantity

DIGITS = 50
_AGREEMENT = 2.0**-40


@dataclass(frozen=True)
class Disagreement:
    """An element where the oracle is wrong. what: the reference, or a bound that rejects an ideal result."""

    quantity: str
    index: tuple[int, ...]
    what: str
    exact: float
    reference: float
    bound: float

    def __str__(self) -> str:
        return (
            f"{self.quantity}{list(self.index)}: {self.what}: exact {self.exact:.17g}, "
            f"float64 {self.reference:.17g}, bound {self.bound:.3g}"
        )


def sampled_disagreements(
    case: Case, expected: Mapping[str, Quantity], samples: int, rng: np.random.Generator
) -> Iterator[Disagreement]:
    """Check ``samples`` elements of each quantity. Raises ValueError without an exact_reference."""
    function = case.contract.exact_reference
    if function is None:
        raise ValueError(f"{case.contract.name}: exact_reference: is not defined, nothing to check")
    with mpmath.workdps(DIGITS):
        for name, quantity in expected.items():
            for flat in rng.integers(0, quantity.value.size, min(samples, quantity.value.size)):
                index = tuple(int(i) for i in np.unravel_index(int(flat), quantity.value.shape))
                truth = function(case, name, index)
                if not isinstance(truth, mpmath.mpf | float | int):
                    raise ReturnedError(
                        f"{case.contract.file}: exact_reference: must return a number, returned {truth!r}"
                    )
                yield from _compare(quantity, index, truth)


def _compare(quantity: Quantity, index: tuple[int, ...], truth: mpmath.mpf) -> Iterator[Disagreement]:
    reference, bound = float(quantity.value[index]), float(quantity.bound[index])
    rounded = float(truth)
    if not mpmath.isfinite(truth) or not np.isfinite(reference):
        same = (np.isnan(rounded) and np.isnan(reference)) or rounded == reference
        if not same:
            yield Disagreement(quantity.name, index, "the reference is wrong", rounded, reference, bound)
        return
    if abs(truth - reference) > _AGREEMENT * max(abs(rounded), 1.0 if quantity.dtype is None else 0.0):
        yield Disagreement(quantity.name, index, "the reference is wrong", rounded, reference, bound)
    if quantity.dtype is not None:
        ideal = float(round_to(quantity.dtype, np.asarray(rounded)))
        # For an exact quantity, the comparison rounds the reference to the format first.
        target = float(round_to(quantity.dtype, np.asarray(reference))) if quantity.exact else reference
        if abs(ideal - target) > bound:
            yield Disagreement(
                quantity.name, index, "the bound rejects an ideal result", rounded, reference, bound
            )

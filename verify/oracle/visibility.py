"""Visibility: would a fixture show that one position was dropped, or that one dead position was read?

For every live position, and every dead position next to an edge of the band, the contract computes in float64
how far each compared quantity would change. The change is measured in units of what the comparison
tolerates: the derived bound, and for a stored output at least half a unit in the last place. The visibility
of a position is the maximum over profiles and quantities; below :data:`REQUIRED` a fixture proves nothing
about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from verify.contract.formats import format_of
from verify.contract.model import Case
from verify.oracle.expectation import Quantity, expect

REQUIRED = 8.0


@dataclass(frozen=True)
class Weakest:
    """The least visible position of a fixture. profile: the one in which it is most visible."""

    kind: str
    row: int
    head: int
    position: int
    visibility: float
    profile: str


def weakest_position(cases: Iterable[Case]) -> Weakest | None:
    """The least visible position over all profiles of one fixture.

    None if the contract defines no effects, or the fixture has no positions.
    """
    names = []
    best: dict[tuple[str, int, int], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for number, case in enumerate(cases):
        if case.contract.effects is None:
            return None
        names.append(case.profile)
        for effect in case.contract.effects(case, units(expect(case))):
            key = (effect.kind, effect.row, effect.heads.start)
            nothing = (effect.positions, np.zeros(effect.size.shape), np.zeros(effect.size.shape, np.int64))
            positions, size, shown_by = best.setdefault(key, nothing)
            shown_by[effect.size > size] = number
            np.maximum(size, effect.size, out=size)
    found = []
    for (kind, row, first_head), (positions, size, shown_by) in best.items():
        if size.size:
            head, at = np.unravel_index(int(np.argmin(size)), size.shape)
            where = (first_head + int(head), int(positions[at]))
            found.append(Weakest(kind, row, *where, float(size[head, at]), names[shown_by[head, at]]))
    return min(found, key=lambda weakest: weakest.visibility, default=None)


def units(expected: Mapping[str, Quantity]) -> dict[str, np.ndarray]:
    """By how much each element may change unnoticed: 0 where bit equality is required."""
    return {name: unit_of(quantity) for name, quantity in expected.items()}


def unit_of(quantity: Quantity) -> np.ndarray:
    """By how much each element of one quantity may change unnoticed."""
    if quantity.exact:
        return np.zeros_like(quantity.bound)
    if quantity.dtype is None or not format_of(quantity.dtype).is_float:
        return quantity.bound
    fmt = format_of(quantity.dtype)
    exponent = np.frexp(np.where(np.isfinite(quantity.value), quantity.value, 0.0))[1] - 1
    exponent = np.where(quantity.value == 0, -1074, exponent)
    half_step = np.maximum(np.ldexp(fmt.unit_roundoff, exponent), fmt.smallest_subnormal / 2)
    return np.maximum(quantity.bound, half_step)

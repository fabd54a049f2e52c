"""Sums and dot products of tracked arrays, for every order up to a stated depth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from verify.contract.formats import FORMATS
from verify.oracle.arithmetic import F32, TENSOR_CORE_STEP, Arithmetic, gamma
from verify.oracle.elementwise import SILENT, Tracked, with_host_error

ScoreChains = Sequence["slice | ScoreChains"]
"""Slices of a dimension, nested as they are summed; see :func:`tensor_core_scores`."""


@SILENT
def total(x: Tracked, axis: int, depth: int | None = None, arithmetic: Arithmetic = F32) -> Tracked:
    """Sum along an axis in any order whose longest chain has ``depth`` additions (None: any order).

    Each term passes through at most ``depth`` roundings, so the error is at most gamma_depth * sum |x|.
    """
    count = x.shape[axis]
    value = x.value.sum(axis)
    magnitude = np.abs(x.value).sum(axis)
    carried = x.bound.sum(axis)
    steps = min(count - 1, count - 1 if depth is None else depth)
    rounding = gamma(max(steps, 0), arithmetic.u) * (magnitude + carried)
    if x.is_exact:
        rounding = np.where(sums_exactly(magnitude, grid(x.value, axis), arithmetic), 0.0, rounding)
    return _summed(value, magnitude, carried + rounding, arithmetic)


@SILENT
def dot(
    a: Tracked, b: Tracked, axis: int = -1, depth: int | None = None, arithmetic: Arithmetic = F32
) -> Tracked:
    """sum(a * b) along an axis: of shapes that broadcast, no matrix product; see :func:`total`.

    Products and sums are in one precision, fused or not. The result has the broadcast shape without ``axis``.
    For ``[m, k]`` and ``[n, k]`` to ``[m, n]`` call ``dot(a[:, None, :], b[None, :, :])``. Raises
    ValueError for shapes that do not broadcast.
    """
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ValueError(
            f"dot: the shapes {a.shape} and {b.shape} do not broadcast; it multiplies element by element and "
            "sums along one axis"
        ) from None
    product = a.value * b.value
    carried = np.abs(a.value) * b.bound + np.abs(b.value) * a.bound + a.bound * b.bound
    magnitude, brought = np.abs(product).sum(axis), carried.sum(axis)
    count = product.shape[axis]
    steps = min(count - 1, count - 1 if depth is None else depth)
    rounding = gamma(steps + 1, arithmetic.u) * (magnitude + brought) + count * arithmetic.eta
    if a.is_exact and b.is_exact:
        shape = np.broadcast_shapes(a.shape, b.shape)
        grids = [grid(np.broadcast_to(x.value, shape), axis) for x in (a, b)]
        rounding = np.where(sums_exactly(magnitude, grids[0] + grids[1], arithmetic), 0.0, rounding)
    return _summed(product.sum(axis), magnitude, brought + rounding, arithmetic)


@SILENT
def tensor_core_scores(rows: np.ndarray, columns: np.ndarray, chains: ScoreChains) -> Tracked:
    """rows @ columns.T on the tensor core, from exact inputs: ``[m, d]`` and ``[n, d]`` to ``[m, n]``.

    chains: nested. A list of slices of d is one chain: consecutive mma steps into one accumulator. A list of
    chains, or of such lists, is added up in fp32, in order. The bound follows the running sums: the error of
    a step is TENSOR_CORE_STEP times the sum of the accumulator's magnitude and the absolute products that the
    step adds, whatever the order inside the step.
    """
    magnitude = np.abs(rows) @ np.abs(columns).T
    result = _added_chains(rows, columns, chains)
    exponent = grid(rows, -1)[:, None] + grid(columns, -1)[None, :]
    bound = result.bound + F32.eta * rows.shape[1]
    return with_host_error(rows @ columns.T, np.where(sums_exactly(magnitude, exponent), 0.0, bound))


def _added_chains(rows: np.ndarray, columns: np.ndarray, chains: ScoreChains) -> Tracked:
    held, bound = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for number, part in enumerate(chains):
        if isinstance(part, slice):
            taken = np.abs(rows[:, part]) @ np.abs(columns[:, part]).T
            bound += TENSOR_CORE_STEP * (np.abs(held) + bound + taken)
            held = held + rows[:, part] @ columns[:, part].T
        else:
            inner = _added_chains(rows, columns, part)
            held, bound = held + inner.value, bound + inner.bound
            if number:
                bound += F32.u * (np.abs(held) + bound)
    return Tracked(held, bound)


def grid(values: np.ndarray, axis: int) -> np.ndarray:
    """Largest e along an axis such that every value is a multiple of 2^e (large where all are zero)."""
    mantissa, exponent = np.frexp(values)
    with np.errstate(invalid="ignore"):  # the grid of a NaN is irrelevant, since its sums are NaN
        integer = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = (integer & -integer).astype(np.float64)
    trailing = np.frexp(lowest)[1] - 1
    found = np.where(integer == 0, 900, exponent - 53 + trailing)
    return found.min(axis)


def sums_exactly(magnitude: np.ndarray, exponent: np.ndarray, arithmetic: Arithmetic = F32) -> np.ndarray:
    """Whether multiples of 2^exponent, ``magnitude`` in absolute sum, add up without any rounding."""
    small = np.log2(FORMATS[arithmetic.format].smallest_normal)
    with np.errstate(over="ignore"):
        return (magnitude < np.ldexp(1.0, exponent + arithmetic.significant_bits)) & (exponent >= small)


def _summed(value: np.ndarray, magnitude: np.ndarray, bound: np.ndarray, arithmetic: Arithmetic) -> Tracked:
    """A sum whose terms have ``magnitude`` as their absolute sum: in some order it may overflow."""
    passed = (magnitude + bound >= arithmetic.limit) & (np.abs(value) - bound < arithmetic.limit)
    bound = np.where(np.isinf(value), 0.0, np.where(passed, np.inf, bound))
    return with_host_error(value, bound, arithmetic.limit)

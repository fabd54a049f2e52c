"""Float64 arithmetic that tracks rounding bounds: the source of every tolerance.

A :class:`Tracked` array holds the result of exact arithmetic (``value``) and the largest possible error of a
kernel (``bound``): every kernel that performs the recorded operations in the recorded precision gives a
result within ``bound`` of ``value``, element by element. The rules are those of running error analysis
(Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 3 and 4): an operation adds its own
rounding error, at most ``u * |result|`` plus an absolute term for underflow, to the propagated bounds of its
operands.

The bounds hold whether or not a multiplication is fused with the addition after it, and, for sums, for
every order whose longest chain of additions is at most the stated depth. Where a result is provably exact
no rounding error is added: a sum of multiples of 2^e whose absolute values add up to less than 2^(e+p) is
exact in any order in a format of p significant bits.

Every format has a range. A result that certainly overflows the kernel's format is infinite here as well, and
one that may overflow has an infinite bound; no operation prints a NumPy warning. Where an infinity becomes
finite again (``x / inf``), the bound covers the result with an unlimited exponent; after a root or a
logarithm it is infinite. An infinite value with an infinite bound means that the kernel's result may be
finite.

Published errors of the approximate instructions: PTX ISA, section on floating-point instructions
(``ex2.approx``, ``lg2.approx``, ``rcp.approx``, ``div.full``: at most 2 ulp, which is 2^-22 of the result;
``lg2.approx`` in [0.5, 2]: 2^-22 absolute). The tensor core is described at :data:`TENSOR_CORE_STEP`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from verify.contract.formats import FORMATS, round_to

_HOST = 2.0**-50
"""Relative allowance for the float64 arithmetic of the reference itself."""

APPROXIMATE = 2.0**-22
"""Relative error of ex2.approx, rcp.approx and div.full: two units in the last place of an fp32 result."""

TENSOR_CORE_STEP = 11 * 2.0**-23
"""Error of one mma.sync step with 16 products and fp32 accumulators, relative to |c| + sum |products|.

PTX leaves the rounding inside the instruction open. Measured (Fasi, Higham, Mikaitis, Pranesh, Numerical
behavior of NVIDIA tensor cores, PeerJ CS 2021, and later work on Hopper): the addends are aligned to the
largest exponent and truncated, with one extra bit and in two halves of eight products on sm_80, with two
extra bits and in one piece on sm_90, and the result is truncated. That is 2 * (9 * 2^-24 + 2^-23) on sm_80,
less on sm_90, and as much as 8 * 2^-23 for 16 fp32 additions rounded to nearest.
"""


ScoreChains = Sequence["slice | ScoreChains"]
"""Slices of a dimension, nested as they are summed; see :func:`tensor_core_scores`."""


@dataclass(frozen=True)
class Arithmetic:
    """The precision of an operation: format of the result, and whether subnormal results become zero."""

    format: str = "f32"
    flush: bool = True

    @property
    def u(self) -> float:
        """Unit roundoff."""
        return FORMATS[self.format].unit_roundoff

    @property
    def eta(self) -> float:
        """Largest absolute error of a result that underflows."""
        fmt = FORMATS[self.format]
        return fmt.smallest_normal if self.flush else fmt.smallest_subnormal / 2

    @property
    def limit(self) -> float:
        """The smallest magnitude that rounds to infinity; infinite if the format saturates."""
        return overflow_limit(self.format)

    @property
    def significant_bits(self) -> int:
        """Bits of the significand, including the implicit one."""
        return FORMATS[self.format].mantissa + 1


@cache
def overflow_limit(dtype: str) -> float:
    """The smallest magnitude that a format rounds to infinity; infinite for integers and if it saturates."""
    fmt = FORMATS[dtype]
    if not fmt.is_float or fmt.saturates or dtype == "f64":
        return np.inf
    return fmt.max_finite * (1 + fmt.unit_roundoff / (2 - 2 * fmt.unit_roundoff))


F32 = Arithmetic()


@dataclass(frozen=True)
class Tracked:
    """A float64 array with a bound on the error of a kernel's result.

    value, bound: arrays of one shape; bound >= 0. Where ``value`` is NaN the bound is meaningless; where it
    is infinite, a finite bound means that the kernel's result is this infinity.
    """

    value: np.ndarray
    bound: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.value.shape

    @property
    def is_exact(self) -> bool:
        """Whether no element can differ from its value."""
        return not np.any(self.bound)

    def __getitem__(self, index: Any) -> Tracked:
        return Tracked(self.value[index], self.bound[index])

    def __neg__(self) -> Tracked:
        return Tracked(-self.value, self.bound)

    def __add__(self, other: Tracked | float) -> Tracked:
        return add(self, tracked(other))

    def __radd__(self, other: float) -> Tracked:
        return add(tracked(other), self)

    def __sub__(self, other: Tracked | float) -> Tracked:
        return add(self, -tracked(other))

    def __rsub__(self, other: float) -> Tracked:
        return add(tracked(other), -self)

    def __mul__(self, other: Tracked | float) -> Tracked:
        return multiply(self, tracked(other))

    def __rmul__(self, other: float) -> Tracked:
        return multiply(tracked(other), self)

    def __truediv__(self, other: Tracked | float) -> Tracked:
        return divide(self, tracked(other))

    def __rtruediv__(self, other: float) -> Tracked:
        return divide(tracked(other), self)


_SILENT = np.errstate(all="ignore")
"""Infinities and NaN are ordinary results here."""


def exact(values: np.ndarray | float) -> Tracked:
    """An input: the kernel holds exactly these values."""
    value = np.asarray(values, np.float64)
    return Tracked(value, np.zeros_like(value))


def tracked(value: Tracked | np.ndarray | float) -> Tracked:
    """``value`` itself, or an array of it; a kernel may have a Python float in single precision."""
    if isinstance(value, Tracked):
        return value
    held = exact(value)
    if isinstance(value, float) and np.isfinite(value):
        return Tracked(held.value, np.abs(round_to("f32", held.value) - held.value))
    return held


@_SILENT
def add(a: Tracked, b: Tracked, arithmetic: Arithmetic = F32) -> Tracked:
    """a + b, rounded once. A sum of two numbers never underflows, except by flushing."""
    underflow = arithmetic.eta if arithmetic.flush else 0.0
    return _rounded(a.value + b.value, a.bound + b.bound, arithmetic, underflow)


@_SILENT
def multiply(a: Tracked, b: Tracked, arithmetic: Arithmetic = F32) -> Tracked:
    """a * b, rounded once."""
    carried = np.abs(a.value) * b.bound + np.abs(b.value) * a.bound + a.bound * b.bound
    certain = (_overflowed(a) & (np.abs(b.value) > b.bound)) | (_overflowed(b) & (np.abs(a.value) > a.bound))
    return _rounded(a.value * b.value, np.where(certain, 0.0, carried), arithmetic, arithmetic.eta)


@_SILENT
def divide(a: Tracked, b: Tracked, arithmetic: Arithmetic = F32, error: float = 0.0) -> Tracked:
    """a / b, rounded once. ``error``: further relative error of an approximate division (APPROXIMATE).

    The bound is infinite where the divisor may be zero. An infinite divisor may stand for any magnitude
    beyond the format's range.
    """
    value = a.value / b.value
    least = np.abs(b.value) - b.bound
    carried = np.where(least > 0, (a.bound + np.abs(value) * b.bound) / least, np.inf)
    vanished = (np.abs(a.value) + a.bound) / FORMATS[arithmetic.format].max_finite
    carried = np.where(_overflowed(b) & (value == 0), vanished, carried)
    carried = np.where(_overflowed(a) & (least > 0) & np.isfinite(b.value), 0.0, carried)
    result = _rounded(value, carried, arithmetic, arithmetic.eta)
    return _widened(result, error)


@_SILENT
def exp2(x: Tracked, arithmetic: Arithmetic = F32, error: float = APPROXIMATE) -> Tracked:
    """2^x by an instruction of relative error ``error``; exact where x is 0, as the PTX ISA states."""
    value = np.exp2(x.value)
    carried = value * np.expm1(np.log(2) * x.bound)
    own = np.where((x.value == 0) & (x.bound == 0), 0.0, error * (value + carried) + arithmetic.eta)
    certain = np.exp2(x.value - x.bound) * (1 - error) >= arithmetic.limit
    bound = np.where(certain | (value + carried == 0), 0.0, carried + own)
    return _host(np.where(certain, np.inf, value), bound, arithmetic.limit)


@_SILENT
def exp(x: Tracked, arithmetic: Arithmetic = F32, error: float = APPROXIMATE) -> Tracked:
    """e^x computed as exp2(x * log2 e), the constant and the product each rounded once."""
    factor = Tracked(np.asarray(np.log2(np.e)), np.asarray(arithmetic.u * np.log2(np.e)))
    return exp2(multiply(x, factor, arithmetic), arithmetic, error)


@_SILENT
def log(x: Tracked, arithmetic: Arithmetic = F32, error: float = APPROXIMATE) -> Tracked:
    """Natural logarithm as lg2.approx and one product; error absolute near 1 and relative elsewhere."""
    value = np.log(x.value)
    carried = np.where(x.value > x.bound, -np.log1p(-x.bound / x.value), np.inf)
    own = (np.log(2) + np.abs(value)) * error
    carried = np.where(np.isposinf(x.value), np.inf, carried + own)
    return _rounded(value, carried, arithmetic, arithmetic.eta)


@_SILENT
def sqrt(x: Tracked, arithmetic: Arithmetic = F32, error: float = 0.0) -> Tracked:
    """Square root, rounded once. ``error``: further relative error of an approximate one (APPROXIMATE).

    With y within b of x, ``|sqrt y - sqrt x| <= b / (sqrt x + sqrt(x - b))``. NaN where x is negative.
    """
    value = np.sqrt(x.value)
    lowest = np.sqrt(np.maximum(x.value - x.bound, 0.0))
    carried = np.where(x.bound > 0, x.bound / (value + lowest), 0.0)
    carried = np.where(x.value > 0, carried, np.sqrt(np.abs(x.bound)))
    carried = np.where(np.isposinf(x.value), np.inf, carried)
    return _widened(_rounded(value, carried, arithmetic, arithmetic.eta), error)


@_SILENT
def rsqrt(x: Tracked, arithmetic: Arithmetic = F32, error: float = APPROXIMATE) -> Tracked:
    """1 / sqrt(x) by an instruction of relative error ``error``, or as a root and a division."""
    return divide(exact(np.ones_like(x.value)), sqrt(x, arithmetic), arithmetic, error)


@_SILENT
def maximum(x: Tracked, axis: int) -> Tracked:
    """Maximum along an axis: never rounded; if bounds overlap, the kernel may pick another element."""
    value = x.value.max(axis)
    above = (x.value + x.bound).max(axis) - value
    below = value - (x.value - x.bound).max(axis)
    return Tracked(value, np.where(np.isfinite(value), np.maximum(above, below), 0.0))


def where(mask: np.ndarray, a: Tracked | float, b: Tracked | float) -> Tracked:
    """Elements of ``a`` where the mask is true, else of ``b``."""
    a, b = tracked(a), tracked(b)
    return Tracked(np.where(mask, a.value, b.value), np.where(mask, a.bound, b.bound))


@_SILENT
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


@_SILENT
def dot(
    a: Tracked, b: Tracked, axis: int = -1, depth: int | None = None, arithmetic: Arithmetic = F32
) -> Tracked:
    """sum(a * b) along an axis with products and sums in one precision, fused or not; see :func:`total`."""
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


@_SILENT
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
    return _host(rows @ columns.T, np.where(sums_exactly(magnitude, exponent), 0.0, bound))


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


@_SILENT
def round_result(x: Tracked, dtype: str) -> Tracked:
    """x rounded to nearest in a storage format.

    Rounding is monotonic, so the stored result lies between the rounded ends of the interval
    ``value +- bound``; the new bound is the farther of the two from ``value``. It is often no more than the
    rounding error of ``value`` itself.
    """
    reach = x.bound + _HOST * np.abs(x.value)
    low, high = round_to(dtype, x.value - reach), round_to(dtype, x.value + reach)
    bound = np.maximum(np.abs(high - x.value), np.abs(x.value - low)) + 4 * _HOST * np.abs(x.value)
    value = np.where(np.isinf(low) & (low == high), low, x.value)
    return Tracked(value, np.where(np.isfinite(value), bound, 0.0))


def in_range(x: Tracked, limit: float) -> Tracked:
    """x in a format in which magnitudes from ``limit`` on overflow: infinite where the result surely does.

    The bound is infinite where the result may or may not overflow.
    """
    with np.errstate(invalid="ignore"):
        size = np.abs(x.value)
        if not np.any(beyond := np.isfinite(size) & (size + x.bound >= limit)):
            return x
        certain = beyond & (size - x.bound >= limit)
        value = np.where(certain, np.copysign(np.inf, x.value), x.value)
        return Tracked(value, np.where(certain, 0.0, np.where(beyond, np.inf, x.bound)))


def gamma(count: int | np.ndarray, u: float) -> float | np.ndarray:
    """count * u / (1 - count * u): the largest relative error of ``count`` successive roundings."""
    return count * u / (1 - count * u)


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
    return _host(value, bound, arithmetic.limit)


def _overflowed(x: Tracked) -> np.ndarray:
    """Where the kernel's result is certainly infinite."""
    return np.isinf(x.value) & np.isfinite(x.bound)


def _rounded(value: np.ndarray, carried: np.ndarray, arithmetic: Arithmetic, eta: float) -> Tracked:
    """One rounding of an intermediate result; none where an exact result is representable."""
    rounding = np.where(np.isinf(value), 0.0, arithmetic.u * (np.abs(value) + carried) + eta)
    representable = (carried == 0) & (round_to(arithmetic.format, value) == value)
    if arithmetic.flush:
        representable &= (value == 0) | (np.abs(value) >= arithmetic.eta)
    return _host(value, carried + np.where(representable, 0.0, rounding), arithmetic.limit)


def _widened(x: Tracked, relative: float) -> Tracked:
    if not relative:
        return x
    more = relative * (np.abs(x.value) + x.bound)
    return Tracked(x.value, np.where(np.isfinite(x.value), x.bound + more, x.bound))


def _host(value: np.ndarray, bound: np.ndarray, limit: float = np.inf) -> Tracked:
    """Add the allowance for the reference's own rounding wherever the bound is not zero.

    limit: that of the result's format. A NaN bound (from zero times infinity) becomes infinite.
    """
    with np.errstate(invalid="ignore"):
        bound = np.where(np.isnan(bound), np.where(np.isfinite(value), np.inf, 0.0), bound)
        own = np.where(np.isfinite(value), _HOST * np.abs(value), 0.0)
        allowed = np.where(bound > 0, bound * (1 + _HOST) + own, 0.0)
        return in_range(Tracked(value, allowed), limit)

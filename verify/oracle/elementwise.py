"""Arrays that track rounding bounds, and their element-wise operations; see :mod:`verify.oracle.tracked`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.contract.formats import FORMATS, round_to
from verify.oracle.arithmetic import APPROXIMATE, F32, HOST_ERROR, Arithmetic


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


SILENT = np.errstate(all="ignore")
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


@SILENT
def add(a: Tracked, b: Tracked, arithmetic: Arithmetic = F32) -> Tracked:
    """a + b, rounded once. A sum of two numbers never underflows, except by flushing."""
    underflow = arithmetic.eta if arithmetic.flush else 0.0
    return _rounded(a.value + b.value, a.bound + b.bound, arithmetic, underflow)


@SILENT
def multiply(a: Tracked, b: Tracked, arithmetic: Arithmetic = F32) -> Tracked:
    """a * b, rounded once."""
    carried = np.abs(a.value) * b.bound + np.abs(b.value) * a.bound + a.bound * b.bound
    certain = (_overflowed(a) & (np.abs(b.value) > b.bound)) | (_overflowed(b) & (np.abs(a.value) > a.bound))
    return _rounded(a.value * b.value, np.where(certain, 0.0, carried), arithmetic, arithmetic.eta)


@SILENT
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


@SILENT
def exp2(x: Tracked, arithmetic: Arithmetic = F32, error: float = APPROXIMATE) -> Tracked:
    """2^x by an instruction of relative error ``error``; exact where x is 0, as the PTX ISA states."""
    value = np.exp2(x.value)
    carried = value * np.expm1(np.log(2) * x.bound)
    own = np.where((x.value == 0) & (x.bound == 0), 0.0, error * (value + carried) + arithmetic.eta)
    certain = np.exp2(x.value - x.bound) * (1 - error) >= arithmetic.limit
    bound = np.where(certain | (value + carried == 0), 0.0, carried + own)
    return with_host_error(np.where(certain, np.inf, value), bound, arithmetic.limit)


@SILENT
def exp(x: Tracked, arithmetic: Arithmetic = F32, error: float = APPROXIMATE) -> Tracked:
    """e^x computed as exp2(x * log2 e), the constant and the product each rounded once."""
    factor = Tracked(np.asarray(np.log2(np.e)), np.asarray(arithmetic.u * np.log2(np.e)))
    return exp2(multiply(x, factor, arithmetic), arithmetic, error)


@SILENT
def log(x: Tracked, arithmetic: Arithmetic = F32, error: float = APPROXIMATE) -> Tracked:
    """Natural logarithm as lg2.approx and one product; error absolute near 1 and relative elsewhere."""
    value = np.log(x.value)
    carried = np.where(x.value > x.bound, -np.log1p(-x.bound / x.value), np.inf)
    own = (np.log(2) + np.abs(value)) * error
    carried = np.where(np.isposinf(x.value), np.inf, carried + own)
    return _rounded(value, carried, arithmetic, arithmetic.eta)


@SILENT
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


@SILENT
def rsqrt(x: Tracked, arithmetic: Arithmetic = F32, error: float = APPROXIMATE) -> Tracked:
    """1 / sqrt(x) by an instruction of relative error ``error``, or as a root and a division."""
    return divide(exact(np.ones_like(x.value)), sqrt(x, arithmetic), arithmetic, error)


@SILENT
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


@SILENT
def round_result(x: Tracked, dtype: str) -> Tracked:
    """x rounded to nearest in a storage format.

    Rounding is monotonic, so the stored result lies between the rounded ends of the interval
    ``value +- bound``; the new bound is the farther of the two from ``value``. It is often no more than the
    rounding error of ``value`` itself.
    """
    reach = x.bound + HOST_ERROR * np.abs(x.value)
    low, high = round_to(dtype, x.value - reach), round_to(dtype, x.value + reach)
    bound = np.maximum(np.abs(high - x.value), np.abs(x.value - low)) + 4 * HOST_ERROR * np.abs(x.value)
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


def _overflowed(x: Tracked) -> np.ndarray:
    """Where the kernel's result is certainly infinite."""
    return np.isinf(x.value) & np.isfinite(x.bound)


def _rounded(value: np.ndarray, carried: np.ndarray, arithmetic: Arithmetic, eta: float) -> Tracked:
    """One rounding of an intermediate result; none where an exact result is representable."""
    rounding = np.where(np.isinf(value), 0.0, arithmetic.u * (np.abs(value) + carried) + eta)
    representable = (carried == 0) & (round_to(arithmetic.format, value) == value)
    if arithmetic.flush:
        representable &= (value == 0) | (np.abs(value) >= arithmetic.eta)
    return with_host_error(value, carried + np.where(representable, 0.0, rounding), arithmetic.limit)


def _widened(x: Tracked, relative: float) -> Tracked:
    if not relative:
        return x
    more = relative * (np.abs(x.value) + x.bound)
    return Tracked(x.value, np.where(np.isfinite(x.value), x.bound + more, x.bound))


def with_host_error(value: np.ndarray, bound: np.ndarray, limit: float = np.inf) -> Tracked:
    """Add the allowance for the reference's own rounding wherever the bound is not zero.

    limit: that of the result's format. A NaN bound (from zero times infinity) becomes infinite.
    """
    with np.errstate(invalid="ignore"):
        bound = np.where(np.isnan(bound), np.where(np.isfinite(value), np.inf, 0.0), bound)
        own = np.where(np.isfinite(value), HOST_ERROR * np.abs(value), 0.0)
        allowed = np.where(bound > 0, bound * (1 + HOST_ERROR) + own, 0.0)
        return in_range(Tracked(value, allowed), limit)

"""The precision of an operation, and the published errors of approximate instructions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from verify.contract.formats import FORMATS

HOST_ERROR = 2.0**-50
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


def gamma(count: int | np.ndarray, u: float) -> float | np.ndarray:
    """count * u / (1 - count * u): the largest relative error of ``count`` successive roundings."""
    return count * u / (1 - count * u)

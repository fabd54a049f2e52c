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

from verify.oracle.arithmetic import APPROXIMATE, F32, TENSOR_CORE_STEP, Arithmetic, gamma, overflow_limit
from verify.oracle.elementwise import (
    Tracked,
    add,
    divide,
    exact,
    exp,
    exp2,
    in_range,
    log,
    maximum,
    multiply,
    round_result,
    rsqrt,
    sqrt,
    tracked,
    where,
)
from verify.oracle.sums import ScoreChains, dot, grid, sums_exactly, tensor_core_scores, total

__all__ = [
    "APPROXIMATE",
    "F32",
    "TENSOR_CORE_STEP",
    "Arithmetic",
    "ScoreChains",
    "Tracked",
    "add",
    "divide",
    "dot",
    "exact",
    "exp",
    "exp2",
    "gamma",
    "grid",
    "in_range",
    "log",
    "maximum",
    "multiply",
    "overflow_limit",
    "round_result",
    "rsqrt",
    "sqrt",
    "sums_exactly",
    "tensor_core_scores",
    "total",
    "tracked",
    "where",
]

"""Decode attention in arbitrary precision, one element at a time."""

from __future__ import annotations

import mpmath
import numpy as np

from verify.contract.model import Case
from verify.contracts.attention.reference import attention_heads, softmax_scale
from verify.oracle.sums import grid


def attention_exactly(case: Case, quantity: str, index: tuple[int, ...]) -> mpmath.mpf:
    """The exact ``out``, ``partial_out`` or ``partial_lse`` at an index, in mpmath's working precision."""
    row, group = index[0], case["NH"] // case["NKV"]
    head_index, dim = divmod(index[1], case["D"]) if quantity == "out" else (index[1], index[-1])
    head = next(
        h for h in attention_heads(case) if h.batch == row and h.heads.start <= head_index < h.heads.stop
    )
    if head.broken:
        return mpmath.nan
    part = slice(0, len(head.k)) if quantity == "out" else head.parts[index[2]]
    keys, values = head.k[part], head.v[part]
    empty = mpmath.ninf if quantity == "partial_lse" else mpmath.mpf(0)
    if len(keys) == 0:
        return empty
    scale = mpmath.mpf(softmax_scale(case))
    weights = [mpmath.exp(scale * score) for score in _exact_products(keys, head.q[head_index % group])]
    if quantity == "partial_lse":
        return mpmath.log(mpmath.fsum(weights))
    return mpmath.fdot(weights, values[:, dim].tolist()) / mpmath.fsum(weights)


def _exact_products(rows: np.ndarray, column: np.ndarray) -> list[mpmath.mpf]:
    """``rows @ column`` without any rounding: both as integers times a power of two."""
    (left, left_exponent), (right, right_exponent) = _integers(rows), _integers(column)
    return [mpmath.ldexp(mpmath.mpf(int(x)), left_exponent + right_exponent) for x in left @ right]


def _integers(values: np.ndarray) -> tuple[np.ndarray, int]:
    """The values as Python integers and a common exponent of two."""
    exponent = min(int(grid(values.ravel(), 0)), 0)
    integers = [int(x) for x in np.ldexp(values, -exponent).ravel()]
    return np.array(integers, object).reshape(values.shape), exponent

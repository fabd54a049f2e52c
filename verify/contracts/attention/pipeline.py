"""Error model of decode attention as two library products around a softmax over the whole allocation.

The scores are fp32, and the normalised weights are rounded to bf16 before the second product, which makes
this the less accurate of the two implementations. Nothing is assumed about the order in which the library
adds, only that it uses the tensor core or fp32 multiply-adds.
"""

from __future__ import annotations

import numpy as np

from verify.contract.formats import FORMATS
from verify.contract.model import Case
from verify.contracts.attention.reference import band, is_broken, softmax_scale
from verify.oracle.arithmetic import APPROXIMATE, F32, TENSOR_CORE_STEP, gamma
from verify.oracle.sums import grid
from verify.oracle.tracked import Tracked, round_result

_LIBRARY_ADDITIONS = 16
"""fp32 additions at the end of a product, of partial sums that the library may keep separately."""


def pipeline_reference(case: Case) -> dict[str, np.ndarray]:
    """``out`` ``[B, NH*D]``: a dense softmax over the live band."""
    return {"out": _solve(case)[0]}


def pipeline_error_model(case: Case) -> dict[str, Tracked]:
    """``out`` with the bound from the errors of scores, weights and sums."""
    value, bound = _solve(case)
    return {"out": round_result(Tracked(value, bound), "bf16")}


def _solve(case: Case) -> tuple[np.ndarray, np.ndarray]:
    rows, heads, kv_heads, dim = case["B"], case["NH"], case["NKV"], case["D"]
    group, scale = heads // kv_heads, softmax_scale(case)
    q = case.f64("q").reshape(rows, kv_heads, group, dim)
    k, v = case.f64("k"), case.f64("v")
    out = np.zeros((rows, kv_heads, group, dim))
    bound = np.zeros_like(out)
    for row in range(rows):
        lo, hi = band(case, row)
        slots = np.arange(lo, hi) % case["capacity"]
        for kv_head in range(kv_heads):
            at = (row, kv_head)
            if is_broken(case, row):
                out[at] = np.nan
            elif hi > lo:
                keys, values = k[row, kv_head, slots], v[row, kv_head, slots]
                out[at], bound[at] = _head(q[at], keys, values, scale, case["capacity"])
    return out.reshape(rows, -1), bound.reshape(rows, -1)


def _head(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, capacity: int
) -> tuple[np.ndarray, np.ndarray]:
    """Output ``[group, D]`` of one KV head and its bound before the last rounding."""
    scores = q @ k.T
    size = np.abs(q) @ np.abs(k).T
    exact = size < np.ldexp(1.0, grid(q, -1)[:, None] + grid(k, -1)[None] + F32.significant_bits)
    off = np.where(exact, 0.0, _product_error(q.shape[1]) * size)
    top = scores.max(-1, keepdims=True)
    span = scale * (top - scores)
    weights = np.exp(-span)
    # exponent: both scores, their difference and its product with the scale; then expf, within two ulp
    worst = off.max(-1, keepdims=True)
    relative = np.expm1(scale * (off + worst) + 3 * F32.u * span) + 2 * APPROXIMATE
    total = weights.sum(-1, keepdims=True)
    share = weights / total
    summed = (share * relative).sum(-1, keepdims=True) + gamma(capacity // 256 + 16, F32.u)
    relative = (1 + relative) * (1 + summed) / (1 - summed) * (1 + FORMATS["bf16"].unit_roundoff + F32.u) - 1
    underflow = len(v) * FORMATS["bf16"].smallest_normal
    mass = share @ np.abs(v)
    moved = (share * relative) @ np.abs(v) + underflow * np.abs(v).max(0)
    return share @ v, moved + _product_error(capacity) * (mass + moved)


def _product_error(depth: int) -> float:
    """Relative to the absolute products: a tensor core step per 16 of them, and the final additions."""
    return -(-depth // 16) * TENSOR_CORE_STEP + _LIBRARY_ADDITIONS * F32.u

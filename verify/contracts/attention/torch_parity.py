"""Decode attention by PyTorch in double precision, over the live positions only, for the parity check."""

from __future__ import annotations

import numpy as np

from verify.contract.model import Case
from verify.contracts.attention.reference import band, is_broken, softmax_scale
from verify.oracle.arithmetic import gamma
from verify.oracle.tracked import Tracked

_DOUBLE = 2.0**-53


def attention_torch(case: Case) -> dict[str, Tracked]:
    """``out`` ``[B, NH*D]``. Raises ModuleNotFoundError without torch."""
    import torch

    rows, heads, kv_heads, dim = case["B"], case["NH"], case["NKV"], case["D"]
    scale = softmax_scale(case)
    q = torch.from_numpy(case.raw("q").copy()).view(torch.bfloat16).double().view(rows, heads, 1, dim)
    caches = [torch.from_numpy(case.raw(name)).view(torch.bfloat16) for name in ("k", "v")]
    out, bound = np.zeros((rows, heads, dim)), np.zeros((rows, heads, dim))
    for row in range(rows):
        lo, hi = band(case, row)
        if is_broken(case, row):
            out[row] = np.nan
        if hi == lo:
            continue
        slots = torch.arange(lo, hi) % case["capacity"]
        k, v = (cache[row].index_select(1, slots).double() for cache in caches)
        k, v = (t.repeat_interleave(heads // kv_heads, 0) for t in (k, v))
        mine = torch.nn.functional.scaled_dot_product_attention(q[row], k, v, scale=scale)
        out[row] = mine[:, 0].numpy()
        # relative error of a weight: two scores, the exponential, and the sum
        scores = scale * (q[row].abs() @ k.abs().transpose(1, 2)).amax((1, 2)).numpy()
        relative = np.expm1(2 * gamma(dim + 4, _DOUBLE) * scores) + gamma(2 * (hi - lo) + 8, _DOUBLE)
        bound[row] = 4 * relative[:, None] * v.abs().amax(1).numpy()
    return {"out": Tracked(out.reshape(rows, -1), bound.reshape(rows, -1))}

"""The matvec kernels in NumPy: their order of additions, FMAs rounded once, and a tensor core of sm_80.

Of the tensor cores that were measured that one keeps the fewest bits; see TENSOR_CORE_STEP.
"""

from __future__ import annotations

import numpy as np

from verify.contract.formats import round_to
from verify.contract.model import Case


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """fl32(a * b + c) of single precision numbers; the product of two is exact in double precision."""
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)


def truncated(values: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Multiples of ``unit``, a power of two, toward zero."""
    return np.trunc(values / unit) * unit


def mma(accumulator: np.ndarray, products: np.ndarray) -> np.ndarray:
    """accumulator ``[...]`` + exact products ``[..., n]``: eight at a time, aligned to 25 bits, truncated."""
    total = accumulator.astype(np.float64)
    for first in range(0, products.shape[-1], 8):
        addends = np.concatenate([total[..., None], products[..., first : first + 8]], -1)
        largest = np.abs(addends).max(-1)
        exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1
        kept = truncated(addends, np.ldexp(1.0, exponent - 24)[..., None]).sum(-1)
        result = np.frexp(np.where(kept != 0, kept, 1.0))[1] - 1
        total = np.where(np.isfinite(kept), truncated(kept, np.ldexp(1.0, result - 23)), kept)
    return total.astype(np.float32)


def simulate(case: Case) -> np.ndarray:
    """y ``[B, N]`` as float64 values of its stored format."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = _fp4(case) if case.contract.name == "fp4_matvec" else _fp8(case)
    return round_to(case.dtype(case.contract.buffer("y")), total.astype(np.float64))


def _warps(values: np.ndarray, case: Case) -> np.ndarray:
    """``[..., K]`` as ``[..., iterations, warps, warp_step]``."""
    *lead, depth = values.shape
    padded = np.pad(values, [(0, 0)] * len(lead) + [(0, -depth % case["step"])])
    return padded.reshape(*lead, -1, case["warps_per_block"], case["warp_step"])


def _in_order(warps: np.ndarray) -> np.ndarray:
    total = warps[..., 0]
    for warp in range(1, warps.shape[-1]):
        total = total + warps[..., warp]
    return total


def _fp4(case: Case) -> np.ndarray:
    return _fp4_one(case) if case["warp_step"] == 256 else _fp4_several(case)


def _fp4_one(case: Case) -> np.ndarray:
    group = case["group"]
    halves, factors = half_precision(case.f64("x"), group)
    x, factor = _warps(halves, case), _warps(np.repeat(factors, group, 1), case)
    weights = _warps(np.ldexp(case.f64("weights"), -14), case)
    scales = _warps(np.repeat(case.f64("scales"), group, 1), case)
    totals = np.zeros((1, case["N"], case["warps_per_block"], 4), np.float32)
    for iteration in range(x.shape[1]):
        for slab in range(0, 256, 128):
            for in_place in range(0, 32, group):
                for lane in range(4):
                    first = slab + 32 * lane + in_place
                    raw = np.zeros(totals.shape[:3], np.float32)
                    for octet in range(first, first + group, 8):
                        for odd in (1, 0):
                            at = (slice(None), iteration, slice(None), slice(octet + odd, octet + 8, 2))
                            raw = mma(raw, x[at][:, None] * weights[at][None])
                    raw = raw * factor[:, None, iteration, :, first].astype(np.float32)
                    scale = scales[None, :, iteration, :, first]
                    totals[..., lane] = fused(scale, raw, totals[..., lane])
    warps = (totals[..., 0] + totals[..., 1]) + (totals[..., 2] + totals[..., 3])
    undone = fused(_in_order(warps), np.full((), 4, np.float32), np.zeros((), np.float32))
    return undone * np.float32(case.f64("tensor_scale")[0])


def half_precision(x: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """fp16 numbers of ``[B, K]`` activations, and what takes a group's sum to that of W / 4."""
    groups = x.reshape(len(x), -1, group)
    bits = groups.astype(np.float32).view(np.uint32) >> 23 & 0xFF
    exponent = np.maximum(bits.max(-1), 15).astype(np.int32)
    halves = np.ldexp(groups, 142 - exponent[..., None]).astype(np.float16).astype(np.float64)
    return halves.reshape(x.shape), np.ldexp(1.0, exponent - 130)


def _fp4_several(case: Case) -> np.ndarray:
    group = case["group"]
    terms = _warps(case.f64("x"), case)[:, None] * _warps(-case.f64("weights") / 4, case)[None]
    octets = terms.reshape(*terms.shape[:-1], -1, group // 8, 2, 4)
    scales = _warps(np.repeat(case.f64("scales"), group, 1), case)[None, ..., ::group]
    totals = np.zeros((*terms.shape[:2], terms.shape[3]), np.float32)
    for iteration in range(terms.shape[2]):
        for number in range(octets.shape[4]):
            own = octets[:, :, iteration, :, number]
            raw = np.zeros(own.shape[:-3], np.float32)
            for half in range(2):
                raw = mma(raw, own[..., half, :].reshape(*raw.shape, -1))
            totals = fused(scales[:, :, iteration, :, number], raw, totals)
    undone = fused(_in_order(totals), np.full((), -4, np.float32), np.zeros((), np.float32))
    return undone * np.float32(case.f64("tensor_scale")[0])


def _fp8(case: Case) -> np.ndarray:
    terms = _warps(case.f64("x"), case)[:, None] * _warps(case.f64("weights"), case)[None]
    words = terms.reshape(*terms.shape[:-1], 4, 4, 4)  # lane, word
    chains = np.zeros((*terms.shape[:2], terms.shape[3], 2), np.float32)
    for iteration in range(terms.shape[2]):
        for word in range(4):
            products = words[:, :, iteration, :, :, word].reshape(*chains.shape[:-1], 16)
            chains[..., word % 2] = mma(chains[..., word % 2], products)
    return _in_order(chains[..., 0] + chains[..., 1]) * case.f64("scales").astype(np.float32)

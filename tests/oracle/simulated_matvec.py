"""The matvec kernels in NumPy single precision: their order of additions, each multiply-add rounded once."""

from __future__ import annotations

import numpy as np

from verify.case.case import Case
from verify.oracle.formats import round_to

LANES = 32


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """fl32(a * b + c) of single precision numbers; the product of two is exact in double precision."""
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)


def simulate(case: Case) -> np.ndarray:
    """y ``[B, N]`` as float64 values of its stored format."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = _fp4(case) if case.contract.name == "fp4_matvec" else _fp8(case)
    return round_to(case.dtype(case.contract.buffer("y")), total.astype(np.float64))


def _lanes(values: np.ndarray, step: int, chain: int) -> np.ndarray:
    *lead, depth = values.shape
    padded = np.pad(values.astype(np.float32), [(0, 0)] * len(lead) + [(0, -depth % step)])
    return padded.reshape(*lead, -1, LANES, step // LANES // chain, chain)


def _butterfly(value: np.ndarray) -> np.ndarray:
    lane = np.arange(LANES)
    for distance in (16, 8, 4, 2, 1):
        value = value + value[..., lane ^ distance]
    return value[..., 0]


def _fp4(case: Case) -> np.ndarray:
    step = case["warp_step"]
    w = _lanes(case.f64("weights"), step, 16)[None]
    s = _lanes(np.repeat(case.f64("scales"), case["group"], 1), step, 16)[None, ..., 0]
    x = _lanes(case.f64("x"), step, 16)[:, None]
    raw = (w[..., 0] * x[..., 0]).astype(np.float32)
    for j in range(1, 16):
        raw = fused(w[..., j], x[..., j], raw)
    total = np.zeros((case["B"], case["N"], LANES), np.float32)
    for iteration in range(raw.shape[2]):
        for chain in range(2):
            total = fused(s[:, :, iteration, :, chain], raw[:, :, iteration, :, chain], total)
    return _butterfly(total) * np.float32(case.f64("tensor_scale")[0])


def _fp8(case: Case) -> np.ndarray:
    step = case["warp_step"]
    w, x = _lanes(case.f64("weights"), step, 8)[None], _lanes(case.f64("x"), step, 8)[:, None]
    chains = np.zeros((case["B"], case["N"], LANES, 2), np.float32)
    for iteration in range(w.shape[2]):
        for j in range(8):
            chains = fused(w[:, :, iteration, ..., j], x[:, :, iteration, ..., j], chains)
    return _butterfly(chains[..., 0] + chains[..., 1]) * case.f64("scales").astype(np.float32)

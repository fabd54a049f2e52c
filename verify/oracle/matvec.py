"""Quantised matrix-vector products in float64, and how far a right kernel may be from them.

Two ops, both y[b, n] = sum_k W[n, k] x[b, k] with scales: FP4 weights with a scale for each group of a row
and one for the tensor, FP8 weights with a scale for each row. The references are dense products; the error
models walk the kernels' own order of additions (a running error analysis), as the head of each source states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mpmath
import numpy as np

from verify.case.case import Case
from verify.oracle.tracked import Arithmetic, Tracked, add, exact, grid, multiply, round_result
from verify.oracle.visibility import Effect

F32 = Arithmetic("f32", flush=False)
LANES = 32
CHAIN = 16
"""Weights that the FP4 kernel adds up before it applies their scale."""


@dataclass(frozen=True)
class Product:
    """One op in float64, every input exactly as the kernel gets it.

    weights ``[N, K]`` without scales, scales ``[N, K]`` (each group's or row's repeated), factor: the tensor
    scale, x ``[B, K]``.
    """

    weights: np.ndarray
    scales: np.ndarray
    factor: float
    x: np.ndarray


def fp4_product(case: Case) -> Product:
    """The FP4 op: packed E2M1 weights, one scale for ``group`` of them, a tensor scale."""
    scales = np.repeat(case.f64("scales"), case["group"], axis=1)
    return Product(case.f64("weights"), scales, float(case.f64("tensor_scale")[0]), case.f64("x"))


def fp8_product(case: Case) -> Product:
    """The FP8 op: E4M3 weights, one scale for each row."""
    weights = case.f64("weights")
    scales = np.broadcast_to(case.f64("scales")[:, None], weights.shape)
    return Product(weights, scales, 1.0, case.f64("x"))


def fp4_reference(case: Case) -> dict[str, np.ndarray]:
    """``y`` ``[B, N]``: the weights multiplied out, then one dense product."""
    return {"y": _dense(fp4_product(case))}


def fp8_reference(case: Case) -> dict[str, np.ndarray]:
    """``y`` ``[B, N]``: the weights multiplied out, then one dense product."""
    return {"y": _dense(fp8_product(case))}


def fp4_error_model(case: Case) -> dict[str, Tracked]:
    """Chains of 16 weights, a scale and one FMA for each, lanes added in pairs, one product, one rounding."""
    product = fp4_product(case)
    terms = _terms(product)
    # A depth is whole chains, so they are added up before the lanes without weights are filled in.
    chains = _chain(terms.reshape(*terms.shape[:2], -1, CHAIN))
    step = case["warp_step"] // CHAIN
    raw = Tracked(_by_lane(chains.value, step), _by_lane(chains.bound, step))
    scales = _by_lane(product.scales[None, :, ::CHAIN], step)  # [1, N, iterations, lanes, chains]
    lanes = exact(np.zeros((*raw.shape[:2], LANES)))
    for iteration in range(raw.shape[2]):
        for chain in range(raw.shape[4]):
            at = (slice(None), slice(None), iteration, slice(None), chain)
            lanes = _fused(scales[at], raw[at], lanes)
    return _finished(case, product, _scaled_terms(product), _added_lanes(lanes), np.asarray(product.factor))


def fp8_error_model(case: Case) -> dict[str, Tracked]:
    """Two chains a lane through all iterations, added, lanes in pairs, the row's scale, one rounding."""
    product = fp8_product(case)
    terms = _by_lane(_terms(product), case["warp_step"])  # [B, N, iterations, lanes, 16]
    along = np.moveaxis(terms.reshape(*terms.shape[:4], -1, 8), 2, 4)
    chains = _chain(along.reshape(*along.shape[:4], -1))
    lanes = add(chains[..., 0], chains[..., 1], F32)
    return _finished(case, product, _terms(product), _added_lanes(lanes), product.scales[None, :, 0])


def fp4_exact(case: Case, quantity: str, index: tuple[int, ...]) -> mpmath.mpf:
    """One element of y in the precision that mpmath is set to."""
    return _element(fp4_product(case), index)


def fp8_exact(case: Case, quantity: str, index: tuple[int, ...]) -> mpmath.mpf:
    """One element of y in the precision that mpmath is set to."""
    return _element(fp8_product(case), index)


def fp4_effects(case: Case, unit: Mapping[str, np.ndarray]) -> list[Effect]:
    """What leaving out one weight would do, for every weight of every row."""
    return _effects(fp4_product(case), unit["y"])


def fp8_effects(case: Case, unit: Mapping[str, np.ndarray]) -> list[Effect]:
    """What leaving out one weight would do, for every weight of every row."""
    return _effects(fp8_product(case), unit["y"])


def _dense(product: Product) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        return (_scaled_terms(product).sum(-1) + 0.0) * product.factor  # the sum's zero is positive


def _terms(product: Product) -> np.ndarray:
    """Products of weight and activation ``[B, N, K]``: exact in float64, and in fp32."""
    with np.errstate(invalid="ignore"):
        return product.x[:, None] * product.weights[None]


def _scaled_terms(product: Product) -> np.ndarray:
    """Products of weight, scale and activation ``[B, N, K]``: exact in float64."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _terms(product) * product.scales[None]


def _by_lane(values: np.ndarray, warp_step: int) -> np.ndarray:
    """``[..., n]`` as ``[..., iterations, lanes, own]``, ``warp_step`` a step; zeros past n add nothing."""
    *lead, depth = values.shape
    spare = -depth % warp_step
    padded = np.pad(values, [(0, 0)] * len(lead) + [(0, spare)])
    return padded.reshape(*lead, -1, LANES, warp_step // LANES)


def _chain(terms: np.ndarray) -> Tracked:
    """Exact terms added one after the other along the last axis by fused multiply-adds."""
    value, bound = np.zeros(terms.shape[:-1]), np.zeros(terms.shape[:-1])
    with np.errstate(invalid="ignore", over="ignore"):
        for j in range(terms.shape[-1]):
            term = terms[..., j]
            rounds = (term != 0) & (value != 0)
            value = value + term
            bound = bound + np.where(rounds, F32.u * (np.abs(value) + bound), 0.0)
        return Tracked(value, np.where(_on_grid(terms), 0.0, bound))


def _fused(scale: np.ndarray, raw: Tracked, total: Tracked) -> Tracked:
    """scale * raw + total, rounded once; nothing is rounded where nothing is added."""
    with np.errstate(invalid="ignore", over="ignore"):
        value = total.value + scale * raw.value
        carried = total.bound + np.abs(scale) * raw.bound
        rounding = F32.u * (np.abs(value) + carried) + F32.eta
        nothing = (raw.value == 0) & (raw.bound == 0)
        return Tracked(value, np.where(nothing, total.bound, carried + rounding))


def _added_lanes(lanes: Tracked) -> Tracked:
    """A butterfly over the last axis: pairs 16 apart first."""
    while (half := lanes.shape[-1] // 2) > 0:
        lanes = add(lanes[..., :half], lanes[..., half:], F32)
    return lanes[..., 0]


def _finished(
    case: Case, product: Product, terms: np.ndarray, summed: Tracked, factor: np.ndarray
) -> dict[str, Tracked]:
    """The last product and the rounding to y's format, around the reference's own value.

    Where all partial sums of the terms are fp32 numbers, the sum has no error.
    """
    summed = Tracked(summed.value, np.where(_on_grid(terms), 0.0, summed.bound))
    value = _dense(product)
    with np.errstate(invalid="ignore", over="ignore"):
        result = multiply(summed, exact(np.broadcast_to(factor, summed.shape)), F32)
        apart = np.where(np.isfinite(value), np.abs(result.value - value), 0.0)
    return {"y": round_result(Tracked(value, result.bound + apart), case.dtype(case.contract.buffer("y")))}


def _on_grid(terms: np.ndarray) -> np.ndarray:
    """Whether every partial sum along the last axis, in any order, is an fp32 number."""
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(terms).all(-1)
        kept = np.where(np.isfinite(terms), terms, 0.0)
        step = grid(kept, -1)
        return finite & (step >= -149) & (np.abs(kept).sum(-1) < np.ldexp(1.0, step + F32.significant_bits))


def _element(product: Product, index: tuple[int, ...]) -> mpmath.mpf:
    column, row = index
    total = mpmath.mpf(0)
    for w, s, x in zip(product.weights[row], product.scales[row], product.x[column], strict=True):
        total += mpmath.mpf(float(w)) * mpmath.mpf(float(s)) * mpmath.mpf(float(x))
    return total * mpmath.mpf(product.factor)


def _effects(product: Product, unit: np.ndarray) -> list[Effect]:
    """A unit of 0 stands before a result that is compared exactly: any move is infinitely large."""
    rows, depth = product.weights.shape
    weights = np.abs(product.weights * product.scales * product.factor)
    effects = []
    for b, x in enumerate(product.x):
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            moved = weights * np.abs(x)
            size = np.where(moved > 0, moved / unit[b][:, None], 0.0)
        effects.append(Effect("dropped", b, slice(0, rows), np.arange(depth), size))
    return effects

"""Quantised matrix-vector products in float64, and the error bounds of a correct kernel.

Two ops, both y[b, n] = sum_k W[n, k] x[b, k] with scales: FP4 weights with a scale for each group of a row
and one for the tensor, FP8 weights with a scale for each row. The references are dense products; the error
models follow each kernel's order of additions (a running error analysis), as the head of its source states.
The tensor cores' own error is :data:`verify.oracle.tracked.TENSOR_CORE_STEP` per step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mpmath
import numpy as np

from verify.contract.compared import Effect
from verify.contract.model import Case
from verify.oracle.arithmetic import TENSOR_CORE_STEP, Arithmetic
from verify.oracle.sums import grid
from verify.oracle.tracked import Tracked, add, exact, multiply, round_result

F32 = Arithmetic("f32", flush=False)
TENSOR = Arithmetic("f32")
"""The sums of an mma: PTX does not specify whether it keeps subnormal numbers, so they may be lost."""
ONE_WARP_STEP = 256
"""Weights of a row in a warp's step of the FP4 kernel for one vector; the one for several takes 128."""
QUARTER = 2
"""The FP4 kernel uses a quarter of the weights: its sums lose what is below 2^QUARTER of the smallest."""


@dataclass(frozen=True)
class Product:
    """One op in float64, with exactly the kernel's inputs.

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
    """``y`` ``[B, N]``: the weights are scaled, then one dense product."""
    return {"y": _dense(fp4_product(case))}


def fp8_reference(case: Case) -> dict[str, np.ndarray]:
    """``y`` ``[B, N]``: the weights are scaled, then one dense product."""
    return {"y": _dense(fp8_product(case))}


def fp4_error_model(case: Case) -> dict[str, Tracked]:
    """The model of the kernel that the plan chose: the one for one vector has steps of 256 weights."""
    return _one_vector_model(case) if case["warp_step"] == ONE_WARP_STEP else _several_vectors_model(case)


def _several_vectors_model(case: Case) -> dict[str, Tracked]:
    """Two mma per group, a scale and one FMA each, the warps added in order, one product, one rounding."""
    product, group = fp4_product(case), case["group"]
    terms = _terms(product)
    # One mma uses the first four terms of each octet of a group, the next one the last four.
    steps = terms.reshape(*terms.shape[:2], -1, group // 8, 2, 4)
    steps = np.moveaxis(steps, 4, 3).reshape(*steps.shape[:3], 2, -1)  # [B, N, groups, 2, products]
    chains = _mma_chain(steps, QUARTER)
    of_warp = case["warp_step"] // group
    raw = Tracked(*(_by_warp(x, case["warps_per_block"], of_warp) for x in (chains.value, chains.bound)))
    scales = _by_warp(product.scales[None, :, ::group], case["warps_per_block"], of_warp)
    warps = exact(np.zeros((*raw.shape[:2], raw.shape[3])))
    for iteration in range(raw.shape[2]):
        for number in range(of_warp):
            at = (slice(None), slice(None), iteration, slice(None), number)
            warps = _fused(scales[at], raw[at], warps)
    summed = _in_order(warps)
    exactly = _on_grid(_scaled_terms(product), F32, QUARTER) & (chains.bound == 0).all(-1)
    return _finished(case, product, exactly, summed, np.asarray(product.factor))


def _one_vector_model(case: Case) -> dict[str, Tracked]:
    """One chain of mma per group, a scale and one FMA each, four lanes and the warps added, one rounding."""
    product, group = fp4_product(case), case["group"]
    terms = _terms(product)
    # In each octet of a group, one mma uses the odd weights, the next one the even ones.
    pairs = terms.reshape(*terms.shape[:2], -1, group // 8, 4, 2)[..., ::-1]
    steps = np.moveaxis(pairs, -1, -2)
    chains = _mma_chain(steps.reshape(*steps.shape[:3], -1, 4), QUARTER)
    with np.errstate(invalid="ignore"):
        lost = half_precision_loss(product.x, group)[:, None] * np.abs(product.weights)[None]
    chains = Tracked(chains.value, chains.bound + lost.reshape(*chains.shape, group).sum(-1))
    raw = Tracked(*(_by_lane(part, case) for part in (chains.value, chains.bound)))
    scales = _by_lane(product.scales[None, :, ::group], case)
    lanes = exact(np.zeros((*raw.shape[:2], *raw.shape[3:])))
    for number in range(raw.shape[2]):
        lanes = _fused(scales[:, :, number], raw[:, :, number], lanes)
    pairwise = add(lanes[..., 0::2], lanes[..., 1::2], F32)
    summed = _in_order(add(pairwise[..., 0], pairwise[..., 1], F32))
    exactly = _on_grid(_scaled_terms(product), F32, QUARTER) & (chains.bound == 0).all(-1)
    return _finished(case, product, exactly, summed, np.asarray(product.factor))


def _by_lane(groups: np.ndarray, case: Case) -> np.ndarray:
    """Groups ``[..., n]`` in the order in which each warp's lanes add them: ``[..., additions, warps, 4]``.

    A slab of 128 weights has 32 for each lane.
    """
    group = case["group"]
    by_warp = _by_warp(groups, case["warps_per_block"], ONE_WARP_STEP // group)
    parts = by_warp.reshape(*by_warp.shape[:-1], ONE_WARP_STEP // 128, 4, 32 // group)
    # [..., iterations, warps, slabs, lanes, groups] to [..., iterations, slabs, groups, warps, lanes]
    ordered = np.moveaxis(parts, (-5, -3, -1, -4, -2), range(-5, 0))
    return ordered.reshape(*groups.shape[:-1], -1, *ordered.shape[-2:])


def half_precision_loss(x: np.ndarray, group: int) -> np.ndarray:
    """Error of ``[B, K]`` activations when converted to fp16 with one power of two per group.

    In a group with an infinity or a NaN the loss does not matter and is 0.
    """
    blocks = x.reshape(len(x), -1, group)
    largest = np.abs(blocks).max(-1, keepdims=True)
    finite = np.isfinite(largest)
    exponent = np.frexp(np.where(finite, largest, 1.0))[1] - 1
    shift = 15 - np.maximum(exponent, -112)
    scaled = np.ldexp(np.where(finite, blocks, 0.0), shift)
    loss = np.ldexp(np.abs(scaled - scaled.astype(np.float16).astype(np.float64)), -shift)
    return loss.reshape(x.shape)


def fp8_error_model(case: Case) -> dict[str, Tracked]:
    """Two chains of mma per warp, added; warps in order; one product with the row's scale, one rounding."""
    product = fp8_product(case)
    terms = _terms(product)
    by_warp = _by_warp(terms, case["warps_per_block"], case["warp_step"])  # [B, N, iterations, warps, 64]
    # A lane of a quad has 16 of them, four words of four. An mma uses one word of each lane; even words go
    # into one chain, odd words into the other.
    words = by_warp.reshape(*by_warp.shape[:4], 4, 2, 2, 4)  # [..., lane, word // 2, word % 2, 4]
    along = words.transpose(0, 1, 3, 6, 2, 5, 4, 7)
    chains = _mma_chain(along.reshape(*along.shape[:4], -1, 16))
    warps = add(chains[..., 0], chains[..., 1], F32)
    return _finished(case, product, _on_grid(terms, TENSOR), _in_order(warps), product.scales[None, :, 0])


def fp4_exact(case: Case, quantity: str, index: tuple[int, ...]) -> mpmath.mpf:
    """One element of y in mpmath's working precision."""
    return _element(fp4_product(case), index)


def fp8_exact(case: Case, quantity: str, index: tuple[int, ...]) -> mpmath.mpf:
    """One element of y in mpmath's working precision."""
    return _element(fp8_product(case), index)


def fp4_effects(case: Case, unit: Mapping[str, np.ndarray]) -> list[Effect]:
    """The effect of dropping one weight, for every weight of every row."""
    return _effects(fp4_product(case), unit["y"])


def fp8_effects(case: Case, unit: Mapping[str, np.ndarray]) -> list[Effect]:
    """The effect of dropping one weight, for every weight of every row."""
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


def _by_warp(values: np.ndarray, warps: int, own: int) -> np.ndarray:
    """``[..., n]`` as ``[..., iterations, warps, own]``; zeros past n add nothing."""
    *lead, depth = values.shape
    padded = np.pad(values, [(0, 0)] * len(lead) + [(0, -depth % (warps * own))])
    return padded.reshape(*lead, -1, warps, own)


def _mma_chain(steps: np.ndarray, shift: int = 0) -> Tracked:
    """Exact products ``[..., steps, products]``, added by successive mma into one accumulator: ``[...]``.

    The error of a step is TENSOR_CORE_STEP times the accumulator's magnitude plus the absolute products; a
    step with zero products has none. shift: the tensor cores operate on 2^-shift of the products.
    """
    value, bound = np.zeros(steps.shape[:-2]), np.zeros(steps.shape[:-2])
    lost = np.ldexp(TENSOR.eta, shift)
    with np.errstate(invalid="ignore", over="ignore"):
        for number in range(steps.shape[-2]):
            taken = np.abs(steps[..., number, :]).sum(-1)
            own = TENSOR_CORE_STEP * (np.abs(value) + bound + taken) + lost * (steps.shape[-1] + 1)
            bound = bound + np.where(taken == 0, 0.0, own)
            value = value + steps[..., number, :].sum(-1)
    exactly = _on_grid(steps.reshape(*steps.shape[:-2], -1), TENSOR, shift)
    return Tracked(value, np.where(exactly, 0.0, bound))


def _fused(scale: np.ndarray, raw: Tracked, total: Tracked) -> Tracked:
    """scale * raw + total in the FP4 kernel, rounded once, except where zero is added."""
    with np.errstate(invalid="ignore", over="ignore"):
        value = total.value + scale * raw.value
        carried = total.bound + np.abs(scale) * raw.bound
        rounding = F32.u * (np.abs(value) + carried) + np.ldexp(F32.eta, QUARTER)
        nothing = (raw.value == 0) & (raw.bound == 0)
        return Tracked(value, np.where(nothing, total.bound, carried + rounding))


def _in_order(warps: Tracked) -> Tracked:
    """The sum along the last axis, first to last."""
    total = warps[..., 0]
    for warp in range(1, warps.shape[-1]):
        total = add(total, warps[..., warp], F32)
    return total


def _finished(
    case: Case, product: Product, exactly: np.ndarray, summed: Tracked, factor: np.ndarray
) -> dict[str, Tracked]:
    """The last product and the rounding to y's format, around the reference's own value.

    exactly: where all partial sums are representable in their format, so that the sum is exact.
    """
    summed = Tracked(summed.value, np.where(exactly, 0.0, summed.bound))
    value = _dense(product)
    with np.errstate(invalid="ignore", over="ignore"):
        result = multiply(summed, exact(np.broadcast_to(factor, summed.shape)), F32)
        apart = np.where(np.isfinite(value), np.abs(result.value - value), 0.0)
    return {"y": round_result(Tracked(value, result.bound + apart), case.dtype(case.contract.buffer("y")))}


def _on_grid(terms: np.ndarray, arithmetic: Arithmetic, shift: int = 0) -> np.ndarray:
    """Whether every partial sum of 2^-shift of the terms along the last axis, in any order, is representable.

    Representable in the arithmetic's format: fp32, with or without subnormal numbers.
    """
    smallest = arithmetic.eta if arithmetic.flush else 2 * arithmetic.eta
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(terms).all(-1)
        kept = np.where(np.isfinite(terms), terms, 0.0)
        step = grid(kept, -1)
        fits = np.abs(kept).sum(-1) < np.ldexp(1.0, step + arithmetic.significant_bits)
        return finite & (step - shift >= np.log2(smallest)) & fits


def _element(product: Product, index: tuple[int, ...]) -> mpmath.mpf:
    column, row = index
    total = mpmath.mpf(0)
    for w, s, x in zip(product.weights[row], product.scales[row], product.x[column], strict=True):
        total += mpmath.mpf(float(w)) * mpmath.mpf(float(s)) * mpmath.mpf(float(x))
    return total * mpmath.mpf(product.factor)


def _effects(product: Product, unit: np.ndarray) -> list[Effect]:
    """Effects of dropping each weight; where the unit is 0 (an exact comparison), any change is infinite."""
    rows, depth = product.weights.shape
    weights = np.abs(product.weights * product.scales * product.factor)
    effects = []
    for b, x in enumerate(product.x):
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            moved = weights * np.abs(x)
            size = np.where(moved > 0, moved / unit[b][:, None], 0.0)
        effects.append(Effect("dropped", b, slice(0, rows), np.arange(depth), size))
    return effects

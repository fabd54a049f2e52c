"""Error model of split-K flash decoding: how far a right kernel may be from the float64 attention.

The kernel walks each split of the band in tiles, keeps a running maximum m of the unscaled scores, weighs a
position by ``2^((s - m) c)`` with ``c = scale * log2 e``, and multiplies what it has summed by
``2^((m_old - m_new) c)`` whenever the maximum moves. Three facts make the bound tight:

- The exponents along a position's way telescope: all are negative and they add up to ``(s - m_final) c``, so
  their rounding errors add up to a relative error of that sum, however the band is cut into tiles and splits.
- Errors of a weight (its score, its exponent, ex2, every rescale factor) enter O and l alike. They move O / l
  by ``sum(w eps |v - O/l|) / l``, which vanishes where the values agree. Roundings of O and of l do not cancel.
- Sums are charged with what the accumulator held when each tile was added (a running error), and with the
  absolute sum of the tile, so that any order inside a tile is covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verify.case.case import Case
from verify.oracle.attention import Head, attention_heads, reference, softmax_scale
from verify.oracle.tracked import (
    APPROXIMATE,
    F32,
    TENSOR_CORE_STEP,
    Tracked,
    grid,
    round_result,
    tensor_core_scores,
)


@dataclass(frozen=True)
class Numerics:
    """Where a kernel rounds, as numbers.

    tile: positions between two rescales. score_chains: see :func:`tensor_core_scores`. weight_loss: relative
    error of a weight on its way into the product with V (2^-18 for a bf16 pair, 2^-9 for one bf16).
    output_steps: mma steps that a tile adds to O. sum_depth: additions that a weight passes through inside
    its tile on the way into l; sum_lanes_depth: additions that join the lanes' parts of l at the end.
    merge_depth: additions that a split passes through in the merge.
    """

    tile: int
    score_chains: Sequence[Sequence[slice]]
    weight_loss: float
    output_steps: int
    sum_depth: int
    sum_lanes_depth: int
    merge_depth: int


@dataclass(frozen=True)
class SplitErrors:
    """One head's weights and errors, position by position and split by split.

    weights ``[group, n]`` relative to their split's maximum, weight_errors their relative errors;
    top, l, l_error ``[group, splits]``; o, o_error ``[group, splits, D]`` (unnormalised, l and o exact).
    Splits without positions hold top = -inf and zeros.
    """

    weights: np.ndarray
    weight_errors: np.ndarray
    top: np.ndarray
    top_error: np.ndarray
    l: np.ndarray  # noqa: E741
    l_error: np.ndarray
    o: np.ndarray
    o_error: np.ndarray


def attention_error_model(case: Case, numerics: Numerics) -> dict[str, Tracked]:
    """Bounds of ``out``, ``partial_out`` and ``partial_lse``; shapes as in the reference."""
    value = reference(case)
    bounds = {name: np.zeros_like(v) for name, v in value.items()}
    out = bounds["out"].reshape(case["B"], case["NH"], case["D"])
    scale = softmax_scale(case)
    for head in attention_heads(case):
        if len(head.k) == 0:
            continue
        at = (head.batch, head.heads)
        errors = split_errors(head, scale, numerics)
        for split, part in enumerate(_ranges(head)):
            if part.start < part.stop:
                bounds["partial_out"][*at, split], bounds["partial_lse"][*at, split] = _partial_bounds(
                    head, errors, split, part
                )
        out[at] = _merged_bound(head, errors, scale, numerics)
    result = {name: Tracked(value[name], bounds[name]) for name in value}
    divided = Tracked(value["out"], bounds["out"] + F32.u * (np.abs(value["out"]) + bounds["out"]))
    empty = np.zeros((case["B"], 1), bool)
    for head in attention_heads(case):
        empty[head.batch] = len(head.k) == 0
    rounded = round_result(divided, "bf16")
    result["out"] = Tracked(rounded.value, np.where(empty, 0.0, rounded.bound))
    return result


def split_errors(head: Head, scale: float, numerics: Numerics) -> SplitErrors:
    """Runs the error analysis of the split kernel over one head's band."""
    group, count, dim = len(head.q), len(head.k), head.q.shape[1]
    splits = len(head.edges) - 1
    scores = tensor_core_scores(head.q, head.k, numerics.score_chains)
    state = SplitErrors(
        np.zeros((group, count)), np.zeros((group, count)),
        np.full((group, splits), -np.inf), np.zeros((group, splits)),
        np.zeros((group, splits)), np.zeros((group, splits)),
        np.zeros((group, splits, dim)), np.zeros((group, splits, dim)),
    )  # fmt: skip
    for split, part in enumerate(_ranges(head)):
        if part.start < part.stop:
            _analyse_split(state, split, part, scores[:, part], head.v[part], scale, numerics)
    return state


def _analyse_split(
    state: SplitErrors, split: int, part: slice, scores: Tracked, v: np.ndarray, scale: float, num: Numerics
) -> None:
    group, count = scores.shape
    tiles = -(-count // num.tile)
    padding = ((0, 0), (0, tiles * num.tile - count))
    shape = (group, tiles, num.tile)
    s = np.pad(scores.value, padding, constant_values=-np.inf).reshape(shape)
    ds = np.pad(scores.bound, padding).reshape(shape)

    # A later tile rescales only if its maximum can exceed every maximum before it.
    highest, surest = (s + ds).max(-1), np.maximum.accumulate((s - ds).max(-1), axis=1)
    rescales = np.zeros((group, tiles), bool)
    rescales[:, 1:] = highest[:, 1:] > surest[:, :-1]
    later = np.cumsum(rescales[:, ::-1], axis=1)[:, ::-1] - rescales
    top, top_error = s.max((1, 2)), ds.max((1, 2))

    c = scale * np.log2(np.e)
    span = (top[:, None, None] - s) * c
    with np.errstate(invalid="ignore", over="ignore"):
        w = np.exp2(-span)
        exponent_error = c * ds + 3.0001 * F32.u * (span + c * (ds + top_error[:, None, None]))
        # 2^0 is exactly 1: a position whose score is the running maximum, when no score can be off.
        running = np.maximum.accumulate(s.max(-1), axis=1)[:, :, None]
        certain = (s == running) & (top_error == 0)[:, None, None]
        instructions = later[:, :, None] + ~certain
        eps = np.expm1(np.log(2) * exponent_error + instructions * np.log1p(APPROXIMATE))
    eps = np.where(w > 0, np.where(np.isfinite(eps), eps, 0.0), 0.0)
    worst = eps.max((1, 2))[:, None]

    all_ones = (w == 1).reshape(group, -1).sum(-1) == count
    all_ones &= worst[:, 0] == 0
    tile_l = w.sum(-1)
    l = tile_l.sum(-1)  # noqa: E741
    running_l = np.cumsum(tile_l, axis=1)[:, 1:].sum(-1)
    l_error = F32.u * ((num.sum_depth + num.sum_lanes_depth) * l + running_l) * (1 + 2 * worst[:, 0])
    l_error += count * (2 + tiles) * F32.eta

    v_tiles = np.pad(v, ((0, tiles * num.tile - count), (0, 0))).reshape(tiles, num.tile, -1)
    tile_o = np.matmul(w.swapaxes(0, 1), v_tiles).swapaxes(0, 1)
    tile_abs = np.matmul(w.swapaxes(0, 1), np.abs(v_tiles)).swapaxes(0, 1)
    before = np.cumsum(tile_o, axis=1) - tile_o
    taken = np.cumsum(tile_abs, axis=1)
    slack = (worst + num.weight_loss)[:, :, None] * taken
    held = np.abs(before) + slack
    steps = num.output_steps * TENSOR_CORE_STEP * (held + tile_abs)
    o_error = (steps + F32.u * rescales[:, :, None] * held).sum(1) * (1 + 1e-4)
    o_error += num.weight_loss * taken[:, -1]
    o_error += count * (2 + tiles) * F32.eta * (1 + np.abs(v).max(0))
    on_grid = np.abs(v).sum(0) < np.ldexp(1.0, grid(v, 0) + F32.significant_bits)

    state.weights[:, part] = w.reshape(group, -1)[:, :count]
    state.weight_errors[:, part] = eps.reshape(group, -1)[:, :count]
    state.top[:, split], state.top_error[:, split] = top, top_error
    state.l[:, split] = l
    state.l_error[:, split] = np.where(all_ones & (count < 2**F32.significant_bits), 0.0, l_error)
    state.o[:, split] = tile_o.sum(1)
    state.o_error[:, split] = np.where(all_ones[:, None] & on_grid, 0.0, o_error)


def _partial_bounds(
    head: Head, errors: SplitErrors, split: int, part: slice
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of O / l ``[group, D]`` and of scale * m + ln l ``[group]`` for one split."""
    w, eps = errors.weights[:, part], errors.weight_errors[:, part]
    l, l_error = errors.l[:, split], errors.l_error[:, split]  # noqa: E741
    mean = errors.o[:, split] / l[:, None]
    output = _mean_bound(w, eps, head.v[part], mean, errors.o_error[:, split], l, l_error)
    relative = ((w * eps).sum(-1) + l_error) / l
    size = np.abs(np.where(np.isfinite(errors.top[:, split]), errors.top[:, split], 0.0))
    logarithm = -np.log1p(-np.minimum(relative, 1 - 1e-9))
    return output, np.where(logarithm > 0, logarithm + 2.0**-48 * (1 + size), 0.0)


def _merged_bound(head: Head, errors: SplitErrors, scale: float, numerics: Numerics) -> np.ndarray:
    """Bound of the merged O / l ``[group, D]`` before the division and the last rounding."""
    c = scale * np.log2(np.e)
    filled = np.isfinite(errors.top)
    top, top_error = errors.top.max(-1, keepdims=True), errors.top_error.max(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        span = np.where(filled, (top - errors.top) * c, 0.0)
    factor = np.where(filled, np.exp2(-span), 0.0)
    certain = (errors.top == top) & (top_error == 0)
    exponent_error = 3.0001 * F32.u * (span + c * (errors.top_error + top_error))
    factor_error = np.where(
        filled & ~certain, np.expm1(np.log(2) * exponent_error + np.log1p(APPROXIMATE)), 0.0
    )
    owner = np.zeros(len(head.k), np.int64)
    for split, part in enumerate(_ranges(head)):
        owner[part] = split
    w = errors.weights * factor[:, owner]
    eps = errors.weight_errors + factor_error[:, owner] * (1 + errors.weight_errors)
    l = (errors.l * factor).sum(-1)  # noqa: E741
    o = (errors.o * factor[:, :, None]).sum(1)
    o_abs = (np.abs(errors.o * factor[:, :, None]) + errors.o_error).sum(1)
    filled_splits = int(filled.any(0).sum())
    depth = 0 if filled_splits == 1 else min(numerics.merge_depth, filled_splits) + 1
    rounding = F32.u * depth * (1 + 2 * eps.max(-1))
    o_error = (errors.o_error * factor[:, :, None]).sum(1) * (1 + 2 * factor_error.max()) + rounding[:, None] * o_abs
    l_error = (errors.l_error * factor).sum(-1) * (1 + 2 * factor_error.max()) + rounding * l
    ones = (w == 1).all(-1) & (eps.max(-1) == 0)
    on_grid = np.abs(head.v).sum(0) < np.ldexp(1.0, grid(head.v, 0) + F32.significant_bits)
    o_error = np.where(ones[:, None] & on_grid, 0.0, o_error + depth * F32.eta)
    l_error = np.where(ones & (len(head.k) < 2**F32.significant_bits), 0.0, l_error + depth * F32.eta)
    return _mean_bound(w, eps, head.v, o / l[:, None], o_error, l, l_error)


def _mean_bound(
    w: np.ndarray, eps: np.ndarray, v: np.ndarray, mean: np.ndarray, o_error: np.ndarray, l: np.ndarray,  # noqa: E741
    l_error: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Bound of a weighted mean whose weights err alike above and below, and whose sums err apart.

    (O + dO) / (l + dl) - O/l = (sum w eps (v - O/l) + o_error - O/l l_error) / (l + dl).
    """
    weighted = w * eps
    shared = np.stack([weighted[g] @ np.abs(v - mean[g]) for g in range(len(w))])
    least = l - weighted.sum(-1) - l_error
    bound = (shared + o_error + np.abs(mean) * l_error[:, None]) / np.maximum(least, 1e-300)[:, None]
    return np.where(bound > 0, bound + 2.0**-48 * (np.abs(mean) + (w @ np.abs(v)) / l[:, None]), 0.0)


def _ranges(head: Head) -> list[slice]:
    return [slice(a, b) for a, b in zip(head.edges, head.edges[1:], strict=False)]

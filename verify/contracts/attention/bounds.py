"""Error model of split-K flash decoding: the largest error of a correct kernel against float64 attention.

The kernel processes each split of the band in tiles, keeps a running maximum m of the unscaled scores,
weights a position by ``2^((s - m) c)`` with ``c = scale * log2 e``, and multiplies its sums by
``2^((m_old - m_new) c)`` whenever the maximum changes. Three facts make the bound tight:

- The exponents of a position's successive factors telescope: all are negative and add up to
  ``(s - m_final) c``, so their rounding errors add up to a relative error of that sum, however the band is
  divided into tiles and splits.
- Errors of a weight (its score, its exponent, ex2, every rescale factor) enter O and l alike. They change
  O / l by ``sum(w eps |v - O/l|) / l``, which vanishes where the values agree. Roundings of O and of l do
  not cancel.
- The error of a sum is derived from the accumulator's magnitude when each tile is added (a running error)
  and the absolute sum of the tile, which covers any order inside the tile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify.contract.model import Case
from verify.contracts.attention.reference import Head, attention_heads, softmax_scale
from verify.oracle.arithmetic import APPROXIMATE, F32, TENSOR_CORE_STEP
from verify.oracle.sums import ScoreChains, grid, sums_exactly, tensor_core_scores
from verify.oracle.tracked import Tracked, round_result

LOG2_E = np.log2(np.e)


@dataclass(frozen=True)
class Numerics:
    """The parameters of a kernel's rounding.

    tile: positions between two rescales. score_chains: see :func:`tensor_core_scores`. weight_loss: relative
    error of a weight when it is converted for the product with V (2^-17 for a bf16 pair, 2^-8 for one bf16).
    output_steps: mma steps that a tile adds to O. sum_depth: additions between a weight and l, inside its
    tile and between the lanes, without the one that adds the tile. merge_depth: roundings of a split in the
    merge; merge_factors: powers of two that weight it there.
    """

    tile: int
    score_chains: ScoreChains
    weight_loss: float
    output_steps: int
    sum_depth: int
    merge_depth: int
    merge_factors: int = 1


@dataclass(frozen=True)
class Partial:
    """The analysis of one split of one head, in exact arithmetic and with errors.

    w, eps ``[group, n]``: weights relative to the maximum and their relative errors. top, top_error, weight
    (l), weight_error ``[group]``. o, o_error ``[group, D]``, unnormalised.
    """

    w: np.ndarray
    eps: np.ndarray
    top: np.ndarray
    top_error: np.ndarray
    weight: np.ndarray
    weight_error: np.ndarray
    o: np.ndarray
    o_error: np.ndarray


@dataclass(frozen=True)
class HeadBounds:
    """Bounds of one head: out ``[group, D]`` before the division and the last rounding, partial_out
    ``[group, splits, D]``, partial_lse ``[group, splits]``."""

    out: np.ndarray
    partial_out: np.ndarray
    partial_lse: np.ndarray


def attention_error_model(case: Case, numerics: Numerics) -> dict[str, Tracked]:
    """Bounds of ``out``, ``partial_out`` and ``partial_lse``; shapes as in the reference."""
    value = case.reference
    bounds = {name: np.zeros_like(v) for name, v in value.items()}
    out = bounds["out"].reshape(case["B"], case["NH"], case["D"])
    for head in attention_heads(case):
        at = (head.batch, head.heads)
        found = head_bounds(head, softmax_scale(case), numerics)
        out[at], bounds["partial_out"][at], bounds["partial_lse"][at] = (
            found.out, found.partial_out, found.partial_lse,
        )  # fmt: skip
    result = {name: Tracked(value[name], bounds[name]) for name in value}
    return result | {"out": stored_output(result["out"])}


def stored_output(merged: Tracked) -> Tracked:
    """The merged quotient after one fp32 division and the rounding to bf16; zeros of empty rows stay zero."""
    divided = Tracked(merged.value, merged.bound + F32.u * (np.abs(merged.value) + merged.bound))
    return round_result(divided, "bf16")


def head_bounds(head: Head, scale: float, numerics: Numerics) -> HeadBounds:
    """Run the error analysis of the split kernel and the merge over one head's band."""
    group, dim, splits = *head.q.shape, len(head.edges) - 1
    found = HeadBounds(
        np.zeros((group, dim)), np.zeros((group, splits, dim)), np.zeros((group, splits))
    )  # fmt: skip
    scores = tensor_core_scores(head.q, head.k, numerics.score_chains)
    partials = []
    for split, part in enumerate(head.parts):
        if part.start == part.stop:
            continue
        partial = analyse_split(scores[:, part], head.v[part], scale, numerics)
        partials.append(partial)
        relative = ((partial.w * partial.eps).sum(-1) + partial.weight_error) / partial.weight
        found.partial_out[:, split] = _mean_bound(partial, head.v[part])
        found.partial_lse[:, split] = np.where(
            relative > 0,
            -np.log1p(-np.minimum(relative, 1 - 1e-9)) + 2.0**-48 * (1 + scale * np.abs(partial.top)),
            0.0,
        )
    if partials:
        found.out[:] = _mean_bound(_merged(partials, head.v, scale, numerics), head.v)
    return found


def analyse_split(scores: Tracked, v: np.ndarray, scale: float, numerics: Numerics) -> Partial:
    """One split, tile by tile from its first position: scores ``[group, n]`` with bounds, v ``[n, D]``."""
    group, count = scores.shape
    tile, tiles = numerics.tile, -(-count // numerics.tile)
    spare = tiles * tile - count
    s = np.pad(scores.value, ((0, 0), (0, spare)), constant_values=-np.inf).reshape(group, tiles, tile)
    ds = np.pad(scores.bound, ((0, 0), (0, spare))).reshape(group, tiles, tile)
    top, top_error = s.max((1, 2)), ds.max((1, 2))

    # A later tile rescales only if its maximum can exceed every maximum before it.
    highest, surest = (s + ds).max(-1), np.maximum.accumulate((s - ds).max(-1), axis=1)
    rescales = np.zeros((group, tiles), bool)
    rescales[:, 1:] = highest[:, 1:] > surest[:, :-1]
    later = np.cumsum(rescales[:, ::-1], axis=1)[:, ::-1] - rescales

    # 2^0 is exactly 1: the weight of a score that is the running maximum, if all scores are exact.
    running = np.maximum.accumulate(s.max(-1), axis=1)[:, :, None]
    certain = (s == running) & (top_error == 0)[:, None, None]
    span = scale * LOG2_E * (top[:, None, None] - s)
    w = np.exp2(-span)
    eps = _factor_error(span, scale * LOG2_E * ds, scale * LOG2_E * top_error[:, None, None])
    eps = (1 + eps) * np.exp((later[:, :, None] + ~certain) * np.log1p(APPROXIMATE)) - 1
    eps = np.where(w > 0, eps, 0.0)
    worst = eps.max((1, 2))
    underflow = count * (2 + tiles) * F32.eta

    tile_weight = w.sum(-1)
    weight = tile_weight.sum(-1)
    held_weight = np.cumsum(tile_weight, axis=1)[:, 1:].sum(-1)
    weight_error = F32.u * (numerics.sum_depth * weight + held_weight) * (1 + 2 * worst) + underflow

    v_tiles = np.pad(v, ((0, spare), (0, 0))).reshape(tiles, tile, -1)
    tile_o = np.matmul(w.swapaxes(0, 1), v_tiles).swapaxes(0, 1)
    tile_abs = np.matmul(w.swapaxes(0, 1), np.abs(v_tiles)).swapaxes(0, 1)
    taken = np.cumsum(tile_abs, axis=1)
    off = (worst[:, None, None] + numerics.weight_loss) * taken
    held = np.abs(np.cumsum(tile_o, axis=1) - tile_o) + off
    steps = numerics.output_steps * TENSOR_CORE_STEP * (held + tile_abs)
    o_error = (steps + F32.u * rescales[:, :, None] * held).sum(1) * (1 + 1e-4)
    o_error += numerics.weight_loss * taken[:, -1] + underflow * (1 + np.abs(v).max(0))

    ones = (scores.value == scores.value[:, :1]).all(-1) & (top_error == 0)
    return Partial(
        w=w.reshape(group, -1)[:, :count],
        eps=eps.reshape(group, -1)[:, :count],
        top=top,
        top_error=top_error,
        weight=weight,
        weight_error=np.where(ones & (count < 2**F32.significant_bits), 0.0, weight_error),
        o=tile_o.sum(1),
        o_error=np.where(ones[:, None] & _on_grid(v), 0.0, o_error),
    )


def _merged(partials: list[Partial], v: np.ndarray, scale: float, numerics: Numerics) -> Partial:
    """The merge: the splits, each weighted by ``2^((m - max m) c)``, added up."""
    c = scale * LOG2_E
    tops, top_errors = np.stack([p.top for p in partials]), np.stack([p.top_error for p in partials])
    top, top_error = tops.max(0), top_errors.max(0)
    span = c * (top - tops)
    factor = np.exp2(-span)
    certain = (tops == top) & (top_error == 0)
    # The error of a split's maximum cancels, since the split's weights are relative to it.
    factor_error = _factor_error(span, np.zeros_like(span), c * (top_errors + top_error))
    factor_error = (1 + factor_error) * np.exp(numerics.merge_factors * np.log1p(APPROXIMATE) * ~certain) - 1
    worst = factor_error.max(0)
    most = len(partials) + numerics.merge_factors
    depth = 0 if len(partials) == 1 else min(numerics.merge_depth, most)

    weight = sum(f * p.weight for f, p in zip(factor, partials, strict=True))
    weight_error = sum(f * p.weight_error for f, p in zip(factor, partials, strict=True))
    o = sum(f[:, None] * p.o for f, p in zip(factor, partials, strict=True))
    o_error = sum(f[:, None] * p.o_error for f, p in zip(factor, partials, strict=True))
    o_abs = sum(f[:, None] * (np.abs(p.o) + p.o_error) for f, p in zip(factor, partials, strict=True))
    w = np.concatenate([f[:, None] * p.w for f, p in zip(factor, partials, strict=True)], axis=1)
    eps = np.concatenate(
        [(1 + f[:, None]) * (1 + p.eps) - 1 for f, p in zip(factor_error, partials, strict=True)], axis=1
    )
    rounding = F32.u * depth * (1 + 2 * eps.max(-1))
    off = (w * eps) @ np.abs(v)
    underflow = depth * len(v) * F32.eta
    weight_error = weight_error * (1 + 2 * worst) + rounding * weight + underflow
    o_error = o_error * (1 + 2 * worst)[:, None] + rounding[:, None] * (o_abs + off)
    o_error = o_error + underflow * (1 + np.abs(v).max(0))
    ones = (w == 1).all(-1) & (eps == 0).all(-1)
    return Partial(
        w, eps, top, top_error, weight,
        np.where(ones & (len(v) < 2**F32.significant_bits), 0.0, weight_error),
        o,
        np.where(ones[:, None] & _on_grid(v), 0.0, o_error),
    )  # fmt: skip


def _factor_error(span: np.ndarray, own: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Relative error of ``2^-span`` from its exponent: the error of its own score, and the three roundings
    (difference of scores, c, their product). All in exponent units.
    """
    with np.errstate(invalid="ignore"):
        off = own + 3.0001 * F32.u * (span + own + top)
        return np.where(np.isfinite(off), np.expm1(np.log(2) * off), 0.0)


def _on_grid(v: np.ndarray) -> np.ndarray:
    """Whether sums of some rows of v are exact in fp32 in every order, by dimension."""
    return sums_exactly(np.abs(v).sum(0), grid(v, 0))


def _mean_bound(partial: Partial, v: np.ndarray) -> np.ndarray:
    """Bound of O / l: errors of the weights, common to O and l, and independent errors of the two sums.

    (O + dO) / (l + dl) - O/l = (sum w eps (v - O/l) + dO - O/l dl) / (l + dl).
    """
    mean = partial.o / partial.weight[:, None]
    off = partial.w * partial.eps
    shared = np.stack([off[g] @ np.abs(v - mean[g]) for g in range(len(off))])
    least = partial.weight - off.sum(-1) - partial.weight_error
    error = shared + partial.o_error + np.abs(mean) * partial.weight_error[:, None]
    host = 2.0**-48 * (np.abs(mean) + (partial.w @ np.abs(v)) / partial.weight[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(least[:, None] > 0, error / least[:, None], np.inf)
    return np.where(error > 0, bound + host, 0.0)

"""The effect of one position too few or too many on decode attention, in closed form.

With weights w, l = sum w and A = sum w v / l, dropping position p changes A by
``w_p (A - v_p) / (l - w_p)`` and ln l by ``ln(1 - w_p / l)``; adding q changes them by
``w_q (v_q - A) / (l + w_q)`` and ``ln(1 + w_q / l)``. So one pass over the scores of a case covers every
position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from verify.contract.compared import Effect
from verify.contract.formats import decode
from verify.contract.model import Case
from verify.contracts.attention.reference import Head, attention_heads, head_output, softmax_scale


def attention_effects(case: Case, units: Mapping[str, np.ndarray]) -> Iterator[Effect]:
    """Effects of dropping each live position and of adding each dead one next to an edge.

    units: of ``out``, ``partial_out`` and ``partial_lse``: by how much each element may change unnoticed.
    """
    rows, heads, dim = case["B"], case["NH"], case["D"]
    scale = softmax_scale(case)
    out_units = units["out"].reshape(rows, heads, dim)
    k, v = decode("bf16", case.raw("k")), decode("bf16", case.raw("v"))  # dead slots too
    for head in attention_heads(case):
        if head.broken:
            continue
        at = (head.batch, head.heads)
        here = (out_units[at], units["partial_out"][at], units["partial_lse"][at])
        if len(head.k):
            inside = head.lo + np.arange(len(head.k))
            yield Effect("dropped", head.batch, head.heads, inside, _dropped(head, scale, *here))
        hi = head.lo + len(head.k)
        outside = [p for p in (head.lo - 1, hi) if p >= 0]
        slots = np.array(outside) % case["capacity"]
        keys, values = k[head.batch, head.kv_head, slots], v[head.batch, head.kv_head, slots]
        first = [position < head.lo for position in outside]
        size = _added(head, scale, keys, values, first, *here)
        yield Effect("added", head.batch, head.heads, np.array(outside), size)


def _dropped(
    head: Head, scale: float, out_unit: np.ndarray, part_unit: np.ndarray, lse_unit: np.ndarray
) -> np.ndarray:
    """``[group, n]``: the largest change of any quantity, in units."""
    scores = scale * (head.q @ head.k.T)
    found = np.zeros(scores.shape)
    for split, part in enumerate(head.parts):
        if part.start == part.stop:
            continue
        share, rest = _shares(scores[:, part])
        output = np.einsum("gn,nd->gd", share, head.v[part])
        found[:, part] = np.maximum(
            _moved(share / rest, head.v[part], output, part_unit[:, split]),
            _ratio(np.abs(np.log(rest)), lse_unit[:, split, None]),
        )
    share, rest = _shares(scores)
    return np.maximum(found, _moved(share / rest, head.v, head_output(head, scale), out_unit))


def _added(
    head: Head, scale: float, keys: np.ndarray, values: np.ndarray, first: list[bool],
    out_unit: np.ndarray, part_unit: np.ndarray, lse_unit: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """``[group, m]``: as :func:`_dropped`, for m positions added to the first or the last non-empty split."""
    scores, extra = scale * (head.q @ head.k.T), scale * (head.q @ keys.T)
    filled = [split for split, part in enumerate(head.parts) if part.start < part.stop]
    if not filled:
        return np.full(extra.shape, np.inf)
    whole, output = _log_sum(scores), head_output(head, scale)
    found = np.zeros(extra.shape)
    for i, at_front in enumerate(first):
        split = filled[0] if at_front else filled[-1]
        part = head.parts[split]
        inside = _log_sum(scores[:, part])
        share = np.exp(scores[:, part] - inside[:, None])
        gain = _logistic(extra[:, i] - inside)
        found[:, i] = np.maximum.reduce([
            _moved(gain[:, None], values[i : i + 1], share @ head.v[part], part_unit[:, split])[:, 0],
            _ratio(np.logaddexp(0.0, extra[:, i] - inside), lse_unit[:, split]),
            _moved(_logistic(extra[:, i] - whole)[:, None], values[i : i + 1], output, out_unit)[:, 0],
        ])  # fmt: skip
    return found


def _moved(factor: np.ndarray, v: np.ndarray, output: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """``[group, n]``: max over dimensions of ``factor * |v - output|`` in units, factor ``[group, n]``."""
    found = np.empty(factor.shape)
    for g in range(len(factor)):
        found[g] = _ratio(factor[g][:, None] * np.abs(v - output[g]), unit[g]).max(-1)
    return found


def _ratio(move: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """A change in units; infinite for any change where the comparison is exact."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(move > 0, move / unit, 0.0)


def _shares(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each position's share of the summed weight, and the remaining share (0 for a single position)."""
    share = np.exp(scores - _log_sum(scores)[:, None])
    rest = 1.0 - share if scores.shape[1] > 1 else np.zeros_like(share)
    return share, np.maximum(rest, 1e-300)


def _log_sum(scores: np.ndarray) -> np.ndarray:
    top = scores.max(-1)
    return top + np.log(np.exp(scores - top[:, None]).sum(-1))


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -x))

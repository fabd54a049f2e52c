"""Decode attention over a ring cache in float64: the reference for split kernels.

One query token per sequence attends to the live band ``[lo, len)`` of its cache, position p in slot
``p % capacity``: a dense softmax over the whole band, and the same over each split of it. Nothing here is
computed online, in tiles, or by merging, so it cannot share a fault with a kernel that does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verify.contract.model import Case


@dataclass(frozen=True)
class Head:
    """The inputs of the query heads of one KV head, as float64 over the live band.

    q: ``[group, D]``; k, v: ``[n, D]`` in the order of positions. edges: split boundaries relative to the
    low edge, ``splits + 1`` of them. heads: slice of the query heads. broken: the band is longer than the
    cache, so the result is NaN and nothing may be read (n is then 0).
    """

    batch: int
    kv_head: int
    heads: slice
    lo: int
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    edges: tuple[int, ...]
    broken: bool

    @property
    def parts(self) -> list[slice]:
        """The splits as slices of the band; some may be empty."""
        return [slice(first, end) for first, end in zip(self.edges, self.edges[1:], strict=False)]


def band(case: Case, row: int) -> tuple[int, int]:
    """Live band ``[lo, hi)`` of a batch row; empty at its low edge if it does not fit the cache."""
    hi = max(int(case["len"][row]), 0)
    lo = max(0, hi - case["window"]) if case["window"] else 0
    return (lo, lo) if hi - lo > case["capacity"] else (lo, hi)


def is_broken(case: Case, row: int) -> bool:
    """Whether the row's band is longer than its cache."""
    length, window = case["len"][row], case["window"]
    return bool((min(length, window) if window else length) > case["capacity"])


def live_slots(case: Case) -> np.ndarray:
    """Boolean ``[B, 1, capacity, 1]``: the cache slots that a decode step may read."""
    mask = np.zeros((case["B"], 1, case["capacity"], 1), bool)
    for row in range(case["B"]):
        lo, hi = band(case, row)
        mask[row, 0, np.arange(lo, hi) % case["capacity"], 0] = True
    return mask


def split_edges(case: Case, row: int) -> list[int]:
    """Absolute split boundaries of the rule "even tiles": tiles counted from the low edge, spread evenly."""
    (lo, hi), tile, splits = band(case, row), case["tile"], case["num_splits"]
    tiles = -(-(hi - lo) // tile)
    return [min(lo + tile * (split * tiles // splits), hi) for split in range(splits + 1)]


def softmax_scale(case: Case) -> float:
    """The scale as the launcher receives it, in single precision."""
    return float(np.float32(case["scale"]))


def attention_heads(case: Case) -> Iterator[Head]:
    """The independent problems of a case, one for each batch row and KV head."""
    rows, kv_heads, dim, capacity = case["B"], case["NKV"], case["D"], case["capacity"]
    group = case["NH"] // kv_heads
    q = case.f64("q").reshape(rows, case["NH"], dim)
    k, v = case.f64("k"), case.f64("v")
    for row in range(rows):
        lo, hi = band(case, row)
        edges = tuple(edge - lo for edge in split_edges(case, row))
        slots = np.arange(lo, hi) % capacity
        for kv_head in range(kv_heads):
            heads = slice(kv_head * group, (kv_head + 1) * group)
            yield Head(
                row, kv_head, heads, lo, q[row, heads], k[row, kv_head, slots], v[row, kv_head, slots], edges,
                is_broken(case, row),
            )  # fmt: skip


def reference(case: Case) -> dict[str, np.ndarray]:
    """``out`` ``[B, NH*D]`` and the split partials in invariant form.

    ``partial_out`` ``[B, NH, splits, D]`` is the attention over one split alone, ``partial_lse``
    ``[B, NH, splits]`` the natural logarithm of its summed weights. An empty row gives zeros.
    """
    rows, heads, dim, splits = case["B"], case["NH"], case["D"], case["num_splits"]
    scale = softmax_scale(case)
    out = np.zeros((rows, heads, dim))
    o = np.zeros((rows, heads, splits, dim))
    m, weight = np.zeros((rows, heads, splits)), np.zeros((rows, heads, splits))
    for head in attention_heads(case):
        at = (head.batch, head.heads)
        out[at] = head_output(head, scale)
        o[at], m[at], weight[at] = head_partials(head, scale)
    partial_out, partial_lse = invariant_partials(o, m, weight, scale)
    return {"out": out.reshape(rows, heads * dim), "partial_out": partial_out, "partial_lse": partial_lse}


def head_output(head: Head, scale: float) -> np.ndarray:
    """Dense attention over the whole band, ``[group, D]``."""
    if head.broken:
        return np.full(head.q.shape, np.nan)
    if len(head.k) == 0:
        return np.zeros(head.q.shape)
    whole, _, weight = _attend(head.q @ head.k.T, head.v, scale)
    return whole / weight[:, None]


def head_partials(head: Head, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dense attention over each split: unnormalised ``[group, splits, D]``, maximum and weight
    ``[group, splits]``. Empty splits hold zeros; a broken head has the weight NaN."""
    group, dim, splits = *head.q.shape, len(head.edges) - 1
    o, m = np.zeros((group, splits, dim)), np.zeros((group, splits))
    weight = np.full((group, splits), np.nan if head.broken else 0.0)
    scores = head.q @ head.k.T
    for split, part in enumerate(head.parts):
        if part.start < part.stop:
            o[:, split], m[:, split], weight[:, split] = _attend(scores[:, part], head.v[part], scale)
    return o, m, weight


def _attend(scores: np.ndarray, v: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unnormalised output ``[group, D]``, maximum score and summed weight ``[group]``."""
    top = scores.max(-1)
    weights = np.exp(scale * (scores - top[:, None]))
    return weights @ v, top, weights.sum(-1)


def invariant_partials(
    o: np.ndarray, m: np.ndarray, weight: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """``O / l`` and ``scale * m + ln l``: a partial independent of the maximum that it is relative to.

    o ``[..., D]``, m and the weight l ``[...]``; m is a maximum of unscaled scores. Where l is 0 the partial
    is empty: the result is 0 and minus infinity, whatever O and m are.
    """
    empty = weight == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        output = np.where(empty[..., None], 0.0, o / weight[..., None])
        logarithm = np.where(empty, -np.inf, scale * m + np.log(weight))
    return output, logarithm


def observe_partials(case: Case, raw: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The invariants of the partials that a kernel wrote; see :func:`invariant_partials`.

    The kernel promises O = 0 and m = -inf for an empty partial, so these are compared directly there.
    """
    output, logarithm = invariant_partials(raw["o"], raw["m"], raw["l"], softmax_scale(case))
    empty = raw["l"] == 0
    return {
        "partial_out": np.where(empty[..., None], raw["o"], output),
        "partial_lse": np.where(empty, raw["m"], logarithm),
    }


def locate(case: Case, quantity: str, index: tuple[int, ...]) -> str:
    """The positions and slots that contribute to an element, for messages."""
    row = index[0]
    lo, hi = band(case, row)
    capacity, group = case["capacity"], case["NH"] // case["NKV"]
    if quantity.startswith("partial"):
        edges = split_edges(case, row)
        lo, hi = edges[index[2]], edges[index[2] + 1]
        head, dim = index[1], index[3:]
    else:
        head, dim = divmod(index[1], case["D"])
    where = f"head {head}, KV head {head // group}" + (f", dim {dim}" if isinstance(dim, int) else "")
    if lo == hi:
        return f"{where}, no position"
    return f"{where}, positions {lo}..{hi - 1}, slots {lo % capacity}..{(hi - 1) % capacity}"

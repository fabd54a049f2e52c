"""Decode attention with one fault in it, in float64: what a split kernel that has the fault would give.

Unlike the reference, all this is written in the kernel's own terms: tiles with a running maximum, splits, and
a merge of them. A fault is a replacement of one of these steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from verify.contract.layout import elements_at
from verify.contract.model import Case
from verify.contracts.attention.reference import Head, attention_heads, invariant_partials, softmax_scale

LN2 = float(np.log(2))
_LEAST = 2.0**-126
"""What single precision with flushing takes for zero below."""


@dataclass(frozen=True)
class State:
    """Softmax states: o ``[group, n, D]`` unnormalised, top and weight ``[group, n]``, of n splits."""

    o: np.ndarray
    top: np.ndarray
    weight: np.ndarray


Attend = Callable[[np.ndarray, np.ndarray, float, int], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""From scores ``[group, n]``, v ``[n, D]``, the scale and the tile to o ``[group, D]``, top and weight."""


@dataclass(frozen=True)
class Faulty:
    """A kernel by its steps.

    heads: what each KV head's queries see. parts: indices into the band by split. attend: one split. merged:
    the splits that the merge takes, in order. merge: of those splits, to o ``[group, D]`` and weight
    ``[group]``. finish: changes the quantities in place.
    """

    heads: Callable[[Case], list[Head]] | None = None
    parts: Callable[[Case, Head], Sequence[np.ndarray]] | None = None
    attend: Attend | None = None
    merged: Callable[[Case, Head], Sequence[int]] | None = None
    merge: Callable[[Case, State], tuple[np.ndarray, np.ndarray]] | None = None
    finish: Callable[[Case, dict[str, np.ndarray]], None] | None = None

    def gives(self, case: Case) -> dict[str, np.ndarray]:
        """Out, partial_out and partial_lse of the kernel."""
        rows, heads, dim, splits = case["B"], case["NH"], case["D"], case["num_splits"]
        out = np.zeros((rows, heads, dim))
        o, top, weight = (
            np.zeros((rows, heads, splits, dim)),
            np.zeros((rows, heads, splits)),
            np.zeros((rows, heads, splits)),
        )
        for head in self.heads(case) if self.heads is not None else attention_heads(case):
            at = (head.batch, head.heads)
            state = self._splits(case, head)
            o[at], top[at], weight[at] = state.o, state.top, state.weight
            order = list(self.merged(case, head) if self.merged is not None else range(splits))
            if not order:
                continue
            taken = State(*(x[:, order] for x in (state.o, state.top, state.weight)))
            whole, total = (self.merge or merge_all)(case, taken)
            out[at] = np.where((total == 0)[:, None], 0.0, whole / np.where(total == 0, 1.0, total)[:, None])
        partial_out, partial_lse = invariant_partials(o, top, weight, softmax_scale(case))
        empty = weight == 0
        given = {
            "out": out.reshape(rows, -1),
            "partial_out": partial_out,
            "partial_lse": np.where(
                empty, np.where(np.isfinite(top) & (top != 0), top, -np.inf), partial_lse
            ),
        }
        if self.finish is not None:
            self.finish(case, given)
        return given

    def _splits(self, case: Case, head: Head) -> State:
        group, dim, splits = *head.q.shape, len(head.edges) - 1
        o, top = np.zeros((group, splits, dim)), np.zeros((group, splits))
        weight = np.full((group, splits), np.nan if head.broken else 0.0)
        if head.broken or not len(head.k):
            return State(o, top, weight)
        scores, scale = head.q @ head.k.T, softmax_scale(case)
        parts = (self.parts or even_parts)(case, head)
        for split, part in enumerate(parts):
            if len(part):
                step = self.attend or attend
                o[:, split], top[:, split], weight[:, split] = step(
                    scores[:, part], head.v[part], scale, case["tile"]
                )
        return State(o, top, weight)


def even_parts(case: Case, head: Head) -> list[np.ndarray]:
    """The splits as they should be."""
    return [np.arange(part.start, part.stop) for part in head.parts]


def attend(
    scores: np.ndarray, v: np.ndarray, scale: float, tile: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One split at once."""
    top = scores.max(-1)
    w = np.exp(scale * (scores - top[:, None]))
    return w @ v, top, w.sum(-1)


def online(
    *,
    rescale_l: Callable[[int], bool] = lambda tile: True,
    rescale_o: Callable[[int], bool] = lambda tile: True,
    first_top: float = -np.inf,
    tail: Callable[[np.ndarray], np.ndarray] | None = None,
    summed: Callable[[np.ndarray], np.ndarray] | None = None,
    stored: Callable[[np.ndarray], np.ndarray] = lambda w: w,
) -> Attend:
    """One split tile by tile, with a fault.

    rescale_l, rescale_o: whether the tile of that number rescales what was summed before. first_top: where
    the running maximum starts. tail: of positions past the end in the last tile, by their number in the
    tile, those that count with a score and a value of 0. summed: of positions in a tile, those whose weight
    is summed. stored: weights as they enter the product with V.
    """

    def step(
        scores: np.ndarray, v: np.ndarray, scale: float, tile: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        group, count = scores.shape
        top, weight = np.full(group, first_top), np.zeros(group)
        o = np.zeros((group, v.shape[1]))
        for number, first in enumerate(range(0, count, tile)):
            s, values = scores[:, first : first + tile], v[first : first + tile]
            place = np.arange(s.shape[1])
            if tail is not None and s.shape[1] < tile:
                past = np.arange(s.shape[1], tile)
                place = np.concatenate([place, past[tail(past)]])
                more = len(place) - s.shape[1]
                s = np.pad(s, ((0, 0), (0, more)))
                values = np.pad(values, ((0, more), (0, 0)))
            new = np.maximum(top, s.max(-1))
            w = np.exp(scale * (s - new[:, None]))
            w = np.where(w < _LEAST, 0.0, w)
            with np.errstate(invalid="ignore"):
                alpha = np.where(top == new, 1.0, np.exp(scale * (top - new)))
            kept = w if summed is None else np.where(summed(place), w, 0.0)
            weight = weight * (alpha if rescale_l(number) else 1.0) + kept.sum(-1)
            o = o * (alpha if rescale_o(number) else np.ones(group))[:, None] + stored(w) @ values
            top = new
        return o, top, weight

    return step


def merge_all(case: Case, taken: State) -> tuple[np.ndarray, np.ndarray]:
    """The merge as it should be."""
    return merge_in_lanes(1, 1.0, 1.0)(case, taken)


def merge_in_lanes(
    lanes: int, inside: float, across: float, at_once: int = 1 << 30
) -> Callable[[Case, State], tuple[np.ndarray, np.ndarray]]:
    """A merge by lanes: a lane takes every ``lanes``-th split, ``at_once`` together, then the lanes merge.

    inside, across: what the exponents are multiplied by there; 1 is right.
    """

    def merge(case: Case, taken: State) -> tuple[np.ndarray, np.ndarray]:
        scale = softmax_scale(case)
        group, count, dim = taken.o.shape
        full = taken.weight != 0
        states = []
        for lane in range(min(lanes, count)):
            top, weight, o = np.full(group, -np.inf), np.zeros(group), np.zeros((group, dim))
            for first in range(lane, count, lanes * min(at_once, count)):
                own = np.arange(first, min(count, first + lanes * min(at_once, count)), lanes)
                tops = np.where(full[:, own], taken.top[:, own], -np.inf)
                new = np.maximum(top, tops.max(-1))
                held = _power(scale, top, new)
                w = _power(inside * scale, tops, new[:, None])
                weight = weight * held + (w * np.where(full[:, own], taken.weight[:, own], 0.0)).sum(-1)
                o = o * held[:, None] + np.einsum("gs,gsd->gd", w, taken.o[:, own])
                top = new
            states.append((top, weight, o))
        highest = np.maximum.reduce([top for top, _, _ in states])
        factors = [_power(across * scale, top, highest) for top, _, _ in states]
        total = sum(f * weight for f, (_, weight, _) in zip(factors, states, strict=True))
        whole = sum(f[:, None] * o for f, (_, _, o) in zip(factors, states, strict=True))
        return np.asarray(whole), np.asarray(total)

    return merge


def _power(scale: float, top: np.ndarray, new: np.ndarray) -> np.ndarray:
    """``exp(scale * (top - new))``; 0 for an empty state."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(top), 0.0, np.exp(scale * (top - new)))


def other_cache_heads(case: Case, head_of: Callable[[int], int]) -> list[Head]:
    """Each query head with the cache of another KV head: ``head_of`` from a query head to its KV head."""
    found = []
    by_kv = {(h.batch, h.kv_head): h for h in attention_heads(case)}
    group = case["NH"] // case["NKV"]
    for (batch, kv_head), head in by_kv.items():
        for number in range(group):
            query = kv_head * group + number
            other = by_kv[batch, head_of(query) % case["NKV"]]
            own = head.q[number : number + 1]
            found.append(replace(head, heads=slice(query, query + 1), q=own, k=other.k, v=other.v))
    return found


def other_slots(case: Case, slots_of: Callable[[Case, Head], np.ndarray]) -> list[Head]:
    """Each band read from other slots; what lies past the last slot of a head is the next head's, or padding.

    Past the end of the cache zeros are read, as the CPU device does.
    """
    found = []
    for head in attention_heads(case):
        if not head.broken and len(head.k):
            slots = slots_of(case, head)
            head = replace(head, k=_cache_rows(case, "k", head, slots), v=_cache_rows(case, "v", head, slots))
        found.append(head)
    return found


def _cache_rows(case: Case, name: str, head: Head, slots: np.ndarray) -> np.ndarray:
    """``[n, D]``: what a cache holds at the addresses of some slots of a head, however far they are."""
    buffer = case.contract.buffer(name)
    shape, strides = case.shape(buffer), case.strides(buffer)
    at = head.batch * strides[0] + head.kv_head * strides[1] + slots[:, None] * strides[2]
    at = at + np.arange(shape[3]) * strides[3]
    there, index = elements_at(at, shape, strides)
    end = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    padding = 0.0 if case.fill == "zero" else np.nan
    return np.where(there, case.f64(name)[index], np.where(at > end, 0.0, padding))


def other_queries(case: Case, query_of: Callable[[int], int]) -> list[Head]:
    """Each query head with the query of another of its group: from a number in the group to another."""
    return [
        replace(head, q=head.q[[query_of(number) for number in range(len(head.q))]])
        for head in attention_heads(case)
    ]

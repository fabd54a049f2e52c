"""A split-K flash decoding kernel in NumPy float32, faithful in where and how it rounds.

It exists to be held against the derived bounds: its summation orders, tensor core models, fused or unfused
updates, tiles and splits can be chosen at will. Instructions of published accuracy err at random within it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from verify.contract.formats import round_to
from verify.contracts.attention.reference import Head
from verify.oracle.sums import ScoreChains

F = np.float32
Core = Literal["sm_80", "sm_90", "fma chain", "pairwise"]
CORES: tuple[Core, ...] = ("sm_80", "sm_90", "fma chain", "pairwise")


@dataclass
class Simulation:
    """One way to compute. approximate: draws the error of ex2; scale as the launcher gets it."""

    core: Core
    tile: int
    chains: ScoreChains
    scale: float
    fused: bool
    reverse_merge: bool
    weight_pair: bool
    rng: np.random.Generator

    def run(self, head: Head) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """out ``[group, D]`` as bf16 values, and the raw partials O, m, l."""
        q, k, v = (x.astype(F) for x in (head.q, head.k, head.v))
        scores = self._scores(q, k, self.chains)
        group, splits, dim = len(q), len(head.edges) - 1, q.shape[1]
        o, m = np.zeros((group, splits, dim), F), np.full((group, splits), -np.inf, F)
        weight = np.zeros((group, splits), F)
        for split, part in enumerate(head.parts):
            if part.start < part.stop:
                o[:, split], m[:, split], weight[:, split] = self._split(scores[:, part], v[part])
        return self._merge(o, m, weight), o, m, weight

    def _scores(self, q: np.ndarray, k: np.ndarray, chains: ScoreChains) -> np.ndarray:
        held = np.zeros((len(q), len(k)), F)
        for part in chains:
            if isinstance(part, slice):
                products = q[:, None, part].astype(np.float64) * k[None, :, part]
                held = self._step(held, products)
            else:
                held = (held + self._scores(q, k, part)).astype(F)
        return held

    def _step(self, c: np.ndarray, products: np.ndarray) -> np.ndarray:
        """One mma step: c ``[...]`` plus products ``[..., 16]``."""
        if self.core == "pairwise":
            parts = products.astype(F)
            while parts.shape[-1] > 1:
                parts = (parts[..., 0::2] + parts[..., 1::2]).astype(F)
            return (c + parts[..., 0]).astype(F)
        if self.core == "fma chain":
            for i in self.rng.permutation(products.shape[-1]):
                c = (c.astype(np.float64) + products[..., i]).astype(F)
            return c
        width, extra = (8, 1) if self.core == "sm_80" else (16, 2)
        for first in range(0, products.shape[-1], width):
            taken = products[..., first : first + width]
            addends = np.concatenate([c[..., None].astype(np.float64), taken], -1)
            largest = np.frexp(np.abs(addends).max(-1))[1] - 1
            unit = np.ldexp(1.0, largest - 23 - extra)[..., None]
            c = _truncated((np.trunc(addends / unit) * unit).sum(-1))
        return c

    def _exp2(self, x: np.ndarray) -> np.ndarray:
        y = np.exp2(x.astype(np.float64))
        off = self.rng.choice([-1.0, 1.0, 0.3, -0.6], y.shape) * 2.0**-22 * (1 - 2.0**-9)
        near = y * (1 + off)
        result = np.where(off < 0, -_truncated(-near * (1 + 2.0**-53)), _truncated(near)).astype(F)
        result = np.where(np.abs(result - y) > 2.0**-22 * y, y.astype(F), result)
        return np.where(x == 0, F(1), np.where(y < 2.0**-126, F(0), result)).astype(F)

    def _split(self, scores: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        c = F(self.scale * np.log2(np.e))
        group, count = scores.shape
        o, top = np.zeros((group, v.shape[1]), F), np.full(group, -np.inf, F)
        lanes = np.zeros((group, 4), F)
        for first in range(0, count, self.tile):
            s = np.full((group, self.tile), -np.inf, F)
            s[:, : count - first] = scores[:, first : first + self.tile]
            values = np.zeros((self.tile, v.shape[1]), F)
            values[: count - first] = v[first : first + self.tile]
            new = np.maximum(top, s.max(-1))
            alpha = self._exp2(((top - new).astype(F) * c).astype(F))
            p = self._exp2(((s - new[:, None]).astype(F) * c).astype(F))
            top = new
            # Each lane adds its pairs of columns in a chain, as the fragments of an mma fall to it.
            pairs = p.reshape(group, -1, 4, 2)
            own = np.zeros((group, 4), F)
            for i in range(pairs.shape[1]):
                own = (own + (pairs[:, i, :, 0] + pairs[:, i, :, 1]).astype(F)).astype(F)
            scaled = lanes.astype(np.float64) * alpha[:, None]
            lanes = ((scaled if self.fused else scaled.astype(F)) + own).astype(F)
            o = (o * alpha[:, None]).astype(F)
            high = round_to("bf16", p).astype(F)
            low = round_to("bf16", (p - high).astype(F)).astype(F)
            for step in range(0, self.tile, 16):
                rows = slice(step, step + 16)
                for weights in (high, low) if self.weight_pair else (high,):
                    products = weights[:, None, rows].astype(np.float64) * values[rows].T[None]
                    o = self._step(o, products)
        weight = ((lanes[:, 0] + lanes[:, 1]).astype(F) + (lanes[:, 2] + lanes[:, 3]).astype(F)).astype(F)
        return o, top, weight

    def _merge(self, o: np.ndarray, m: np.ndarray, weight: np.ndarray) -> np.ndarray:
        c = F(self.scale * np.log2(np.e))
        filled = weight != 0
        top = np.where(filled, m, -np.inf).max(-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            factor = np.where(filled, self._exp2(((m - top).astype(F) * c).astype(F)), F(0))
        total_o, total = np.zeros(o[:, 0].shape, F), np.zeros(len(o), F)
        order = range(o.shape[1])
        for split in reversed(order) if self.reverse_merge else order:
            part_o = factor[:, split, None].astype(np.float64) * o[:, split]
            part = factor[:, split].astype(np.float64) * weight[:, split]
            if not self.fused:
                part_o, part = part_o.astype(F), part.astype(F)
            total_o, total = (total_o + part_o).astype(F), (total + part).astype(F)
        divisor = np.where(total == 0, F(1), total)[:, None]
        return round_to("bf16", (total_o / divisor).astype(F))


def _truncated(x: np.ndarray) -> np.ndarray:
    """Toward zero to 24 bits, as float32."""
    exponent = np.frexp(x)[1]
    unit = np.ldexp(1.0, np.maximum(exponent - 24, -149))
    return (np.trunc(x / unit) * unit).astype(F)

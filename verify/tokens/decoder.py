"""The decoder code that both paths share: everything between two kernel calls, rounded to bf16.

It processes consecutive positions together. The oracle decodes one position after the other; the kernel path,
which is given the oracle's tokens, processes all positions layer by layer, each with the cache of its own
past. Every kernel call is the same as in token-by-token decoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from verify.contract.formats import encode, round_to
from verify.tokens.model import Arrays, Attention, Layer, Model
from verify.tokens.operations import Executor, Operation

_EPSILON = 1e-6
_ROTATION_BASE = 10_000.0


@dataclass
class Past:
    """Keys and values of one layer, ``[positions, kv_heads, dim]``, as stored."""

    keys: np.ndarray
    values: np.ndarray


@dataclass
class State:
    """The state of decoding: each layer's past."""

    layers: list[Past] = field(default_factory=list)

    @classmethod
    def empty(cls, model: Model) -> State:
        """The state before the first position."""
        shapes = [(0, layer.attention.kv_heads, layer.attention.dim) for layer in model.layers]
        return cls([Past(np.zeros(s), np.zeros(s)) for s in shapes])


@dataclass(frozen=True)
class Decoder:
    """One path through the model. stored: format between the calls (f64 shows the effect of bf16)."""

    model: Model
    execute: Executor
    stored: str = "bf16"

    def logits(self, tokens: Sequence[int], first: int, state: State) -> np.ndarray:
        """Logits ``[n, V]`` after each of ``tokens``, at the positions from ``first`` on.

        Appends to the state.
        """
        positions = list(range(first, first + len(tokens)))
        hidden = self.model.embedding[list(tokens)]
        for number, layer in enumerate(self.model.layers):
            hidden = self._layer(number, layer, hidden, positions, state.layers[number])
        x = self._norm(hidden, self.model.norm_head)
        shape = self.model.shape
        symbols = {"N": shape.vocabulary, "K": shape.hidden, "B": 1, "output": 1}
        return self._product(None, "head", "fp8_matvec", symbols, self.model.head, x, positions)

    def _layer(
        self, number: int, layer: Layer, hidden: np.ndarray, positions: list[int], past: Past
    ) -> np.ndarray:
        joint = self._projection(number, layer, "qkv", self._norm(hidden, layer.norm_attention), positions)
        attended = self._attention(number, layer.attention, joint, positions, past)
        hidden = self._stored(hidden + self._projection(number, layer, "out", attended, positions))
        raised = self._projection(number, layer, "up", self._norm(hidden, layer.norm_forward), positions)
        gate, up = np.split(raised, 2, axis=1)
        active = self._stored(gate / (1 + np.exp(-gate)) * up)
        return self._stored(hidden + self._projection(number, layer, "down", active, positions))

    def _projection(
        self, number: int, layer: Layer, name: str, x: np.ndarray, positions: list[int]
    ) -> np.ndarray:
        arrays = layer.projections[name]
        rows, width = arrays["weights"].shape
        symbols = {"N": rows, "K": 2 * width, "B": 1, "output": 0, **layer.formats}
        return self._product(number, name, "fp4_matvec", symbols, arrays, x, positions)

    def _product(
        self, number: int | None, name: str, kernel: str, symbols: Mapping[str, int], arrays: Arrays,
        x: np.ndarray, positions: list[int],
    ) -> np.ndarray:  # fmt: skip
        inputs = [{**arrays, "x": self._input(row[None])} for row in x]
        return self.execute(Operation(number, name, kernel, [symbols] * len(x), inputs, positions))

    def _attention(
        self, number: int, shape: Attention, joint: np.ndarray, positions: list[int], past: Past
    ) -> np.ndarray:
        count = len(positions)
        ends = np.cumsum([shape.heads * shape.dim, shape.kv_heads * shape.dim])
        q, k, v = np.split(joint, ends, axis=1)
        at = np.array(positions)
        q = self._stored(_rotated(q.reshape(count, shape.heads, shape.dim), at))
        k = self._stored(_rotated(k.reshape(count, shape.kv_heads, shape.dim), at))
        past.keys = np.concatenate([past.keys, k])
        past.values = np.concatenate([past.values, v.reshape(count, shape.kv_heads, shape.dim)])
        symbols = [
            {
                "B": 1, "NH": shape.heads, "NKV": shape.kv_heads, "D": shape.dim, "window": shape.window,
                "capacity": shape.capacity, "len": (position + 1,),
            }
            for position in positions
        ]  # fmt: skip
        arrays = [
            {
                "q": self._input(q[row].reshape(1, -1)),
                "k": self._input(_ring(past.keys[: position + 1], shape.capacity)),
                "v": self._input(_ring(past.values[: position + 1], shape.capacity)),
                "lengths": np.array([position + 1], np.int32),
            }
            for row, position in enumerate(positions)
        ]
        return self.execute(Operation(number, "attention", "flash_decode", symbols, arrays, positions))

    def _norm(self, hidden: np.ndarray, gain: np.ndarray) -> np.ndarray:
        mean = np.mean(hidden**2, axis=1, keepdims=True)
        return self._stored(hidden / np.sqrt(mean + _EPSILON) * gain)

    def _stored(self, values: np.ndarray) -> np.ndarray:
        return round_to(self.stored, values)

    def _input(self, values: np.ndarray) -> np.ndarray:
        return encode(self.stored, values)


def _rotated(heads: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Rotary position embedding of ``[n, heads, dim]``: a head's halves are real and imaginary parts."""
    half = heads.shape[-1] // 2
    angles = positions[:, None, None] * _ROTATION_BASE ** (-np.arange(half) / half)
    a, b = heads[..., :half], heads[..., half:]
    return np.concatenate(
        [a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], -1
    )


def _ring(past: np.ndarray, capacity: int) -> np.ndarray:
    """The last ``capacity`` positions in their slots, as a cache ``[1, kv_heads, capacity, dim]``."""
    positions = np.arange(max(0, len(past) - capacity), len(past))
    cache = np.zeros((capacity, *past.shape[1:]))
    cache[positions % capacity] = past[positions]
    return cache.swapaxes(0, 1)[None]

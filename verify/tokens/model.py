"""A small decoder with seeded weights: window GQA layers, global MQA layers, FP4 projections, FP8 head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from verify.contract.formats import decode, encode

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Attention:
    """One layer's attention. window 0: every position, in a cache that never wraps."""

    heads: int
    kv_heads: int
    dim: int
    window: int
    capacity: int

    @property
    def width(self) -> int:
        """Outputs of the joint projection: queries, keys, values."""
        return (self.heads + 2 * self.kv_heads) * self.dim


LOCAL = Attention(heads=4, kv_heads=2, dim=64, window=16, capacity=20)
GLOBAL = Attention(heads=4, kv_heads=1, dim=128, window=0, capacity=64)


@dataclass(frozen=True)
class Shape:
    """Sizes of the decoder. steps: tokens decoded; several times the window, so that the rings wrap.

    branch: weight of a layer's branch relative to the residual stream. spread: inequality of the head's rows
    (standard deviation of the logarithm of their size); both determine the winning token's lead.
    """

    layers: tuple[Attention, ...] = (*(LOCAL,) * 5, GLOBAL)
    hidden: int = 128
    feed_forward: int = 256
    vocabulary: int = 128
    steps: int = 48
    seed: int = 7
    branch: float = 0.5
    spread: float = 0.5


@dataclass(frozen=True)
class Layer:
    """Weights of one layer: norm gains as numbers, projections as buffers of the FP4 kernel."""

    attention: Attention
    norm_attention: np.ndarray
    norm_forward: np.ndarray
    projections: Mapping[str, Arrays]
    formats: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """All weights. embedding: bf16 values ``[V, hidden]``; head: the buffers of the FP8 kernel."""

    shape: Shape
    embedding: np.ndarray
    layers: tuple[Layer, ...]
    norm_head: np.ndarray
    head: Arrays


def build_model(shape: Shape) -> Model:
    """Weights from the seed; layers alternate NVFP4-style (E4M3, 16) and MX-style (E8M0, 32) scales."""
    rng = np.random.default_rng(shape.seed)
    hidden = shape.hidden
    layers = []
    for number, attention in enumerate(shape.layers):
        style = number % 2
        sizes = {
            "qkv": (attention.width, hidden, 1.0),
            "out": (hidden, attention.heads * attention.dim, shape.branch),
            "up": (2 * shape.feed_forward, hidden, 1.0),
            "down": (hidden, shape.feed_forward, shape.branch),
        }
        projections = {
            name: quantise_fp4(rng.standard_normal((rows, depth)) * gain / np.sqrt(depth), style)
            for name, (rows, depth, gain) in sizes.items()
        }
        gains = [1 + 0.1 * rng.standard_normal(hidden) for _ in range(2)]
        layers.append(Layer(attention, gains[0], gains[1], projections, dict(FORMATS[style])))
    rows = np.exp(shape.spread * rng.standard_normal((shape.vocabulary, 1)))
    head = rows * rng.standard_normal((shape.vocabulary, hidden)) / np.sqrt(hidden)
    embedding = decode("bf16", encode("bf16", rng.standard_normal((shape.vocabulary, hidden))))
    return Model(shape, embedding, tuple(layers), 1 + 0.1 * rng.standard_normal(hidden), quantise_fp8(head))


FORMATS = ({"scale_format": 0, "group": 16}, {"scale_format": 1, "group": 32})
"""Symbols of the FP4 kernel for the two styles."""


def quantise_fp4(weights: np.ndarray, style: int) -> Arrays:
    """The FP4 kernel's buffers for a matrix ``[N, K]``: the largest weight of a group becomes about 6."""
    group = FORMATS[style]["group"]
    grouped = weights.reshape(len(weights), -1, group)
    largest = np.abs(grouped).max(-1)
    factor = float(np.float32(largest.max() / (6 * 448))) if style == 0 else 1.0
    dtype = "e4m3" if style == 0 else "e8m0"
    wanted = np.maximum(largest / 6 / factor, 2.0**-9)
    codes = encode(dtype, wanted if style == 0 else np.exp2(np.ceil(np.log2(wanted))))
    scales = decode(dtype, codes) * factor
    packed = encode("e2m1x2", (grouped / scales[..., None]).reshape(weights.shape))
    return {"weights": packed, "scales": codes, "tensor_scale": encode("f32", np.array([factor]))}


def quantise_fp8(weights: np.ndarray) -> Arrays:
    """The FP8 kernel's buffers for a matrix ``[N, K]``: the largest weight of a row becomes 448."""
    scales = encode("f32", np.abs(weights).max(-1) / 448)
    return {"weights": encode("e4m3", weights / decode("f32", scales)[:, None]), "scales": scales}

"""Data profiles for decode attention: each makes different positions, or a different softmax path, matter.

All of them fill the whole cache; visibility assumes that a kernel would find these values in dead slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from verify.contract.formats import round_to
from verify.contract.model import Case, Profile
from verify.contracts.attention.reference import band, softmax_scale, split_edges

Arrays = dict[str, np.ndarray]


def _normal(case: Case, rng: np.random.Generator) -> Arrays:
    rows, kv_heads, capacity, dim = case["B"], case["NKV"], case["capacity"], case["D"]
    return {
        "q": rng.standard_normal((rows, case["NH"] * dim)),
        "k": rng.standard_normal((rows, kv_heads, capacity, dim)),
        "v": rng.standard_normal((rows, kv_heads, capacity, dim)),
        "lengths": np.array(case["len"], np.int64),
    }


def _scored(case: Case, rng: np.random.Generator, scores: np.ndarray, noise: float = 0.3) -> Arrays:
    """Keys that give all query heads of a KV head about these scaled scores, ``[B, NKV, capacity]``.

    Queries are a common sign pattern u plus noise, keys ``score / (scale D) u`` plus noise.
    """
    arrays = _normal(case, rng)
    rows, kv_heads, dim = case["B"], case["NKV"], case["D"]
    u = rng.choice([-1.0, 1.0], (rows, kv_heads, 1, dim))
    q = arrays["q"].reshape(rows, kv_heads, -1, dim)
    arrays["q"] = (u + 0.1 * q).reshape(rows, -1)
    arrays["k"] = noise * arrays["k"] + u * (scores / (softmax_scale(case) * dim))[..., None]
    return arrays


def _slots(case: Case, row: int) -> np.ndarray:
    """Slots of the live band, in the order of positions."""
    lo, hi = band(case, row)
    return np.arange(lo, hi) % case["capacity"]


def needle_positions(case: Case, row: int) -> list[int]:
    """Positions where an off-by-one would happen: both ends, wrap, and both sides of split and tile edges."""
    lo, hi = band(case, row)
    edges = split_edges(case, row)
    tile = case["tile"]
    found = [lo, hi - 1, *(p for e in edges for p in (e - 1, e))]
    found += [p for start in range(lo + tile, hi, tile) for p in (start - 1, start)]
    wrap = -(-lo // case["capacity"]) * case["capacity"]
    found += [wrap - 1, wrap]
    return list(dict.fromkeys(p for p in found if lo <= p < hi))


def _needle(case: Case, rng: np.random.Generator) -> Arrays:
    """Keys that dominate at the needle positions, distributed over the KV heads, and larger ones outside."""
    scores = np.zeros((case["B"], case["NKV"], case["capacity"]))
    loud = []
    for row in range(case["B"]):
        lo, hi = band(case, row)
        height = np.log(max(hi - lo, 1)) + 5.0
        for number, position in enumerate(needle_positions(case, row)):
            scores[row, number % case["NKV"], position % case["capacity"]] = height
        live = set(_slots(case, row).tolist())
        for slot in {(lo - 1) % case["capacity"], hi % case["capacity"]} - live:
            scores[row, :, slot] = height + 5.0
            loud.append((row, slot))
    arrays = _scored(case, rng, scores)
    for row, slot in loud:
        arrays["v"][row, :, slot] += 8.0
    return arrays


def _rising(case: Case, rng: np.random.Generator) -> Arrays:
    """Scores increase from position to position, by 12 in total: every tile raises the maximum."""
    scores = np.zeros((case["B"], case["NKV"], case["capacity"]))
    for row in range(case["B"]):
        slots = _slots(case, row)
        scores[row][:, slots] = np.linspace(-6.0, 6.0, len(slots))
    return _scored(case, rng, scores, noise=0.01)


def _jumping(case: Case, rng: np.random.Generator) -> Arrays:
    """Levels that jump from tile to tile, and once so far up and back that all other weights underflow."""
    levels = np.array([0.0, 9.0, -25.0, 4.0, 12.0])
    scores = np.zeros((case["B"], case["NKV"], case["capacity"]))
    for row in range(case["B"]):
        slots = _slots(case, row)
        tiles = np.arange(len(slots)) // case["tile"]
        count = tiles.max(initial=0) + 1
        far = np.where((tiles >= count // 2) & (tiles < count // 2 + -(-count // 4)), 130.0, 0.0)
        scores[row][:, slots] = levels[tiles % len(levels)] + far
    return _scored(case, rng, scores)


def _flat(case: Case, rng: np.random.Generator) -> Arrays:
    """One key for all positions: scores tie everywhere."""
    arrays = _normal(case, rng)
    arrays["k"] = np.broadcast_to(arrays["k"][:, :, :1], arrays["k"].shape).copy()
    return arrays


def _coded(case: Case, rng: np.random.Generator) -> Arrays:
    """Q = 0, so that every weight is exactly 1; V holds small integers hashed from (row, head, slot, dim)."""
    arrays = _normal(case, rng)
    arrays["q"] = np.zeros_like(arrays["q"])
    index = np.arange(arrays["v"].size, dtype=np.uint64).reshape(arrays["v"].shape)
    arrays["v"] = (_hashed(index) % np.uint64(201)).astype(np.float64) - 100.0
    return arrays


def _hashed(x: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64: a bijection whose low bits depend on all bits of the index."""
    with np.errstate(over="ignore"):
        x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _ones(case: Case, rng: np.random.Generator) -> Arrays:
    arrays = _normal(case, rng)
    arrays["v"] = np.ones_like(arrays["v"])
    return arrays


def _deep(case: Case, rng: np.random.Generator, depth: float = 196608.0) -> Arrays:
    """Scores all equal, exact in single precision, and near -depth after scaling."""
    arrays = _normal(case, rng)
    dim = case["D"]
    before_scaling = 2.0 ** np.round(np.log2(depth / softmax_scale(case)))
    sign = rng.choice([-1.0, 1.0], (case["B"], case["NKV"], 1, dim))
    group = case["NH"] // case["NKV"]
    size = 2.0 ** np.floor(np.log2(before_scaling / dim) / 2)
    arrays["q"] = np.broadcast_to(sign * size, (case["B"], case["NKV"], group, dim)).reshape(case["B"], -1)
    arrays["k"] = np.broadcast_to(-sign * before_scaling / (dim * size), arrays["k"].shape).copy()
    return arrays


def _deeper(case: Case, rng: np.random.Generator) -> Arrays:
    """The same near -4e9, below any finite number likely to stand for minus infinity."""
    return _deep(case, rng, 2.0**32)


def _large(case: Case, rng: np.random.Generator) -> Arrays:
    """Partial sums of scores and outputs beyond 65504, half precision's maximum, exact in single precision.

    Q is 128 except in dim 0, where it is 1. Keys hold integers of at least 128 that cancel between the two
    halves of D, and the score itself in dim 0. Values reach 2e5.
    """
    arrays = _normal(case, rng)
    rows, kv_heads, capacity, dim = case["B"], case["NKV"], case["capacity"], case["D"]
    q = np.full((rows, kv_heads, case["NH"] // kv_heads, dim), 128.0)
    q[..., 0], q[..., dim // 2] = 1.0, 0.0
    arrays["q"] = q.reshape(rows, -1)
    half = rng.integers(128, 256, (rows, kv_heads, capacity, dim // 2)).astype(np.float64)
    k = np.concatenate([half, -half], axis=-1)
    spread = 3.0 / softmax_scale(case)
    k[..., 0] = np.clip(np.rint(arrays["k"][..., 0] * spread), -256, 256)
    arrays["k"] = k
    arrays["v"] = arrays["v"] * 4e4 + np.sign(arrays["v"]) * 7e4
    return arrays


Generator = Callable[[Case, np.random.Generator], Arrays]


def _profiles() -> Iterator[Profile]:
    table: tuple[tuple[str, Generator, bool, str], ...] = (
        ("normal", _normal, False, "Wrong arithmetic on ordinary values."),
        ("needle", _needle, False, "A position too few or too many at an end, a wrap, a split or tile edge."),
        ("rising", _rising, True, "A forgotten rescale: every tile raises the maximum."),
        ("jumping", _jumping, True, "A rescale that underflows; a maximum that changes needlessly or falls."),
        ("flat", _flat, False, "Ties treated as a new maximum, and a weight other than 1 at the maximum."),
        ("coded", _coded, False, "A position dropped, duplicated or swapped, at any length: sums are exact."),
        ("ones", _ones, False, "O and l summed over different positions, or rescaled differently."),
        ("deep", _deep, False, "A finite sentinel or an initial maximum above the scores."),
        ("deeper", _deeper, False, "A sentinel of -1e9, and a running maximum that stays there."),
        ("large", _large, False, "An accumulator of half precision."),
    )
    for name, generate, path, pins in table:
        yield Profile(name, _stored(generate), pins, control_path=path)


def _stored(generate: Generator) -> Generator:
    """Round to bf16 here, so that a profile's exactness holds for the stored values."""

    def rounded(case: Case, rng: np.random.Generator) -> Arrays:
        arrays = generate(case, rng)
        return {n: a if n == "lengths" else round_to("bf16", a) for n, a in arrays.items()}

    return rounded


ATTENTION_PROFILES = tuple(_profiles())

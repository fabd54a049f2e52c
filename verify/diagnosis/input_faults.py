"""Inputs that a kernel reads from the wrong place, or interprets as another value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from verify.contract.formats import FORMATS
from verify.contract.hypothesis import Prediction
from verify.contract.model import Buffer, Case
from verify.diagnosis.altered import altered, inputs, read_otherwise

LARGEST_VIEW = 1 << 22
"""Elements of a view that is read or written otherwise: more would take the whole of a diagnosis' time."""


def values(case: Case, seen: Mapping[str, np.ndarray]) -> Iterator[Prediction]:
    """All values of an input mistaken in one way."""
    for buffer in inputs(case):
        fmt = FORMATS[case.dtype(buffer)]
        if not fmt.is_float:
            continue
        x = case.f64(buffer.name)
        live = np.isfinite(x)
        ways = {
            "ignored (taken for 1)": np.where(live, 1.0, x),
            "taken for 0": np.where(live, 0.0, x),
            "inverted": np.where(live & (x != 0), 1 / np.where(x == 0, 1.0, x), x),
            "of the opposite sign": -x,
            "without its sign": np.abs(x),
            "doubled": 2 * x,
            "halved": x / 2,
            "flushed to 0 where subnormal": np.where(np.abs(x) < fmt.smallest_normal, 0.0, x),
            "flushed to 0 where smallest": np.where(np.abs(x) <= fmt.smallest_subnormal, 0.0, x),
        }
        mask = np.broadcast_to(case.live(buffer.name), case.shape(buffer))
        nan = np.isnan(x) & np.repeat(mask, fmt.packed, axis=-1)
        if nan.any():
            bits = case.arrays[buffer.name].view(fmt.dtype)
            sign = np.where(bits >> (fmt.bits - 1) & fmt.signed, -1.0, 1.0)
            ways["taken for infinity where NaN"] = np.where(nan, np.inf, x)
            ways["taken for the largest number where NaN"] = np.where(nan, sign * fmt.max_finite, x)
            ways["taken for 0 where NaN"] = np.where(nan, 0.0, x)
            top = 2.0 ** (np.frexp(fmt.max_finite)[1] - 1) * (2 - 2.0**-fmt.mantissa)
            ways["taken for the number that its bits would be where NaN"] = np.where(nan, sign * top, x)
        for words, changed in ways.items():
            if not np.array_equal(changed, x, equal_nan=True):
                yield Prediction(f"{buffer.name} {words}", altered(case, {buffer.name: changed}))


def layouts(case: Case, seen: Mapping[str, np.ndarray]) -> Iterator[Prediction]:
    """An input looked for with other strides: dense ones, or another buffer's."""
    for buffer in inputs(case):
        shape, strides = case.shape(buffer), case.strides(buffer)
        if case.arrays[buffer.name].size > LARGEST_VIEW:
            continue
        for words, other in other_strides(case, buffer, shape, strides):
            yield Prediction(
                f"{buffer.name} read with {words}",
                altered(case, {buffer.name: read_otherwise(case, buffer, other)}),
            )


def other_strides(
    case: Case, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Strides that could be taken for a buffer's: closer together, none, or another input's."""
    known = {strides}
    for axis in range(len(shape) - 1):
        if shape[axis] == 1:
            continue
        inner = max((n * s for n, s in zip(shape[axis + 1 :], strides[axis + 1 :], strict=True)), default=1)
        for words, stride in (
            ("dense", inner),
            ("densest", prod(shape[axis + 1 :])),
            ("no", 0),
        ):
            other = (*strides[:axis], stride, *strides[axis + 1 :])
            if other not in known:
                known.add(other)
                yield f"{words} stride along {buffer.shape[axis]} ({stride}, not {strides[axis]})", other
        for neighbour in inputs(case):
            if case.shape(neighbour) == shape and neighbour is not buffer:
                stride = case.strides(neighbour)[axis]
                other = (*strides[:axis], stride, *strides[axis + 1 :])
                if other not in known:
                    known.add(other)
                    yield f"the stride of {neighbour.name} along {buffer.shape[axis]}", other


def indices(case: Case, seen: Mapping[str, np.ndarray]) -> Iterator[Prediction]:
    """An input read at another index along one axis: the next, the one before, a bit lost or flipped."""
    for buffer in inputs(case):
        x = case.f64(buffer.name)
        strides = case.strides(buffer)
        small = x.size <= LARGEST_VIEW
        for axis, extent in enumerate(x.shape):
            if extent == 1:
                continue
            name = str(buffer.shape[axis])
            packed = x.shape[axis] != case.shape(buffer)[axis]
            for step, words in ((1, "next"), (-1, "one before")):
                if small and not packed:
                    moved = read_otherwise(case, buffer, strides, step * strides[axis])
                    yield _at(case, buffer, f"the {words} index along {name}", moved)
            for words, index in index_maps(extent):
                yield _at(case, buffer, f"{words} along {name}", np.take(x, index, axis))


def _at(case: Case, buffer: Buffer, words: str, moved: np.ndarray) -> Prediction:
    return Prediction(f"{buffer.name} read at {words}", altered(case, {buffer.name: moved}))


def index_maps(extent: int) -> Iterator[tuple[str, np.ndarray]]:
    """Ways to mistake an index below ``extent``, each with the index that is taken for each."""
    i = np.arange(extent)
    yield "index 0 for all", np.zeros_like(i)
    bit = 1
    while bit < extent:
        yield f"index i ^ {bit}", np.minimum(i ^ bit, extent - 1)
        if bit > 1 or extent > 2:
            yield f"index i & ~{bit}", i & ~bit
        if bit > 1:
            yield f"index i - i % {bit}", i - i % bit
            yield f"index i % {bit}", i % bit
        bit *= 2
    yield "the index from the end", i[::-1]

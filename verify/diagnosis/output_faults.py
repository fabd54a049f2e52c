"""Outputs that are right numbers in the wrong place, of the wrong size, or of another call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from verify.contract.formats import FORMATS, decode, encode, round_to
from verify.contract.hypothesis import Prediction
from verify.contract.layout import elements_at, places
from verify.contract.model import Buffer, Case
from verify.diagnosis.input_faults import LARGEST_VIEW, index_maps, other_strides
from verify.wire.fills import fill_table

_FACTORS = (-1.0, *(sign * 2.0**k for k in (1, -1, 2, -2, 3, -3, 4, -4) for sign in (1, -1)))


def outputs(case: Case, seen: Mapping[str, np.ndarray]) -> Iterator[Prediction]:
    """Each output as zeros, scaled, or permuted along an axis."""
    for buffer in case.contract.buffers:
        if buffer.role not in ("out", "inout") or buffer.name not in case.reference:
            continue
        name = buffer.name
        value = np.asarray(case.reference[name], np.float64)
        yield Prediction(f"{name} all zero", {name: np.zeros_like(value)})
        for factor in _FACTORS:
            yield Prediction(f"{name} multiplied by {factor:g}", {name: factor * value})
        if FORMATS[case.dtype(buffer)].mantissa > 7:
            yield Prediction(f"{name} rounded to bf16", {name: round_to("bf16", value)})
        for axis, extent in enumerate(value.shape):
            if extent > 1:
                along = str(buffer.shape[axis])
                for words, index in index_maps(extent):
                    moved = np.take(value, index, axis)
                    yield Prediction(f"the result of {words} along {along} in {name}", {name: moved})
                for step, words in ((1, "next"), (-1, "one before")):
                    moved = np.roll(value, -step, axis)
                    yield Prediction(f"the result of the {words} along {along} in {name}", {name: moved})
        yield from _written_otherwise(case, buffer, value)
        if value.ndim > 1 and min(value.shape[-2:]) > 1:
            turned = np.swapaxes(value, -1, -2).reshape(value.shape)
            yield Prediction(f"{name} transposed", {name: turned})


def _written_otherwise(case: Case, buffer: Buffer, value: np.ndarray) -> Iterator[Prediction]:
    """The result stored with another stride, or in a narrower type. What is not written is not judged."""
    shape, strides = case.shape(buffer), case.strides(buffer)
    if shape != value.shape or value.size > LARGEST_VIEW:
        return
    own = places(shape, strides)
    for words, other in other_strides(case, buffer, shape, strides):
        found, index = elements_at(own, shape, other)
        yield Prediction(
            f"{buffer.name} written with {words}", {buffer.name: np.where(found, value[index], np.nan)}
        )
    if case.dtype(buffer) == "f32":
        halves, pattern = [], np.frombuffer(fill_table("f32", "nan"), np.uint16)
        for half in (0, 1):
            found, index = elements_at(2 * own + half, shape, strides)
            bits = encode("bf16", value)[index].astype(np.uint32)
            halves.append(np.where(found, bits, pattern[half]).astype(np.uint32))
        pairs = halves[0] | halves[1] << 16
        yield Prediction(
            f"{buffer.name} written as bf16, two to an element", {buffer.name: decode("f32", pairs)}
        )

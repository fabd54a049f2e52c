"""Outputs that are right numbers in the wrong place, of the wrong size, or of another call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from verify.contract.formats import FORMATS, round_to
from verify.contract.hypothesis import Prediction
from verify.contract.model import Case
from verify.diagnosis.input_faults import index_maps

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
        if value.ndim > 1 and min(value.shape[-2:]) > 1:
            turned = np.swapaxes(value, -1, -2).reshape(value.shape)
            yield Prediction(f"{name} transposed", {name: turned})

"""Data profiles for a contract that defines none: several distributions of floating-point inputs.

They know nothing about the kernel, so a contract with integer inputs that mean something (lengths, indices)
must define its own profiles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify.contract.formats import FORMATS, Format
from verify.contract.model import Case, Profile

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _filled(draw: Draw) -> Callable[[Case, np.random.Generator], dict[str, np.ndarray]]:
    def generate(case: Case, generator: np.random.Generator) -> dict[str, np.ndarray]:
        inputs = [b for b in case.contract.buffers if b.role in ("in", "inout")]
        for buffer in inputs:
            if not FORMATS[case.dtype(buffer)].is_float:
                raise ValueError(
                    f"{case.contract.name}: {buffer.name}: is {case.dtype(buffer)}; the default profiles "
                    "fill only floating-point inputs: define profiles= in the contract"
                )
        return {b.name: draw(generator, case.shape(b)) for b in inputs}

    return generate


RowDraw = Callable[[np.random.Generator, tuple[int, ...], Format], np.ndarray]


def _in_rows(first: RowDraw, second: RowDraw) -> Callable[[Case, np.random.Generator], dict[str, np.ndarray]]:
    """Rows of two kinds alternating; a row is the last axis.

    Vectors beside matrices (weights, biases) stay ordinary, so that they mask no fault.
    """

    def generate(case: Case, generator: np.random.Generator) -> dict[str, np.ndarray]:
        arrays = _filled(lambda g, shape: g.standard_normal(shape))(case, generator)
        axes = max((array.ndim for array in arrays.values()), default=0)
        for name, array in arrays.items():
            if array.size and array.ndim and (array.ndim == axes or array.ndim > 1):
                fmt = FORMATS[case.dtype(case.contract.buffer(name))]
                rows = array.reshape(-1, array.shape[-1])
                for start, kind in enumerate((first, second)):
                    rows[start::2] = kind(generator, rows[start::2].shape, fmt)
        return arrays

    return generate


def _ordinary(generator: np.random.Generator, shape: tuple[int, ...], _: Format) -> np.ndarray:
    return generator.standard_normal(shape)


def _zero(_: np.random.Generator, shape: tuple[int, ...], __: Format) -> np.ndarray:
    return np.zeros(shape)


def _constant(generator: np.random.Generator, shape: tuple[int, ...], _: Format) -> np.ndarray:
    return np.broadcast_to(3.0 * generator.standard_normal((shape[0], 1)), shape)


def _denormal(generator: np.random.Generator, shape: tuple[int, ...], fmt: Format) -> np.ndarray:
    """Denormals of all magnitudes and both signs."""
    steps = np.floor(np.exp2(generator.uniform(0.0, fmt.mantissa, shape)))
    return steps * fmt.smallest_subnormal * generator.choice([-1.0, 1.0], shape)


def _extreme(generator: np.random.Generator, shape: tuple[int, ...], fmt: Format) -> np.ndarray:
    """A single magnitude, so that both the largest and the smallest element occur many times."""
    return min(1000.0, fmt.max_finite / 4) * generator.choice([-1.0, 1.0], shape)


def _ramp(_: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape, dtype=np.int64))
    return np.linspace(-4.0, 4.0, max(count, 1))[:count].reshape(shape)


DEFAULT_PROFILES = (
    Profile(
        "normal",
        _filled(lambda g, shape: g.standard_normal(shape)),
        "Wrong arithmetic on ordinary values.",
    ),
    Profile(
        "ramp",
        _filled(_ramp),
        "Swapped, dropped or duplicated elements: all values differ.",
    ),
    Profile(
        "integers",
        _filled(lambda g, shape: g.integers(-8, 9, shape).astype(np.float64)),
        "Errors hidden in rounding: sums of small integers are exact.",
    ),
    Profile(
        "large",
        _filled(lambda g, shape: g.standard_normal(shape) * 1000.0),
        "Overflow in narrow accumulators, and a missing maximum in exponentials.",
    ),
    Profile(
        "constant",
        _filled(lambda g, shape: np.ones(shape)),
        "Wrong counts: ties everywhere, and sums that equal the number of elements.",
    ),
    Profile(
        "flat-rows",
        _in_rows(_zero, _constant),
        "A row of zeros or of one value: division by its sum, norm, spread or largest magnitude.",
    ),
    Profile(
        "denormal-rows",
        _in_rows(_denormal, _ordinary),
        "A row so small that a scale or its reciprocal leaves the format's range.",
    ),
    Profile(
        "extreme-rows",
        _in_rows(_extreme, _ordinary),
        "Ties for the largest and the smallest element, and sums that cancel.",
    ),
)

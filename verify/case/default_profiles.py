"""Data profiles for a contract that names none: floating-point inputs of several characters.

They know nothing of the kernel, so a contract whose integer inputs mean something (lengths, indices) must
bring its own profiles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify.case.case import Case
from verify.case.profile import Profile
from verify.oracle.formats import FORMATS

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _filled(draw: Draw) -> Callable[[Case, np.random.Generator], dict[str, np.ndarray]]:
    def generate(case: Case, generator: np.random.Generator) -> dict[str, np.ndarray]:
        inputs = [b for b in case.contract.buffers if b.role in ("in", "inout")]
        for buffer in inputs:
            if not FORMATS[case.dtype(buffer)].is_float:
                raise ValueError(
                    f"{case.contract.name}: {buffer.name}: is {case.dtype(buffer)}; give the contract "
                    "profiles= that fill it, the default profiles fill floating-point inputs only"
                )
        return {b.name: draw(generator, case.shape(b)) for b in inputs}

    return generate


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
        "Swapped, dropped or doubled elements: every element has its own value.",
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
)

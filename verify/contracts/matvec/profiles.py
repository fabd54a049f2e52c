"""Data profiles for quantised matrix-vector products: each makes different codes, positions or scales matter.

Weights and narrow scales are given as codes, since every code has to occur. Activations and factors of the
exact profiles are small integers and powers of two, so that every partial sum is an fp32 number in any order
and the result can be compared for bit equality.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from verify.contract.formats import FORMATS, decode
from verify.contract.model import Case, Profile

Arrays = dict[str, np.ndarray]
Generate = Callable[[Case, np.random.Generator], Arrays]

ONE = {"e2m1": 2, "e4m3": 0x38}
"""Code of 1.0 in a weight format."""


def _pack(codes: np.ndarray) -> np.ndarray:
    """E2M1 codes ``[N, K]`` as bytes ``[N, K/2]``, low nibble first."""
    return (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)


def _integers(rng: np.random.Generator, shape: tuple[int, ...], largest: int = 7) -> np.ndarray:
    """Non-zero integers up to ``largest`` in absolute value."""
    return rng.integers(1, largest + 1, shape) * rng.choice([-1.0, 1.0], shape)


def _finite_codes(dtype: str) -> np.ndarray:
    """All codes of a one-byte format except NaN."""
    codes = np.arange(256, dtype=np.uint8)
    return codes[np.isfinite(decode(dtype, codes))]


def _power_codes(dtype: str, exponents: np.ndarray) -> np.ndarray:
    """Codes of 2^exponent in a scale format."""
    if dtype == "e8m0":
        return (exponents + 127).astype(np.uint8)
    if dtype == "e4m3":
        return ((exponents + 7) << 3).astype(np.uint8)
    return ((exponents + 127) << 7).astype(np.uint16)


class _Fp4:
    """The shapes of one FP4 case."""

    def __init__(self, case: Case) -> None:
        self.rows, self.depth, self.columns = case["N"], case["K"], case["B"]
        self.groups = case["K"] // case["group"]
        self.group = case["group"]
        self.scale_dtype = case.dtype(case.contract.buffer("scales"))

    def random_scales(self, rng: np.random.Generator) -> np.ndarray:
        """Scales within a factor of 16 of each other, both signs where the format has one."""
        shape = (self.rows, self.groups)
        exponents = rng.integers(-2, 3, shape)
        codes = _power_codes(self.scale_dtype, exponents)
        if self.scale_dtype == "e8m0":
            return codes
        mantissa = FORMATS[self.scale_dtype].mantissa
        sign = rng.integers(0, 2, shape) << (FORMATS[self.scale_dtype].bits - 1)
        return (codes | rng.integers(0, 1 << mantissa, shape) | sign).astype(codes.dtype)

    def power_scales(self, rng: np.random.Generator) -> np.ndarray:
        """Scales of 1/2, 1 and 2."""
        return _power_codes(self.scale_dtype, rng.integers(-1, 2, (self.rows, self.groups)))

    def arrays(self, codes: np.ndarray, scales: np.ndarray, factor: float, x: np.ndarray) -> Arrays:
        return {
            "weights:raw": _pack(codes),
            "scales:raw": scales,
            "tensor_scale": np.array([factor]),
            "x": x,
        }


def _random_codes(case: Case, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 16, (case["N"], case["K"]))


def _fp4_normal(case: Case, rng: np.random.Generator) -> Arrays:
    shape = _Fp4(case)
    x = rng.standard_normal((shape.columns, shape.depth))
    return shape.arrays(_random_codes(case, rng), shape.random_scales(rng), -0.0123, x)


def _fp4_codes(case: Case, rng: np.random.Generator) -> Arrays:
    """Code (octet + 5 place + 7 row) mod 16: each code at each place of a 32-bit word within 16 rows."""
    shape = _Fp4(case)
    k, n = np.arange(shape.depth), np.arange(shape.rows)[:, None]
    codes = (k // 8 + 5 * (k % 8) + 7 * n) % 16
    x = _integers(rng, (shape.columns, shape.depth))
    return shape.arrays(codes, shape.power_scales(rng), 0.25, x)


def _fp4_position(case: Case, rng: np.random.Generator) -> Arrays:
    shape = _Fp4(case)
    codes = np.full((shape.rows, shape.depth), ONE["e2m1"])
    x = _integers(rng, (shape.columns, shape.depth), 127)
    return shape.arrays(codes, shape.power_scales(rng), 2.0, x)


def _fp4_one_hot(case: Case, rng: np.random.Generator, *, last: bool) -> Arrays:
    shape = _Fp4(case)
    x = _hot(shape.columns, shape.depth, last)
    return shape.arrays(_random_codes(case, rng), shape.random_scales(rng), 0.25, x)


def _hot(columns: int, depth: int, last: bool) -> np.ndarray:
    """One activation of 1 per column: the first or the last ``columns`` positions."""
    x = np.zeros((columns, depth))
    x[np.arange(columns), (depth - 1 - np.arange(columns)) if last else np.arange(columns)] = 1.0
    return x


def _fp4_scale_codes(case: Case, rng: np.random.Generator) -> Arrays:
    """Row n holds the n-th finite scale code in one group and zero weights in the others.

    x in that group has about the opposite exponent, so that every intermediate is finite and the sum exact.
    A case with few groups, hence few exponents in x, omits the scales that these cannot balance.
    """
    shape = _Fp4(case)
    rows = np.arange(shape.rows)
    exponents = np.array([0, -100, 100, -50, 50])[: shape.groups]
    every = _scale_codes(shape.scale_dtype, rng)
    value = decode(shape.scale_dtype, every)
    own = np.frexp(np.where(value == 0, 1.0, value))[1] - 1
    distance = np.abs(exponents[None] + own[:, None])
    reached = distance.min(1) <= 60
    chosen = (rows + rng.integers(reached.sum())) % reached.sum()
    codes, group = every[reached][chosen], distance[reached].argmin(1)[chosen]

    scales = shape.power_scales(rng)
    scales[rows, group] = codes
    weights = np.zeros((shape.rows, shape.groups, shape.group), np.int64)
    weights[rows, group] = rng.integers(0, 16, (shape.rows, shape.group))
    weights[rows, group, 0] = 7
    # 6 times 113 is more than the other terms can cancel: no row sums to zero.
    x = np.ones((shape.columns, shape.groups, shape.group))
    x[:, :, 0] = 113.0
    x[:, : len(exponents)] *= np.exp2(exponents.astype(np.float64))[None, :, None]
    flat = weights.reshape(shape.rows, -1)
    return shape.arrays(flat, scales, 0.5, x.reshape(shape.columns, -1))


def _scale_codes(dtype: str, rng: np.random.Generator) -> np.ndarray:
    """All finite codes of a narrow scale format; for bf16, 512 of both signs, every eighth subnormal."""
    if dtype != "bf16":
        return _finite_codes(dtype)
    codes = rng.integers(0x0080, 0x7F80, 512)
    codes[::8] = rng.integers(0x0001, 0x0080, 64)
    return (codes | rng.integers(0, 2, 512) << 15).astype(np.uint16)


def _fp4_nan_scales(case: Case, rng: np.random.Generator) -> Arrays:
    """A NaN scale in one group of every second row; the other rows are ordinary."""
    shape = _Fp4(case)
    arrays = _fp4_normal(case, rng)
    rows = np.arange(0, shape.rows, 2)
    nan = FORMATS[shape.scale_dtype].quiet_nan
    negative = 0 if shape.scale_dtype == "e8m0" else 1 << (FORMATS[shape.scale_dtype].bits - 1)
    assert nan is not None
    codes = np.where(rows % 4 == 0, nan, nan | negative)
    arrays["scales:raw"][rows, rng.integers(0, shape.groups, len(rows))] = codes
    return arrays


def _fp4_large(case: Case, rng: np.random.Generator) -> Arrays:
    shape = _Fp4(case)
    x = rng.standard_normal((shape.columns, shape.depth)) * np.exp2(rng.integers(12, 60, (1, shape.depth)))
    return shape.arrays(_random_codes(case, rng), shape.random_scales(rng), 3.0, x)


def _subnormal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """The larger half of bf16's subnormal numbers: their products with weights above 2 are normal."""
    return np.ldexp(rng.integers(64, 128, shape).astype(np.float64), -133)


def _fp4_subnormal(case: Case, rng: np.random.Generator) -> Arrays:
    """Subnormal activations; fp32 results are subnormal too, bf16 results are scaled back to normal."""
    shape = _Fp4(case)
    x = _subnormal(rng, (shape.columns, shape.depth))
    codes = rng.integers(5, 8, (shape.rows, shape.depth)) | rng.integers(0, 2, (shape.rows, 1)) << 3
    return shape.arrays(codes, shape.power_scales(rng), 2.0**-12 if case["output"] else 2.0**120, x)


def _fp8_arrays(codes: np.ndarray, scales: np.ndarray, x: np.ndarray) -> Arrays:
    return {"weights:raw": codes, "scales": scales, "x": x}


def _fp8_codes(case: Case, rng: np.random.Generator) -> np.ndarray:
    every = _finite_codes("e4m3")
    return every[rng.integers(0, len(every), (case["N"], case["K"]))]


def _fp8_normal(case: Case, rng: np.random.Generator) -> Arrays:
    x = rng.standard_normal((case["B"], case["K"]))
    scales = rng.standard_normal(case["N"]) * 0.01
    return _fp8_arrays(_fp8_codes(case, rng), scales, x)


def _fp8_position(case: Case, rng: np.random.Generator) -> Arrays:
    codes = np.full((case["N"], case["K"]), ONE["e4m3"])
    scales = np.exp2(rng.integers(-3, 4, case["N"]).astype(np.float64))
    return _fp8_arrays(codes, scales, _integers(rng, (case["B"], case["K"]), 127))


def _fp8_one_hot(case: Case, rng: np.random.Generator, *, last: bool) -> Arrays:
    """Row n holds code n at every hot position, shifted by the position."""
    every = _finite_codes("e4m3")
    k, n = np.arange(case["K"]), np.arange(case["N"])[:, None]
    codes = every[(n + 37 * (k % 16)) % len(every)]
    scales = np.exp2(rng.integers(-3, 4, case["N"]).astype(np.float64))
    return _fp8_arrays(codes, scales, _hot(case["B"], case["K"], last))


def _fp8_row_scales(case: Case, rng: np.random.Generator) -> Arrays:
    """Row scales of all magnitudes from 2^-140 to 2^100, both signs; weights are powers of two around 1.

    The smallest are subnormal, and give subnormal results.
    """
    codes = (
        (rng.integers(5, 9, (case["N"], case["K"])) << 3) | rng.integers(0, 2, (case["N"], 1)) << 7
    ).astype(np.uint8)
    exponents = (np.arange(case["N"]) * 61 + rng.integers(241)) % 241 - 140
    scales = np.ldexp(1.0 + rng.integers(0, 8, case["N"]) / 8, exponents) * rng.choice([-1, 1], case["N"])
    return _fp8_arrays(codes, scales, np.abs(_integers(rng, (case["B"], case["K"]))))


def _fp8_subnormal(case: Case, rng: np.random.Generator) -> Arrays:
    """Subnormal activations; scales make the results of every second row normal."""
    codes = (
        (rng.integers(8, 12, (case["N"], case["K"])) << 3) | rng.integers(0, 2, (case["N"], 1)) << 7
    ).astype(np.uint8)
    scales = np.exp2(np.where(np.arange(case["N"]) % 2, 0.0, 120.0)) * rng.choice([-1.0, 1.0], case["N"])
    return _fp8_arrays(codes, scales, _subnormal(rng, (case["B"], case["K"])))


def _fp8_nan_codes(case: Case, rng: np.random.Generator) -> Arrays:
    """A NaN weight in every second row; the other rows are ordinary."""
    arrays = _fp8_normal(case, rng)
    rows = np.arange(0, case["N"], 2)
    codes = np.where(rows % 4 == 0, 0x7F, 0xFF)
    arrays["weights:raw"][rows, rng.integers(0, case["K"], len(rows))] = codes
    return arrays


def _fp8_large(case: Case, rng: np.random.Generator) -> Arrays:
    arrays = _fp8_normal(case, rng)
    arrays["x"] = arrays["x"] * np.exp2(rng.integers(12, 60, (1, case["K"])))
    return arrays


FP4_PROFILES = (
    Profile("normal", _fp4_normal, "Wrong arithmetic on ordinary values, a tensor scale below 0."),
    Profile("codes", _fp4_codes, "A code decoded wrongly in any nibble place: the sums are exact."),
    Profile("position", _fp4_position, "A weight dropped, duplicated or paired with another activation."),
    Profile("first-hot", partial(_fp4_one_hot, last=False), "Nibble order, and the first group's scale."),
    Profile("last-hot", partial(_fp4_one_hot, last=True), "Nibble order at the row's end, the last scale."),
    Profile("scale-codes", _fp4_scale_codes, "A scale code decoded wrongly, subnormal and extreme ones too."),
    Profile("nan-scales", _fp4_nan_scales, "A NaN scale treated as a number, or propagated to another row."),
    Profile("subnormal", _fp4_subnormal, "Subnormal activations and results, flushed or scaled wrongly."),
    Profile("large", _fp4_large, "Accumulators of half precision, which overflow."),
)

FP8_PROFILES = (
    Profile("normal", _fp8_normal, "Wrong arithmetic on ordinary values."),
    Profile("position", _fp8_position, "A weight dropped, duplicated or paired with another activation."),
    Profile(
        "first-hot", partial(_fp8_one_hot, last=False), "A code decoded wrongly, in every byte of a word."
    ),
    Profile("last-hot", partial(_fp8_one_hot, last=True), "A code decoded wrongly at the row's end."),
    Profile("row-scales", _fp8_row_scales, "Another row's scale, a flushed subnormal scale, a wrong sign."),
    Profile("nan-codes", _fp8_nan_codes, "A NaN weight treated as a number, or propagated to another row."),
    Profile("subnormal", _fp8_subnormal, "Subnormal activations and results, flushed or scaled wrongly."),
    Profile("large", _fp8_large, "Accumulators of half precision, which overflow."),
)

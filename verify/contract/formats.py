"""Number formats: how a buffer's bits are decoded, how real numbers are rounded to them, and fill patterns.

Sources: IEEE 754-2019 (f16, f32, f64), the bfloat16 layout of the PTX ISA, the OCP 8-bit floating point
specification 1.0 (E4M3 without infinity, E5M2), and the OCP microscaling formats specification 1.0 (E2M1
without NaN or infinity, E8M0 as an exponent alone). The narrow formats saturate on conversion, as the
``cvt...satfinite`` instructions do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

PatternKind = Literal["nan", "inf", "huge", "zero"]


@dataclass(frozen=True)
class Format:
    """One element format.

    storage: NumPy name of the type that holds the bits: unsigned for floats, the integer type itself else.
    exponent, mantissa, bias: field widths in bits and exponent bias; mantissa excludes the implicit bit.
    signed: has a sign bit. top: the largest finite value's bits. infinity, quiet_nan: bits, None where the
    format has none. If the format has several quiet NaNs, this is one that the hardware does not produce, so
    that an unwritten element can be distinguished from a computed NaN.
    saturates: rounding past the largest finite value gives that value, not infinity.
    packed: elements in one storage item; element 0 is in the lowest bits.
    """

    name: str
    storage: str
    exponent: int = 0
    mantissa: int = 0
    bias: int = 0
    top: int = 0
    infinity: int | None = None
    quiet_nan: int | None = None
    signed: bool = True
    saturates: bool = False
    packed: int = 1

    @property
    def is_float(self) -> bool:
        """True for floating-point formats, E8M0 included."""
        return self.exponent > 0

    @property
    def dtype(self) -> np.dtype:
        """NumPy type of one storage item."""
        return np.dtype(self.storage)

    @property
    def itemsize(self) -> int:
        """Bytes of one storage item (two elements, for ``e2m1x2``)."""
        return self.dtype.itemsize

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return 8 * self.itemsize // self.packed

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding to nearest in the normal range; 0 for integers."""
        return 2.0 ** -(self.mantissa + 1) if self.is_float else 0.0

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive value (for E8M0, which has no subnormals, 2^-127)."""
        if not self.is_float:
            return 1.0
        return 2.0**-self.bias if not self.signed else 2.0 ** (1 - self.bias - self.mantissa)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive value of full precision: what flush-to-zero keeps."""
        if not self.is_float:
            return 1.0
        return 2.0**-self.bias if not self.signed else 2.0 ** (1 - self.bias)

    @cached_property
    def max_finite(self) -> float:
        """The largest finite value."""
        item = self.top if self.packed == 1 else sum(self.top << (self.bits * i) for i in range(self.packed))
        return float(decode(self.name, np.array([item], self.dtype)).flat[0])

    def pattern(self, kind: PatternKind) -> int:
        """Bits of one storage item for a fill: a quiet NaN, infinity, the largest finite value, or zero.

        A format without a NaN or an infinity uses its largest finite value instead.
        """
        chosen = {"nan": self.quiet_nan, "inf": self.infinity, "huge": self.top, "zero": 0}[kind]
        element = self.top if chosen is None else chosen
        return sum(element << (self.bits * i) for i in range(self.packed))


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("f64", "uint64", 11, 52, 1023, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0 << 48, 0x7FFD_5AA5_5AA5_5AA5),
        Format("f32", "uint32", 8, 23, 127, 0x7F7F_FFFF, 0x7F80_0000, 0x7FD5_5AA5),
        Format("f16", "uint16", 5, 10, 15, 0x7BFF, 0x7C00, 0x7ED5),
        Format("bf16", "uint16", 8, 7, 127, 0x7F7F, 0x7F80, 0x7FD5),
        Format("e5m2", "uint8", 5, 2, 15, 0x7B, 0x7C, 0x7E, saturates=True),
        Format("e4m3", "uint8", 4, 3, 7, 0x7E, None, 0x7F, saturates=True),
        Format("e2m1x2", "uint8", 2, 1, 1, 0x7, None, None, saturates=True, packed=2),
        Format("e8m0", "uint8", 8, 0, 127, 0xFE, None, 0xFF, signed=False, saturates=True),
        Format("i8", "int8", top=0x7F),
        Format("u8", "uint8", top=0xFF, signed=False),
        Format("i32", "int32", top=0x7FFF_FFFF),
        Format("u32", "uint32", top=0xFFFF_FFFF, signed=False),
        Format("i64", "int64", top=0x7FFF_FFFF_FFFF_FFFF),
    )
}


def format_of(dtype: str) -> Format:
    """The format of that name. Raises KeyError with the known names."""
    if dtype not in FORMATS:
        raise KeyError(f"unknown element type {dtype!r}; known types: {', '.join(FORMATS)}")
    return FORMATS[dtype]


def decode(dtype: str, raw: np.ndarray) -> np.ndarray:
    """Values of a storage array: float64 for float formats, the integers themselves otherwise.

    Packed formats double the last axis, low nibble first. Raises ValueError if the storage items have the
    wrong size.
    """
    fmt = format_of(dtype)
    raw = np.ascontiguousarray(raw)
    if raw.dtype.itemsize != fmt.itemsize:
        raise ValueError(f"{dtype} is stored in {fmt.itemsize} bytes, not in {raw.dtype}")
    bits = raw.view(fmt.dtype)
    if not fmt.is_float:
        return bits
    with np.errstate(invalid="ignore"):
        if dtype == "f64":
            return bits.view(np.float64)
        if dtype == "f32":
            return bits.view(np.float32).astype(np.float64)
        if dtype == "f16":
            return bits.view(np.float16).astype(np.float64)
        if dtype == "bf16":
            return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if fmt.packed > 1:
        bits = _unpack(fmt, bits)
    return _table(dtype)[bits]


def encode(dtype: str, values: np.ndarray) -> np.ndarray:
    """Storage array of real values, rounded to nearest even; see :func:`round_to` for overflow and NaN.

    Integer formats round to nearest even and saturate. Packed formats halve the last axis. Raises ValueError
    for an odd last axis of a packed format, a NaN in an integer format, and a value that E8M0 cannot
    represent (zero, negative).
    """
    fmt = format_of(dtype)
    if not fmt.is_float:
        return _encode_integer(fmt, np.asarray(values))
    rounded = round_to(dtype, values)
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "f64":
            return np.ascontiguousarray(rounded).view(np.uint64)
        if dtype == "f32":
            return rounded.astype(np.float32).view(np.uint32)
        if dtype == "f16":
            return rounded.astype(np.float16).view(np.uint16)
        if dtype == "bf16":
            return (rounded.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    codes = _encode_narrow(fmt, rounded)
    return _pack(fmt, codes) if fmt.packed > 1 else codes


def round_to(dtype: str, values: np.ndarray) -> np.ndarray:
    """Float64 values rounded to a float format, to nearest with ties to even, subnormals kept.

    Past the largest finite value the result is infinity, or the largest value where the format saturates; a
    NaN stays NaN, except in E2M1, which has none and gives its largest value (as ``cvt.satfinite`` does).
    E8M0 rounds to the nearest power of two. Raises ValueError for a value that is not positive in E8M0.
    """
    fmt = format_of(dtype)
    x = np.array(values, np.float64, ndmin=1)
    shape = np.shape(values)
    if dtype == "f64":
        return x.reshape(shape)
    if not fmt.signed and np.any(x <= 0):
        raise ValueError(f"{dtype} holds powers of two only, not {x[x <= 0].flat[0]}")
    finite = np.isfinite(x)
    safe = np.where(finite, x, 0.0)
    exponent = np.maximum(np.frexp(safe)[1] - 1, int(np.log2(fmt.smallest_normal)))
    quantum = exponent - fmt.mantissa
    rounded = np.ldexp(np.rint(np.ldexp(safe, -quantum)), quantum)
    if not fmt.signed:
        rounded = np.maximum(rounded, fmt.smallest_normal)
    limit = fmt.max_finite if fmt.saturates or fmt.infinity is None else np.inf
    overflow = np.abs(rounded) > fmt.max_finite
    rounded = np.where(overflow, np.copysign(limit, safe), rounded)
    not_a_number = fmt.max_finite if fmt.quiet_nan is None else np.nan
    special = np.where(np.isnan(x), not_a_number, np.copysign(limit, x))
    rounded = np.where(finite, rounded, special)
    return np.where(rounded == 0, np.copysign(0.0, x), rounded).reshape(shape)


_TABLES: dict[str, np.ndarray] = {}


def _table(dtype: str) -> np.ndarray:
    """Value of every code of a narrow format, indexed by the code."""
    if dtype not in _TABLES:
        fmt = FORMATS[dtype]
        codes = np.arange(1 << fmt.bits)
        sign = np.where((codes >> (fmt.exponent + fmt.mantissa)) & 1 & fmt.signed, -1.0, 1.0)
        exponent = (codes >> fmt.mantissa) & ((1 << fmt.exponent) - 1)
        fraction = codes & ((1 << fmt.mantissa) - 1)
        subnormal = (exponent == 0) & fmt.signed
        significand = fraction / (1 << fmt.mantissa) + ~subnormal
        table = sign * np.ldexp(significand, np.where(subnormal, 1, exponent) - fmt.bias)
        magnitude = codes & ((1 << (fmt.bits - fmt.signed)) - 1)
        special = magnitude > fmt.top
        table = np.where(special, np.where(magnitude == fmt.infinity, sign * np.inf, np.nan), table)
        _TABLES[dtype] = table
    return _TABLES[dtype]


def _encode_narrow(fmt: Format, rounded: np.ndarray) -> np.ndarray:
    """Codes of values that a format of eight bits or fewer represents exactly."""
    magnitudes = _table(fmt.name)[: fmt.top + 1]
    codes = np.searchsorted(magnitudes, np.minimum(np.abs(rounded), fmt.max_finite))
    if fmt.infinity is not None:
        codes = np.where(np.isinf(rounded), fmt.infinity, codes)
    if fmt.quiet_nan is not None:
        codes = np.where(np.isnan(rounded), fmt.quiet_nan, codes)
    sign_bit = 1 << (fmt.bits - 1) if fmt.signed else 0
    return np.where(np.signbit(rounded), codes | sign_bit, codes).astype(fmt.dtype)


def _encode_integer(fmt: Format, values: np.ndarray) -> np.ndarray:
    """Integers of an integer format; real values round to nearest even, everything saturates."""
    info = np.iinfo(fmt.dtype)
    if np.issubdtype(values.dtype, np.integer):
        return np.clip(values, info.min, info.max).astype(fmt.dtype)
    if np.isnan(values).any():
        raise ValueError(f"{fmt.name} cannot hold a NaN")
    rounded = np.rint(values)
    inside = np.clip(rounded, float(info.min), np.nextafter(float(info.max) + 1.0, 0.0)).astype(fmt.dtype)
    return np.where(rounded > info.max, info.max, inside).astype(fmt.dtype)


def _unpack(fmt: Format, bits: np.ndarray) -> np.ndarray:
    """Element codes of packed storage: ``[..., n]`` to ``[..., n * packed]``, lowest bits first."""
    parts = [(bits >> (fmt.bits * i)) & ((1 << fmt.bits) - 1) for i in range(fmt.packed)]
    return np.stack(parts, axis=-1).reshape(*bits.shape[:-1], -1)


def _pack(fmt: Format, codes: np.ndarray) -> np.ndarray:
    """Packed storage of element codes: ``[..., n * packed]`` to ``[..., n]``."""
    if codes.shape[-1] % fmt.packed:
        raise ValueError(f"{fmt.name} packs {fmt.packed} elements; the last axis has {codes.shape[-1]}")
    grouped = codes.reshape(*codes.shape[:-1], -1, fmt.packed)
    shifted = [grouped[..., i] << (fmt.bits * i) for i in range(fmt.packed)]
    return np.bitwise_or.reduce(shifted).astype(fmt.dtype)

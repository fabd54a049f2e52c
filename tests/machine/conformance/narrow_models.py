"""What conversions to and from pairs, 8-bit formats and tf32 compute, and cvt.pack.

``narrow_model`` gives, for the name of a form, a function of its operands' bits to its result's bits.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from .float_models import BF16, F16, F32, Format
from .integer_models import clamp, mask, value

Model = Callable[..., int]
TF32 = Format(19, 10, 0x3FFFF)
HALVES = {"f16": F16, "bf16": BF16}
# Digits behind the point, bias, the largest number, and what is infinite (0: nothing).
SMALL = {"e4m3": (3, 7, 0x7E, 0), "e5m2": (2, 15, 0x7B, 0x7C)}


def small_code(v: Fraction, digits: int, bias: int, largest: int) -> int:
    """The nearest number without its sign, ties to even, no further than the largest."""
    size = abs(v)
    if size == 0:
        return 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    place = max(exponent, 1 - bias)
    whole, rest = divmod(size / Fraction(2) ** (place - digits), 1)
    code = (
        int(whole)
        + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2))
        + (place - (1 - bias) << digits)
    )
    return min(code, largest)


def to_small(source: Format, t: str, relu: bool) -> Callable[[int], int]:
    digits, bias, largest, _ = SMALL[t]

    def apply(raw: int) -> int:
        if source.is_nan(raw):
            return 0x7F
        negative = bool(raw & source.sign)
        if negative and relu:
            return 0
        size = largest if source.is_infinite(raw) else small_code(source.number(raw), digits, bias, largest)
        return size | negative << 7

    return apply


def from_small(t: str, relu: bool) -> Callable[[int], int]:
    digits, bias, largest, infinite = SMALL[t]

    def apply(raw: int) -> int:
        size, negative = raw & 0x7F, raw >> 7 & 1
        if size > largest and size != infinite:
            return F16.nan
        if negative and relu:
            return 0
        if infinite and size == infinite:
            return F16.infinity | negative << 15
        exponent, rest = size >> digits, size & mask(digits)
        number = Fraction(rest | (exponent > 0) << digits) * Fraction(2) ** (max(exponent, 1) - bias - digits)
        return F16.rounded(number, "n") | negative << 15

    return apply


def to_half(f: Format, mode: str, relu: bool, finite: bool) -> Callable[[int], int]:
    """Of one f32."""

    def apply(raw: int) -> int:
        if F32.is_nan(raw):
            return f.nan
        if relu and raw & F32.sign:
            return 0
        sign = f.sign if raw & F32.sign else 0
        result = (
            f.infinity | sign if F32.is_infinite(raw) else f.rounded(F32.number(raw), mode, zero_sign=sign)
        )
        return result - 1 if finite and f.is_infinite(result) else result

    return apply


def packing(t: str) -> Model:
    width = int(t[1:])

    def apply(a: int, b: int, c: int = 0) -> int:
        upper, lower = (clamp(value(r, "s32"), t) & mask(width) for r in (a, b))
        return (c << 2 * width | upper << width | lower) & mask(32)

    return apply


def narrow_model(name: str) -> Model | None:
    op, *modifiers = name.split(".")
    if op != "cvt":
        return None
    if modifiers[0] == "pack":
        return packing(modifiers[2])
    d, a = modifiers[-2:]
    modes = set(modifiers[:-2])
    relu, finite = "relu" in modes, "satfinite" in modes
    mode = "z" if "rz" in modes else "n"
    if modes - {"rn", "rz", "relu", "satfinite"}:
        return None
    if d == "tf32":
        one = to_half(TF32, mode, relu, finite)
        return lambda x: one(x) << 13
    if d in HALVES and a == "f32" and (relu or finite):
        return to_half(HALVES[d], mode, relu, finite)
    to, source = d.removesuffix("x2"), a.removesuffix("x2")
    if to == d:
        return None
    if to in HALVES and a == "f32":
        one = to_half(HALVES[to], mode, relu, finite)
        return lambda x, y: one(x) << 16 | one(y)
    if to in SMALL and a == "f32":
        one = to_small(F32, to, relu)
        return lambda x, y: one(x) << 8 | one(y)
    if to in SMALL and source == "f16":
        one = to_small(F16, to, relu)
        return lambda x: one(x >> 16) << 8 | one(x & 0xFFFF)
    if to == "f16" and source in SMALL:
        one = from_small(source, relu)
        return lambda x: one(x >> 8) << 16 | one(x & 0xFF)
    return None

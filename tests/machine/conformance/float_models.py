"""What floating-point instructions and conversions compute, in exact fractions that are rounded once.

``float_model`` and ``conversion_model`` give, for the name of a form, a function of its operands' bits to the
bits of its result. It gives None where a NaN of f64 is involved: the recording says what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from .integer_models import bits_of, clamp, mask, pair, value

Model = Callable[..., int | None]


@dataclass(frozen=True)
class Format:
    """``width`` bits, ``digits`` of them behind the point; ``nan`` is what a result without a number is."""

    width: int
    digits: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << (self.width - self.digits - 2)) - 1

    @property
    def infinity(self) -> int:
        return mask(self.width - 1) >> self.digits << self.digits

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def one(self) -> int:
        return self.bias << self.digits

    def is_nan(self, raw: int) -> bool:
        return raw & ~self.sign > self.infinity

    def is_infinite(self, raw: int) -> bool:
        return raw & ~self.sign == self.infinity

    def flushed(self, raw: int) -> int:
        return raw if raw & self.infinity else raw & self.sign

    def number(self, raw: int) -> Fraction:
        exponent, rest = raw >> self.digits & (self.infinity >> self.digits), raw & mask(self.digits)
        scale = Fraction(2) ** (max(exponent, 1) - self.bias - self.digits)
        size = (rest | (1 << self.digits if exponent else 0)) * scale
        return -size if raw & self.sign else size

    def rounded(self, v: Fraction, mode: str, zero_sign: int = 0, tiny: bool = False) -> int:
        """Nearest to even (n), to zero (z), down (m) or up (p).

        ``tiny``: what lies below the normals is zero; looked at before rounding in 16 bits, behind it in 32.
        """
        if v == 0:
            return self.sign if zero_sign else 0
        sign = self.sign if v < 0 else 0
        size = abs(v)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > size
        lowest = 1 - self.bias
        away = {"z": False, "m": bool(sign), "p": not sign}.get(mode)

        def steps(unit: Fraction) -> int:
            whole, rest = divmod(size, unit)
            up = away if away is not None else rest * 2 > unit or (rest * 2 == unit and whole & 1)
            return int(whole) + bool(rest and up)

        if tiny and exponent < lowest:
            normal = steps(Fraction(2) ** (exponent - self.digits)) >> self.digits + 1
            if self.width == 16 or exponent + normal < lowest:
                return sign
        whole = steps(Fraction(2) ** (max(exponent, lowest) - self.digits))
        raw = whole + (max(exponent, lowest) - lowest << self.digits)
        if raw >= self.infinity:
            raw = self.infinity if away is not False else self.infinity - 1
        return sign | raw


F16, BF16 = Format(16, 10, 0x7FFF), Format(16, 7, 0x7FFF)
F32, F64 = Format(32, 23, 0x7FFFFFFF), Format(64, 52, 0xFFF8000000000000)
OUT_OF_BOUNDS = 0x7FF7  # the factor that fma.oob takes for an element out of bounds, in both formats
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def root(v: Fraction, f: Format, mode: str) -> int:
    """The square root of a positive number: a few digits more than needed, the rest as one sticky bit."""
    shift = 2 * (f.digits + 40 + abs(v.numerator.bit_length() - v.denominator.bit_length()))
    scaled = (v.numerator << shift) // v.denominator
    low = isqrt(scaled)
    exact = low * low == scaled and (v.numerator << shift) % v.denominator == 0
    return f.rounded(Fraction(2 * low + (not exact), 2 << (shift // 2)), mode)


def special(op: str, f: Format, raw: tuple[int, ...], mode: str) -> int | None:
    """Results that are no rounding of a number; None where there is a number to round."""
    if any(map(f.is_nan, raw)):
        return f.nan
    a = raw[0]
    b = raw[1] if len(raw) > 1 else 0
    zero_a, zero_b = a & ~f.sign == 0, b & ~f.sign == 0
    cross = (a ^ b) & f.sign
    if op in ("add", "sub"):
        b ^= f.sign if op == "sub" else 0
        if f.is_infinite(a):
            return f.nan if f.is_infinite(b) and a != b else a
        if f.is_infinite(b):
            return b
        if f.number(a) + f.number(b) == 0:
            return a if a == b else f.sign if mode == "m" else 0
    if op == "mul":
        if f.is_infinite(a) or f.is_infinite(b):
            return f.nan if zero_a or zero_b else f.infinity | cross
        if zero_a or zero_b:
            return cross
    if op == "div":
        if f.is_infinite(a):
            return f.nan if f.is_infinite(b) else f.infinity | cross
        if f.is_infinite(b):
            return cross
        if zero_b:
            return f.nan if zero_a else f.infinity | cross
        if zero_a:
            return cross
    if op == "rcp" and (f.is_infinite(a) or zero_a):
        return (a & f.sign) | (f.infinity if zero_a else 0)
    if op == "sqrt":
        if zero_a or a == f.infinity:
            return a
        if a & f.sign:
            return f.nan
    if op == "fma":
        c = raw[2]
        if f.is_infinite(a) or f.is_infinite(b):
            if zero_a or zero_b or (f.is_infinite(c) and (c & f.sign) != cross):
                return f.nan
            return f.infinity | cross
        if f.is_infinite(c):
            return c
        if f.number(a) * f.number(b) + f.number(c) == 0:
            product_zero = zero_a or zero_b
            if product_zero and c & ~f.sign == 0 and (c & f.sign) == cross:
                return c
            return f.sign if mode == "m" else 0
    return None


def computed(op: str, f: Format, raw: tuple[int, ...], mode: str, tiny: bool) -> int:
    n = [f.number(r) for r in raw]
    if op == "sqrt":
        return root(n[0], f, mode)
    exact = {
        "add": lambda: n[0] + n[1],
        "sub": lambda: n[0] - n[1],
        "mul": lambda: n[0] * n[1],
        "div": lambda: n[0] / n[1],
        "rcp": lambda: 1 / n[0],
        "fma": lambda: n[0] * n[1] + n[2],
    }[op]()
    return f.rounded(exact, mode, tiny=tiny)


def float_model(name: str) -> Model | None:
    """Of add, sub, mul, fma, div, rcp and sqrt with a rounding mode; None for other forms."""
    op, *modifiers, t = name.split(".")
    packed = t.endswith("x2")
    f = FORMATS.get(t.removesuffix("x2"))
    if f is None or op not in ("add", "sub", "mul", "fma", "div", "rcp", "sqrt"):
        return None
    left = set(modifiers) - {"rn", "rz", "rm", "rp", "ftz", "sat", "relu", "oob"}
    if left:
        return None
    mode = next((m[1] for m in modifiers if m in ("rn", "rz", "rm", "rp")), "n")
    flush = "ftz" in modifiers

    def apply(*raw: int) -> int | None:
        if "oob" in modifiers and OUT_OF_BOUNDS in (r & 0x7FFF for r in raw[:2]):
            return 0
        raw = tuple(f.flushed(r) if flush else r for r in raw)
        result = special(op, f, raw, mode)
        if result is None:
            result = computed(op, f, raw, mode, flush)
        if f is F64 and f.is_nan(result):
            return None
        if "sat" in modifiers:
            result = 0 if f.is_nan(result) or result & f.sign else min(result, f.one)
        if "relu" in modifiers and not f.is_nan(result) and result & f.sign:
            result = 0
        return result

    if not packed:
        return apply
    return pair(apply, 16)  # type: ignore[arg-type]  # no packed type is f64, the only one with a None


# ---- conversions ----------------------------------------------------------------------------------


def to_integer(v: Fraction, mode: str) -> int:
    low = v.numerator // v.denominator
    rest = v - low
    if mode == "z":
        return low if v >= 0 or rest == 0 else low + 1
    if mode == "m" or rest == 0:
        return low
    if mode == "p":
        return low + 1
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low & 1))


def register(v: int, t: str) -> int:
    """An integer in a register: 8-bit values lie in 16 bits, extended by their type."""
    return v & mask(max(bits_of(t), 16))


def conversion_model(name: str) -> Model | None:
    """cvt between integers, f16, bf16, f32 and f64; None for packed and narrower formats."""
    op, *modifiers, d, a = name.split(".")
    kinds = {"u", "s"}
    to, source = FORMATS.get(d), FORMATS.get(a)
    integers = [t for t in (d, a) if t[0] in kinds and t[1:].isdigit()]
    if op != "cvt" or len(integers) + (to is not None) + (source is not None) != 2:
        return None
    modes = ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi")
    if set(modifiers) - {*modes, "ftz", "sat"}:
        return None
    mode = next((m[1] for m in modifiers if m in modes), "n")
    integral = any(m.endswith("i") for m in modifiers if m in modes)
    flush, sat = "ftz" in modifiers, "sat" in modifiers

    def from_float(raw: int) -> int | None:
        f = source
        assert f is not None
        if flush and f is F32 and to is not F16:
            raw = f.flushed(raw)
        if to is None:
            if f.is_nan(raw):
                wide = bits_of(d) == 64 or f is F64
                return register(value(1 << (bits_of(d) - 1), d), d) if wide else 0
            if f.is_infinite(raw):
                return register(clamp(-(1 << 200) if raw & f.sign else 1 << 200, d), d)
            return register(clamp(to_integer(f.number(raw), mode), d), d)
        if f.is_nan(raw) and F64 in (f, to):
            return None
        if f.is_nan(raw):
            kept = f is BF16 and to is F32 and not flush  # no more than bits moved
            return 0 if sat else raw << 16 if kept else to.nan
        if f.is_infinite(raw):
            result = to.infinity | (to.sign if raw & f.sign else 0)
        else:
            v = f.number(raw)
            if integral:
                v = Fraction(to_integer(v, mode))
            result = to.rounded(v, mode, zero_sign=raw & f.sign)
        if sat:
            result = 0 if result & to.sign else min(result, to.one)
        return to.flushed(result) if flush and to is F32 else result

    def from_integer(raw: int) -> int:
        v = value(raw, a)
        if to is None:
            return register(clamp(v, d) if sat else value(v, d), d)
        result = to.rounded(Fraction(v), mode)
        return (0 if result & to.sign else min(result, to.one)) if sat else result

    if to is source and to is not None and not (integral or sat or flush):
        return None  # a copy of bits
    return from_integer if source is None else from_float

"""What comparisons, selections, minima and signs compute: an opinion independent of the machine's C++.

``compare_model`` and ``choice_model`` give, for the name of a form, a function of its operands' bits to its
result's bits; None where a NaN of f64 is involved.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from .float_models import F64, FORMATS, Format
from .integer_models import bits_of, mask, value

Model = Callable[..., int | None]
LESS, EQUAL, GREATER, UNORDERED = range(4)
HOLDS = {
    "eq": {EQUAL},
    "ne": {LESS, GREATER},
    "lt": {LESS},
    "le": {LESS, EQUAL},
    "gt": {GREATER},
    "ge": {GREATER, EQUAL},
    "num": {LESS, EQUAL, GREATER},
    "nan": {UNORDERED},
}
HOLDS |= {name + "u": ways | {UNORDERED} for name, ways in HOLDS.items() if name not in ("num", "nan")}
HOLDS |= {"lo": {LESS}, "ls": {LESS, EQUAL}, "hi": {GREATER}, "hs": {GREATER, EQUAL}}
ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def number(f: Format, raw: int) -> Fraction | float:
    if f.is_infinite(raw):
        return float("-inf") if raw & f.sign else float("inf")
    return f.number(raw)


def relation(t: str, flush: bool) -> Callable[[int, int], int]:
    """How two operands of a type compare."""
    f = FORMATS.get(t)

    def of(a: int, b: int) -> int:
        x: Fraction | float
        y: Fraction | float
        if f is None:
            x, y = (value(r, t if t[0] in "us" else f"u{t[1:]}") for r in (a, b))
        else:
            a, b = (f.flushed(r) if flush else r for r in (a, b))
            if f.is_nan(a) or f.is_nan(b):
                return UNORDERED
            x, y = number(f, a), number(f, b)
        return LESS if x < y else GREATER if x > y else EQUAL

    return of


def joined(op: str, result: bool, with_: bool) -> bool:
    return {"and": result and with_, "or": result or with_, "xor": result != with_, "": result}[op]


def compare_model(name: str) -> Model | None:
    """setp and set, of one value or a pair; a name that ends in ``:pair`` has two results, bits 0 and 1."""
    base, _, two = name.partition(":")
    op, *words = base.split(".")
    if op not in ("setp", "set"):
        return None
    order, *modifiers, t = words
    boolean = next((m for m in modifiers if m in ("and", "or", "xor")), "")
    packed = t.endswith("x2")
    one = t.removesuffix("x2")
    of = relation(one, "ftz" in modifiers)

    def truth(a: int, b: int, c: int, negated: bool = False) -> bool:
        result = of(a, b) in HOLDS[order]
        return joined(boolean, result != negated, bool(c & 1))

    if op == "setp" and two:
        # The operand of a boolean operation is negated in these forms.
        halves = ((0, False), (16, False)) if packed else ((0, False), (0, True))
        width = mask(bits_of(one)) if one[0] in "us" else FORMATS[one].sign * 2 - 1
        return lambda a, b, c=0: sum(
            truth(a >> at & width, b >> at & width, ~c, negated) << k
            for k, (at, negated) in enumerate(halves)
        )
    if op == "setp":
        return lambda a, b, c=0: int(truth(a, b, c))
    d = modifiers[-1]
    half = d.removesuffix("x2")
    true = ONE.get(half) or mask(16 if packed else bits_of(d))

    def apply(a: int, b: int, c: int = 0) -> int:
        if not packed:
            return true if truth(a, b, c) else 0
        low, high = (truth(a >> at & 0xFFFF, b >> at & 0xFFFF, c) for at in (0, 16))
        return (true if low else 0) | (true if high else 0) << 16

    return apply


def least(f: Format, maximum: bool, modifiers: list[str]) -> Model:
    """min and max: -0 is below +0, a NaN gives way to a number, or (.NaN) does not."""

    def apply(a: int, b: int) -> int | None:
        a, b = (f.flushed(r) if "ftz" in modifiers else r for r in (a, b))
        if f is F64 and (f.is_nan(a) or f.is_nan(b)):
            return None
        sign = (a ^ b) & f.sign if "xorsign" in modifiers else 0
        if "xorsign" in modifiers:
            a, b = a & ~f.sign, b & ~f.sign
        numbers = [r for r in (a, b) if not f.is_nan(r)]
        if not numbers or ("NaN" in modifiers and len(numbers) < 2):
            return f.nan
        key = lambda r: (number(f, r), 0 if r & f.sign else 1)  # noqa: E731
        return (max if maximum else min)(numbers, key=key) | sign

    return apply


def signs(op: str, f: Format, flush: bool) -> Model:
    """abs and neg."""

    def apply(a: int) -> int | None:
        a = f.flushed(a) if flush else a
        if f.is_nan(a):
            return None if f is F64 else f.nan
        return a & ~f.sign if op == "abs" else a ^ f.sign

    return apply


def tested(what: str, f: Format) -> Model:
    def apply(a: int) -> int:
        size = a & ~f.sign
        small = 0 < size <= mask(f.digits)
        return int(
            {
                "finite": size < f.infinity,
                "infinite": size == f.infinity,
                "number": size <= f.infinity,
                "notanumber": size > f.infinity,
                "normal": size < f.infinity and not small,
                "subnormal": small,
            }[what]
        )

    return apply


def halves(one: Model) -> Model:
    """The same on both 16-bit halves of a register; None where one of them has no answer."""

    def apply(*raw: int) -> int | None:
        low, high = one(*(r & mask(16) for r in raw)), one(*(r >> 16 for r in raw))
        return None if low is None or high is None else low | high << 16

    return apply


def choice_model(name: str) -> Model | None:
    """min, max, abs, neg, copysign and testp on floating-point types; selp and slct on all."""
    op, *modifiers = name.split(".")
    if op == "selp":
        return lambda a, b, c: a if c & 1 else b
    if op == "slct":
        by, flush = modifiers[-1], "ftz" in modifiers
        of = relation(by, flush)
        return lambda a, b, c: a if of(c, 0) in (EQUAL, GREATER) else b
    t = modifiers[-1] if modifiers else ""
    f = FORMATS.get(t.removesuffix("x2"))
    if f is None:
        return None
    if op in ("min", "max"):
        one = least(f, op == "max", modifiers)
    elif op in ("abs", "neg"):
        one = signs(op, f, "ftz" in modifiers)
    elif op == "copysign":
        one = lambda a, b: (b & ~f.sign) | (a & f.sign)  # noqa: E731
    elif op == "testp":
        one = tested(modifiers[0], f)
    else:
        return None
    return halves(one) if t.endswith("x2") else one

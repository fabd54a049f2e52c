"""What video instructions compute, in Python's integers, from the pseudo-code of the PTX manual.

``video_model`` gives, for the name of a form, a function of its operands' bits to its result's bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .integer_models import clamp, mask, value

Model = Callable[..., int]
_NAME = re.compile(
    r"(?P<op>[a-z0-9.]+)d(?P<d>\.[bh]\d+)?_(?P<na>-?)a(?P<a>\.[bh]\d+)?_(?P<nb>-?)b(?P<b>\.[bh]\d+)?(_(?P<nc>-?)c)?"
)
ORDERS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def combine(op: str, modifiers: list[str]) -> Callable[[int, int], int]:
    """The operation on two numbers."""
    order = next((m for m in modifiers if m in ORDERS), "eq")

    def amount(b: int) -> int:
        return b & 31 if "wrap" in modifiers else min(b & mask(32), 32)

    operations: dict[str, Callable[[int, int], int]] = {
        "vadd": lambda a, b: a + b,
        "vsub": lambda a, b: a - b,
        "vabsdiff": lambda a, b: abs(a - b),
        "vmin": min,
        "vmax": max,
        "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
        "vshl": lambda a, b: a << amount(b),
        "vshr": lambda a, b: a >> amount(b),
        "vset": lambda a, b: int(ORDERS[order](a, b)),
    }
    return operations[op]


def part(selector: str | None) -> tuple[int, int]:
    """First bit and width of what .b2 or .h1 names; the whole register without a name."""
    if not selector:
        return 0, 32
    width = 8 if selector[1] == "b" else 16
    return int(selector[2]) * width, width


def scalar(op: str, modifiers: list[str], types: list[str], names: dict[str, str | None]) -> Model:
    to, a_type, b_type = types
    (at, width), (a_at, a_width), (b_at, b_width) = (part(names[k]) for k in "dab")
    f = combine(op, modifiers)
    second = next((m for m in modifiers if m in ("add", "min", "max")), "")

    def apply(a: int, b: int, c: int = 0) -> int:
        result = f(value(a >> a_at, f"{a_type[0]}{a_width}"), value(b >> b_at, f"{b_type[0]}{b_width}"))
        if "sat" in modifiers:
            result = clamp(result, f"{to[0]}{width}")
        if names["d"]:
            return (c & ~(mask(width) << at) | (result & mask(width)) << at) & mask(32)
        if second == "add":
            return (result + c) & mask(32)
        if second:
            return {"min": min, "max": max}[second](value(result, to), value(c, to)) & mask(32)
        return result & mask(32)

    return apply


def chosen(selector: str | None, count: int, first: int) -> list[int]:
    if not selector:
        return list(range(first, first + count))
    return [int(digit) for digit in reversed(selector[2:])]


def several(
    op: str, count: int, modifiers: list[str], types: list[str], names: dict[str, str | None]
) -> Model:
    to, a_type, b_type = types
    width = 32 // count
    f = combine(op, modifiers)
    from_a, from_b = chosen(names["a"], count, 0), chosen(names["b"], count, count)
    written = {int(digit) for digit in (names["d"] or "")[2:]} or set(range(count))

    def apply(a: int, b: int, c: int) -> int:
        both = b << 32 | a
        total, merged = c, 0
        for k in range(count):
            result = f(
                value(both >> (width * from_a[k]), f"{a_type[0]}{width}"),
                value(both >> (width * from_b[k]), f"{b_type[0]}{width}"),
            )
            if "sat" in modifiers:
                result = clamp(result, f"{to[0]}{width}")
            total += result if k in written else 0
            merged |= (result if k in written else c >> (width * k)) % (1 << width) << (width * k)
        return (total if "add" in modifiers else merged) & mask(32)

    return apply


def multiplied(modifiers: list[str], types: list[str], names: dict[str, str | None]) -> Model:
    _, a_type, b_type = types
    (a_at, a_width), (b_at, b_width) = (part(names[k]) for k in "ab")
    minus = bool(names["na"]) != bool(names["nb"])
    signed = "s" in a_type[0] + b_type[0] or minus or bool(names["nc"])
    shift = 7 if "shr7" in modifiers else 15 if "shr15" in modifiers else 0

    def apply(a: int, b: int, c: int) -> int:
        product = value(a >> a_at, f"{a_type[0]}{a_width}") * value(b >> b_at, f"{b_type[0]}{b_width}")
        addend = value(c, "s32" if signed else "u32")
        total = (-product if minus else product) + (-addend if names["nc"] else addend) + ("po" in modifiers)
        total >>= shift
        return (clamp(total, "s32" if signed else "u32") if "sat" in modifiers else total) & mask(32)

    return apply


def video_model(name: str) -> Model | None:
    found = _NAME.fullmatch(name)
    if found is None or not name.startswith("v"):
        return None
    names = found.groupdict()
    op, *modifiers = names["op"].split(".")
    types = [m for m in modifiers if m in ("u32", "s32")]
    if op.startswith("vset"):
        types = ["u32", *types]
    if op == "vmad":
        return multiplied(modifiers, types, names)
    if op[-1] in "24":
        return several(op[:-1], int(op[-1]), modifiers, types, names)
    return scalar(op, modifiers, types, names)

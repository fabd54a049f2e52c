"""What integer instructions compute, in Python's own integers: an opinion independent of the machine's C++.

``integer_model`` gives, for the name of a form, a function of its operands' bits to its result's bits.
"""

from __future__ import annotations

from collections.abc import Callable

Model = Callable[..., int]


def bits_of(t: str) -> int:
    return int(t[1:].split("x")[0])


def mask(width: int) -> int:
    return (1 << width) - 1


def value(raw: int, t: str) -> int:
    """The number that a type sees in a register."""
    width = bits_of(t)
    raw &= mask(width)
    return raw - (1 << width) if t[0] == "s" and raw >> (width - 1) else raw


def clamp(v: int, t: str) -> int:
    width = bits_of(t)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if t[0] == "s" else (0, mask(width))
    return max(low, min(high, v))


def quotient(a: int, b: int) -> int:
    """Towards zero, as C divides."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def byte(raw: int, k: int, signed: bool) -> int:
    return value(raw >> (8 * k), "s8" if signed else "u8")


def arithmetic(op: str, t: str) -> Model | None:
    """Of one type ``t``; sums and products in full, cut to the result."""
    width = bits_of(t)
    wide: dict[str, Callable[..., int]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul.lo": lambda a, b: a * b,
        "mul.hi": lambda a, b: (a * b) >> width,
        "mul.wide": lambda a, b: a * b,
        "mad.lo": lambda a, b, c: a * b + c,
        "mad.hi": lambda a, b, c: ((a * b) >> width) + c,
        "mad.wide": lambda a, b, c: a * b + c,
        "sad": lambda a, b, c: c + abs(a - b),
        "min": min,
        "max": max,
        "abs": abs,
        "neg": lambda a: -a,
        "div": lambda a, b: quotient(a, b) if b else -1,
        "rem": lambda a, b: a - b * quotient(a, b) if b else -1,
        "add.sat": lambda a, b: clamp(a + b, t),
        "sub.sat": lambda a, b: clamp(a - b, t),
        "mad.hi.sat": lambda a, b, c: clamp(((a * b) >> width) + c, t),
        "min.relu": lambda a, b: max(min(a, b), 0),
        "max.relu": lambda a, b: max(a, b, 0),
    }
    f = wide.get(op)
    if f is None:
        return None
    size = 2 * width if op.endswith("wide") else width

    def apply(*raw: int) -> int:
        types = [t] * len(raw)
        if op == "mad.wide":
            types[2] = t[0] + str(2 * width)
        return f(*(value(r, u) for r, u in zip(raw, types, strict=True))) & mask(size)

    return apply


def short(op: str, t: str) -> Model | None:
    """mul24 and mad24: of the lower 24 bits of both factors, the lower or upper 32 of the 48."""
    if not op.startswith(("mul24", "mad24")):
        return None
    _, part, *sat = op.split(".")

    def apply(a: int, b: int, c: int = 0) -> int:
        x, y = (value(r, t[0] + "24") for r in (a, b))
        product = value(x * y >> 16 if part == "hi" else x * y, t)
        total = product + value(c, t)
        return (clamp(total, t) if sat else total) & mask(32)

    return apply


def dot(op: str, a_type: str, b_type: str) -> Model | None:
    """dp4a, and dp2a with the lower or upper two bytes of b."""
    if not op.startswith(("dp4a", "dp2a")):
        return None

    def apply(a: int, b: int, c: int) -> int:
        if op == "dp4a":
            total = sum(byte(a, k, a_type == "s32") * byte(b, k, b_type == "s32") for k in range(4))
        else:
            half = "s16" if a_type == "s32" else "u16"
            first = 2 if op.endswith("hi") else 0
            total = sum(value(a >> 16 * k, half) * byte(b, first + k, b_type == "s32") for k in range(2))
        return (total + c) & mask(32)

    return apply


def step(op: str, t: str, carry: int, a: int, b: int, c: int) -> tuple[int, int]:
    """One link of a carry chain: result and carry. A subtraction adds the complement."""
    width = bits_of(t)
    takes = op.startswith(("addc", "subc", "madc"))
    if op.startswith("add"):
        total = a + b + (carry if takes else 0)
    elif op.startswith("sub"):
        total = a + (b ^ mask(width)) + (carry if takes else 1)
    else:
        product = value(a, t) * value(b, t)
        part = product >> width if ".hi" in op else product
        total = (part & mask(width)) + c + (carry if takes else 0)
    return total & mask(width), total >> width & 1


def chain(name: str) -> Model | None:
    """``first+middle.cc+last.type``, as carry_forms.py writes them."""
    ops, t = name.rsplit(".", 1)
    links = ops.split("+")
    if len(links) == 1:
        return None

    def apply(a: int, b: int, c: int) -> int:
        low, carry = step(links[0], t, 0, a, b, c)
        if len(links) == 2:
            return step(links[1], t, carry, b, c, low)[0]
        low, carry = step(links[1], t, carry, b, c, a)
        return step(links[2], t, carry, low, c, 0)[0]

    return apply


def pair(f: Model, width: int) -> Model:
    return lambda *raw: f(*(r & mask(width) for r in raw)) | f(*(r >> width for r in raw)) << width


def integer_model(name: str) -> Model | None:
    """None: the form is no plain integer arithmetic."""
    if "+" in name:
        return chain(name)
    op, t = name.rsplit(".", 1)
    if t in ("u16x2", "s16x2"):
        f = arithmetic(op, t[:-2])
        return f and pair(f, 16)
    if op.startswith("dp"):
        kind, other = op.rsplit(".", 1)
        return dot(kind, other, t)
    if t[0] not in "us" or not t[1:].isdigit():
        return None
    return short(op, t) or arithmetic(op, t)


# ---- bits -----------------------------------------------------------------------------------------


def prmt(mode: str) -> Model:
    """Bytes of a and b by the nibbles of c, or by one of the modes."""

    def apply(a: int, b: int, c: int) -> int:
        source = a | b << 32
        k = c & 3
        modes = {
            ".f4e": [k, k + 1, k + 2, k + 3],
            ".b4e": [k, (k - 1) & 7, (k - 2) & 7, (k - 3) & 7],
            ".rc8": [k] * 4,
            ".ecl": [max(k, j) for j in range(4)],
            ".ecr": [min(k, j) for j in range(4)],
            ".rc16": [2 * (k & 1), 2 * (k & 1) + 1] * 2,
        }
        nibbles = modes.get(mode, [c >> 4 * j & 15 for j in range(4)])
        result = 0
        for j, n in enumerate(nibbles):
            picked = source >> 8 * (n & 7) & 255
            if not mode and n & 8:
                picked = 255 if picked & 128 else 0
            result |= picked << 8 * j
        return result

    return apply


def field_of(raw: int, width: int) -> int:
    """A position or length: its lower byte for 32 bits, any number for 64 (as measured)."""
    return raw & 255 if width == 32 else min(raw, 255)


def bfe(t: str) -> Model:
    width = bits_of(t)

    def apply(a: int, position: int, length: int) -> int:
        position, length = field_of(position, width), field_of(length, width)
        top = min(position + length - 1, width - 1)
        sign = a >> top & 1 if t[0] == "s" and length else 0
        taken = sum((a >> (position + k) & 1 if position + k < width else sign) << k for k in range(length))
        fill = mask(width) & ~mask(length) if sign and length < width else 0
        return (taken & mask(width)) | fill

    return apply


def bfi(width: int, a: int, b: int, position: int, length: int) -> int:
    position, length = field_of(position, width), field_of(length, width)
    field = mask(width) & mask(length) << position if position < width else 0
    return (b & ~field) | (a << position & field)


def bfind(t: str, shift: bool) -> Model:
    width = bits_of(t)

    def apply(a: int) -> int:
        if t[0] == "s" and a >> (width - 1):
            a ^= mask(width)
        top = a.bit_length() - 1
        return 0xFFFFFFFF if top < 0 else width - 1 - top if shift else top

    return apply


def shift(op: str, t: str) -> Model:
    width = bits_of(t)

    def apply(a: int, by: int) -> int:
        by = min(by, width)
        return (a << by if op == "shl" else value(a, t) >> by) & mask(width)

    return apply


def funnel(left: bool, wrap: bool) -> Model:
    def apply(a: int, b: int, c: int) -> int:
        by = c & 31 if wrap else min(c, 32)
        both = b << 32 | a
        return (both << by >> 32 if left else both >> by) & mask(32)

    return apply


def bit_model(name: str) -> Model | None:
    """None: the form is not one of those modelled here."""
    parts = name.split(".")
    op, t = parts[0], parts[-1]
    if op in ("and", "or", "xor"):
        return {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}[op]
    if op == "not":
        return lambda a: a ^ mask(bits_of(t))
    if op == "cnot":
        return lambda a: int(a == 0)
    if op in ("shl", "shr"):
        return shift(op, t)
    if op == "shf":
        return funnel(parts[1] == "l", parts[2] == "wrap")
    if op == "lop3" and ":0x" in name:
        table = int(name.split(":")[1], 16)
        return lambda a, b, c: sum(
            (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | c >> k & 1) & 1) << k for k in range(32)
        )
    if op == "prmt":
        return prmt(name.removeprefix("prmt.b32"))
    if op == "bfe":
        return bfe(t)
    if op == "bfind":
        return bfind(t, "shiftamt" in name)
    if op == "bfi":
        width, length = bits_of(t.split(":")[0]), t.split(":")[1]
        if length == "registers":
            return lambda a, b, c: bfi(width, a, b, c & 511, c >> 9 & 511)
        return lambda a, b, c: bfi(width, a, b, c, int(length))
    if op == "brev":
        return lambda a: int(f"{a:0{bits_of(t)}b}"[::-1], 2)
    if op == "clz":
        return lambda a: bits_of(t) - a.bit_length()
    if op == "popc":
        return int.bit_count
    return None

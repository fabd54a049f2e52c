"""Comparisons of pairs as values and with a boolean operand, and fma that ignores what is out of bounds."""

from collections.abc import Iterator

from .compare_forms import ORDERS, UNORDERED, flushes, pair
from .forms import Form, binary, ternary

PAIRS = ("f16x2", "bf16x2")


def set_forms() -> Iterator[Form]:
    for t in PAIRS:
        for c in (*ORDERS, *UNORDERED):
            for ftz in flushes(t):
                yield binary(f"set.{c}{ftz}.{t}.{t}", t, t, t, count=256)
                yield binary(f"set.{c}{ftz}.u32.{t}", "u32", t, t, count=256)
        yield binary(f"set.lt.s32.{t}", "s32", t, t, count=256)
        for op in ("and", "or", "xor"):
            yield ternary(f"set.ge.{op}.{t}.{t}", t, t, t, "pred", count=256)
            yield ternary(f"set.neu.{op}.u32.{t}", "u32", t, t, "pred", count=256)
            yield pair(f"setp.gtu.{op}", t, ", !{c}")
    for t in ("f16", "bf16"):
        for op in ("and", "or", "xor"):
            yield ternary(f"set.lt.{op}.{t}.{t}", t, t, t, "pred", count=256)
        for c in ("eq", "ltu", "nan"):
            for d in ("u16", "s16", "s32", t):
                if f"set.{c}.{d}.{t}" not in ("set.ne.s32.f16", "set.lt.s32.f16"):
                    yield binary(f"set.{c}.{d}.{t}", d, t, t, count=256)


def bounded_forms() -> Iterator[Form]:
    """fma.oob: an operand with the pattern of a value out of bounds makes the product zero."""
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        for relu in ("", ".relu"):
            yield ternary(f"fma.rn.oob{relu}.{t}", t, t, t, t, count=1024)
    for t, first, digits in (("f16", 0x7C00, 10), ("bf16", 0x7F80, 7)):
        for place in range(3):
            operands = ["{a}", "{b}"]
            operands.insert(place, "x")
            yield Form(
                f"{{{{ .reg .b16 x; .reg .u32 u, v; and.b32 u, %t0, {(1 << digits) - 1}; "
                f"shr.u32 v, %t0, {digits}; and.b32 v, v, 1; shl.b32 v, v, 15; or.b32 u, u, v; "
                f"or.b32 u, u, {first}; cvt.u16.u32 x, u; "
                f"fma.rn.oob.{t} {{d}}, {', '.join(operands)}; }}}}",
                t,
                (t, t),
                count=2 << digits,
                name=f"fma.rn.oob.{t}:nan{place}",
            )


def pair_forms() -> Iterator[Form]:
    yield from set_forms()
    yield from bounded_forms()

"""Comparisons and choices: setp, set, selp, slct, over every type. Standard library only."""

from collections.abc import Iterator

from .forms import INTS, Form, binary, ternary

ORDERS = ("eq", "ne", "lt", "le", "gt", "ge")
UNORDERED = (*(o + "u" for o in ORDERS), "num", "nan")
UNSIGNED = ("lo", "ls", "hi", "hs")
BITS = ("b16", "b32", "b64")
FLOATS = ("f16", "bf16", "f32", "f64")


def orders_of(t: str) -> tuple[str, ...]:
    """Every comparison that the type has."""
    if t in BITS:
        return ("eq", "ne")
    if t.startswith(("f", "bf")):
        return (*ORDERS, *UNORDERED)
    return (*ORDERS, *(UNSIGNED if t.startswith("u") else ()))


def flushes(t: str) -> tuple[str, ...]:
    return ("", ".ftz") if t.split("x")[0] in ("f16", "f32") else ("",)


def pair(op: str, t: str, extra: str = "") -> Form:
    """A comparison with two results: bit 0 and bit 1 of the answer."""
    return Form(
        f"{{{{ .reg .pred p, q; {op}.{t} p|q, {{a}}, {{b}}{extra}; "
        "selp.u32 {d}, 1, 0, p; @q add.u32 {d}, {d}, 2; }}",
        "u32",
        (t, t, "pred") if extra else (t, t),
        count=256,
        name=f"{op}.{t}:pair",
    )


def compare_forms() -> Iterator[Form]:
    for t in (*INTS, *BITS, *FLOATS):
        for c in orders_of(t):
            for ftz in flushes(t):
                yield binary(f"setp.{c}{ftz}.{t}", "pred", t, t, count=1024 if t in FLOATS else 256)
                yield binary(f"set.{c}{ftz}.u32.{t}", "u32", t, t, count=128)
        for d in ("s32", "f32", "f16", "bf16"):
            # 16-bit results are not made of every type
            if not (d == "f16" and t == "bf16") and not (d in ("f32", "bf16") and t in ("f16", "bf16")):
                for c in ("ne", "lt") if t not in BITS else ("ne",):
                    yield binary(f"set.{c}.{d}.{t}", d, t, t, count=128)
    for op in ("and", "or", "xor"):
        for t in ("u16", "s32", "u64", "f16", "f32", "f64"):
            yield ternary(f"setp.gt.{op}.{t}", "pred", t, t, "pred", count=256)
            yield ternary(f"set.lt.{op}.u32.{t}", "u32", t, t, "pred", count=128)
        yield pair(f"setp.ltu.{op}.ftz", "f32", ", !{c}")
    for t in ("f16x2", "bf16x2"):
        for c in (*ORDERS, *UNORDERED):
            for ftz in flushes(t):
                yield pair(f"setp.{c}{ftz}", t)
    for t in (*INTS, *BITS, "f32", "f64"):
        yield ternary(f"selp.{t}", t, t, t, "pred", count=256)
        yield ternary(f"slct.{t}.s32", t, t, t, "s32", count=256)
        for ftz in ("", ".ftz"):
            yield ternary(f"slct{ftz}.{t}.f32", t, t, t, "f32", count=256)

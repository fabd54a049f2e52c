"""Instruction forms: what is executed, on which operands, how close the answers must be.

A form is a kernel of one instruction. Each thread loads its operands, executes it and stores the result.
Carry chains are in carry_forms.py, comparisons in compare_forms.py. Standard library only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

WIDTH = {"8": 2, "16": 2, "32": 4, "64": 8}


def width_of(type_name: str) -> int:
    """Bytes of the register that holds a type (8-bit values travel in 16-bit registers)."""
    if type_name == "pred":
        return 4
    if type_name.endswith("x2"):
        return {"f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4}.get(type_name, 2)
    return WIDTH["".join(c for c in type_name.replace("tf32", "b32").replace("bf16", "b16") if c.isdigit())]


@dataclass(frozen=True)
class Form:
    """One instruction: ``text`` with {d}, {a}, {b}, {c} for registers; ``d``, ``operands`` are their types.

    ``tolerance`` is None for bit equality, else (ulps of f32, absolute error): either is enough.
    ``hardware`` is False for what sm_90 lacks.
    """

    text: str
    d: str
    operands: tuple[str, ...]
    count: int = 1024
    tolerance: tuple[float, float] | None = None
    hardware: bool = True
    results: int = 1
    block: int = 128
    name: str = field(default="")

    @property
    def key(self) -> str:
        return self.name or self.text.split(" ")[0]


def unary(op: str, d: str, a: str, **more: object) -> Form:
    return Form(f"{op} {{d}}, {{a}};", d, (a,), **more)  # type: ignore[arg-type]


def binary(op: str, d: str, a: str, b: str, **more: object) -> Form:
    return Form(f"{op} {{d}}, {{a}}, {{b}};", d, (a, b), **more)  # type: ignore[arg-type]


def ternary(op: str, d: str, a: str, b: str, c: str, **more: object) -> Form:
    return Form(f"{op} {{d}}, {{a}}, {{b}}, {{c}};", d, (a, b, c), **more)  # type: ignore[arg-type]


INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
ROUNDINGS = ("rn", "rz", "rm", "rp")


def integer_forms() -> Iterator[Form]:
    for t in INTS:
        for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
            yield binary(f"{op}.{t}", t, t, t)
        for op in ("mad.lo", "mad.hi", "sad"):
            yield ternary(f"{op}.{t}", t, t, t, t)
        yield binary(f"div.{t}", t, t, t)
        yield binary(f"rem.{t}", t, t, t)
        if t in WIDE:
            yield binary(f"mul.wide.{t}", WIDE[t], t, t)
            yield ternary(f"mad.wide.{t}", WIDE[t], t, t, WIDE[t])
        if t[0] == "s":
            yield unary(f"abs.{t}", t, t)
            yield unary(f"neg.{t}", t, t)
    for op in ("add", "sub"):
        yield binary(f"{op}.sat.s32", "s32", "s32", "s32")
    yield ternary("mad.hi.sat.s32", "s32", "s32", "s32", "s32")
    for t in ("u32", "s32"):
        for part in ("lo", "hi"):
            yield binary(f"mul24.{part}.{t}", t, t, t)
            yield ternary(f"mad24.{part}.{t}", t, t, t, t)
    yield ternary("mad24.hi.sat.s32", "s32", "s32", "s32", "s32")
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            yield ternary(f"dp4a.{a}.{b}", "b32", "b32", "b32", "b32")
            for part in ("lo", "hi"):
                yield ternary(f"dp2a.{part}.{a}.{b}", "b32", "b32", "b32", "b32")
    for t in ("u16x2", "s16x2"):
        for op in ("add", "min", "max"):
            yield binary(f"{op}.{t}", t, t, t)
    for op in ("min.relu.s32", "max.relu.s32", "min.relu.s16x2", "max.relu.s16x2"):
        t = op.split(".")[-1]
        yield binary(op, t, t, t)


def bit_forms() -> Iterator[Form]:
    for t in ("b16", "b32", "b64"):
        for op in ("and", "or", "xor"):
            yield binary(f"{op}.{t}", t, t, t)
        yield unary(f"not.{t}", t, t)
        yield unary(f"cnot.{t}", t, t)
        yield binary(f"shl.{t}", t, t, "u32")
    for t in INTS:
        yield binary(f"shr.{t}", t, t, "u32")
    for side in "lr":
        for mode in ("clamp", "wrap"):
            yield ternary(f"shf.{side}.{mode}.b32", "b32", "b32", "b32", "u32")
    for table in (0x00, 0x1B, 0x96, 0xE8, 0xCA, 0x80, 0xFE, 0x6A, 0xFF):
        yield Form(
            f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x};",
            "b32",
            ("b32",) * 3,
            name=f"lop3.b32:{table:#x}",
        )
    for op in ("or", "and"):
        yield Form(
            "{{ .reg .pred p, q; .reg .b32 t; setp.ne.u32 q, {b}, 1; "
            f"lop3.{op}.b32 t|p, {{a}}, {{b}}, {{c}}, 0x96, q; "
            "selp.u32 {d}, 1, 0, p; add.u32 {d}, {d}, t; }}",
            "b32",
            ("b32",) * 3,
            name=f"lop3.{op}.b32:predicate",
        )
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield ternary(f"prmt.b32{mode}", "b32", "b32", "b32", "b32")
    for t in ("u32", "s32", "u64", "s64"):
        yield ternary(f"bfe.{t}", t, t, "u32", "u32")
        yield unary(f"bfind.{t}", "u32", t)
        yield unary(f"bfind.shiftamt.{t}", "u32", t)
    for t in ("b32", "b64"):
        for length in (0, 1, 5, 16, 31, 32, 33, 64, 255):
            yield Form(
                f"bfi.{t} {{d}}, {{a}}, {{b}}, {{c}}, {length};",
                t,
                (t, t, "u32"),
                name=f"bfi.{t}:{length}",
                count=512,
            )
        yield Form(
            "{{ .reg .u32 p, l; and.b32 p, {c}, 511; bfe.u32 l, {c}, 9, 9; "
            f"bfi.{t} {{d}}, {{a}}, {{b}}, p, l; }}}}",
            t,
            (t, t, "u32"),
            name=f"bfi.{t}:registers",
        )
        yield unary(f"brev.{t}", t, t)
        yield unary(f"clz.{t}", "u32", t)
        yield unary(f"popc.{t}", "u32", t)
    yield ternary("fns.b32", "b32", "b32", "u32", "s32")
    for mode in ("clamp", "wrap"):
        yield binary(f"bmsk.{mode}.b32", "b32", "u32", "u32")
        for t in ("u32", "s32"):
            yield binary(f"szext.{mode}.{t}", t, t, "u32")


def float_forms() -> Iterator[Form]:
    for op in ("add", "sub", "mul"):
        for r in ("", *("." + r for r in ROUNDINGS)):
            for ftz in ("", ".ftz"):
                for sat in ("", ".sat"):
                    yield binary(f"{op}{r}{ftz}{sat}.f32", "f32", "f32", "f32")
            yield binary(f"{op}{r}.f64", "f64", "f64", "f64")
    for r in ROUNDINGS:
        for ftz in ("", ".ftz"):
            for sat in ("", ".sat"):
                yield ternary(f"fma.{r}{ftz}{sat}.f32", "f32", "f32", "f32", "f32")
            yield binary(f"div.{r}{ftz}.f32", "f32", "f32", "f32")
            yield unary(f"rcp.{r}{ftz}.f32", "f32", "f32", count=2048)
            yield unary(f"sqrt.{r}{ftz}.f32", "f32", "f32", count=2048)
        yield ternary(f"fma.{r}.f64", "f64", "f64", "f64", "f64")
        yield binary(f"div.{r}.f64", "f64", "f64", "f64")
        yield unary(f"rcp.{r}.f64", "f64", "f64")
        yield unary(f"sqrt.{r}.f64", "f64", "f64")
    for op in ("abs", "neg"):
        for ftz in ("", ".ftz"):
            yield unary(f"{op}{ftz}.f32", "f32", "f32")
        yield unary(f"{op}.f64", "f64", "f64")
    for op in ("min", "max"):
        for ftz in ("", ".ftz"):
            for mode in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                yield binary(f"{op}{ftz}{mode}.f32", "f32", "f32", "f32")
        yield binary(f"{op}.f64", "f64", "f64", "f64")
    for t in ("f32", "f64"):
        yield binary(f"copysign.{t}", t, t, t)
        for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield unary(f"testp.{what}.{t}", "pred", t)


# Measured: the angle is a number of 25 bits (machine/isa/special.hpp), and its sine good to that error.
CIRCLE = (0, 2.0**-21.5)


def special_forms() -> Iterator[Form]:
    # (ulps, absolute) as measured against the H200, rounded up.
    for ftz in ("", ".ftz"):
        yield unary(f"ex2.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(2, 0))
        yield unary(f"lg2.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(2, 2.0**-22.6))
        yield unary(f"sin.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=CIRCLE)
        yield unary(f"cos.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=CIRCLE)
        yield unary(f"rcp.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(1, 0))
        yield unary(f"rsqrt.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(2, 0))
        yield unary(f"sqrt.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(1.01, 0))
        yield binary(f"div.approx{ftz}.f32", "f32", "f32", "f32", count=2048, tolerance=(1.01, 0))
        yield binary(f"div.full{ftz}.f32", "f32", "f32", "f32", count=2048, tolerance=(1.01, 0))
    yield unary("tanh.approx.f32", "f32", "f32", count=4096, tolerance=(256, 0))
    yield unary("rcp.approx.ftz.f64", "f64", "f64", tolerance=(1, 0))
    yield unary("rsqrt.approx.f64", "f64", "f64", tolerance=(1, 0))
    yield unary("rsqrt.approx.ftz.f64", "f64", "f64", tolerance=(1, 0))
    yield unary("ex2.approx.f16", "f16", "f16", tolerance=(1, 0))
    yield unary("ex2.approx.f16x2", "f16x2", "f16x2", tolerance=(1, 0))
    yield unary("ex2.approx.ftz.bf16", "bf16", "bf16", tolerance=(1, 0))
    yield unary("ex2.approx.ftz.bf16x2", "bf16x2", "bf16x2", tolerance=(1, 0))
    yield unary("tanh.approx.f16", "f16", "f16", tolerance=(1, 0))
    yield unary("tanh.approx.f16x2", "f16x2", "f16x2", tolerance=(1, 0))
    yield unary("tanh.approx.bf16", "bf16", "bf16", tolerance=(1, 0))
    yield unary("tanh.approx.bf16x2", "bf16x2", "bf16x2", tolerance=(1, 0))


def half_forms() -> Iterator[Form]:
    for t in ("f16", "f16x2"):
        for op in ("add", "sub", "mul"):
            for mode in ("", ".ftz", ".sat", ".ftz.sat", ".rn", ".rn.ftz", ".rn.sat", ".rn.ftz.sat"):
                yield binary(f"{op}{mode}.{t}", t, t, t)
        for mode in ("", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"):
            yield ternary(f"fma.rn{mode}.{t}", t, t, t, t)
        for op in ("abs", "neg"):
            for ftz in ("", ".ftz"):
                yield unary(f"{op}{ftz}.{t}", t, t)
        for op in ("min", "max"):
            for ftz in ("", ".ftz"):
                for mode in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                    yield binary(f"{op}{ftz}{mode}.{t}", t, t, t)
    for t in ("bf16", "bf16x2"):
        for op in ("add", "sub", "mul"):
            for rounding in ("", ".rn"):
                yield binary(f"{op}{rounding}.{t}", t, t, t)
        for mode in ("", ".relu"):
            yield ternary(f"fma.rn{mode}.{t}", t, t, t, t)
        for op in ("abs", "neg"):
            yield unary(f"{op}.{t}", t, t)
        for op in ("min", "max"):
            for mode in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                yield binary(f"{op}{mode}.{t}", t, t, t)

"""The instruction forms that are compared: what is executed, on which operands, how close the answers must be.

A form is a kernel of one instruction. Each thread loads its operands, executes it and stores the result. Standard library only.
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
    """One instruction: ``text`` with {d}, {a}, {b}, {c} for registers; ``d`` and ``operands`` are their types.

    ``tolerance`` is None for bit equality, else (ulps of f32, absolute error): either is enough.
    ``body`` replaces the one-line instruction (warp-level forms); its scratch registers are declared inside.
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
    for t in ("u32", "s32", "u64", "s64"):
        for op in ("add", "sub"):
            yield Form(
                f"{{{{ .reg .{t} lo; {op}.cc.{t} lo, {{a}}, {{b}}; {op}c.{t} {{d}}, {{b}}, {{c}}; }}}}",
                t, (t, t, t), name=f"{op}.cc+{op}c.{t}",
            )
    for t in ("u32", "s32", "u64"):
        yield Form(
            f"{{{{ .reg .{t} lo; mad.lo.cc.{t} lo, {{a}}, {{b}}, {{c}}; madc.hi.{t} {{d}}, {{a}}, {{b}}, {{c}}; }}}}",
            t, (t, t, t), name=f"mad.lo.cc+madc.hi.{t}",
        )
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
        yield Form(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x};", "b32", ("b32",) * 3, name=f"lop3.b32:{table:#x}")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield ternary(f"prmt.b32{mode}", "b32", "b32", "b32", "b32")
    for t in ("u32", "s32", "u64", "s64"):
        yield ternary(f"bfe.{t}", t, t, "u32", "u32")
        yield unary(f"bfind.{t}", "u32", t)
        yield unary(f"bfind.shiftamt.{t}", "u32", t)
    for t in ("b32", "b64"):
        for length in (0, 1, 5, 16, 31, 32, 33, 64, 255):
            yield Form(f"bfi.{t} {{d}}, {{a}}, {{b}}, {{c}}, {length};", t, (t, t, "u32"), name=f"bfi.{t}:{length}", count=512)
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


def special_forms() -> Iterator[Form]:
    # (ulps, absolute): what either side may be off by, added: documented error of the unit plus ours.
    for ftz in ("", ".ftz"):
        yield unary(f"ex2.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(4, 0))
        yield unary(f"lg2.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(4, 2.0**-22))
        yield unary(f"sin.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(2, 2.0**-20))
        yield unary(f"cos.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(2, 2.0**-20))
        yield unary(f"rcp.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(2, 0))
        yield unary(f"rsqrt.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(3, 0))
        yield unary(f"sqrt.approx{ftz}.f32", "f32", "f32", count=4096, tolerance=(3, 0))
        yield binary(f"div.approx{ftz}.f32", "f32", "f32", "f32", count=2048, tolerance=(3, 0))
        yield binary(f"div.full{ftz}.f32", "f32", "f32", "f32", count=2048, tolerance=(3, 0))
    yield unary("tanh.approx.f32", "f32", "f32", count=4096, tolerance=(8192, 0))
    yield unary("rcp.approx.ftz.f64", "f64", "f64", tolerance=(1, 0))
    yield unary("rsqrt.approx.f64", "f64", "f64", tolerance=(1, 0))
    yield unary("ex2.approx.f16", "f16", "f16", tolerance=(2, 0))
    yield unary("ex2.approx.f16x2", "f16x2", "f16x2", tolerance=(2, 0))
    yield unary("ex2.approx.ftz.bf16", "bf16", "bf16", tolerance=(1, 0))
    yield unary("ex2.approx.ftz.bf16x2", "bf16x2", "bf16x2", tolerance=(1, 0))
    yield unary("tanh.approx.f16", "f16", "f16", tolerance=(2, 0))
    yield unary("tanh.approx.f16x2", "f16x2", "f16x2", tolerance=(2, 0))
    yield unary("tanh.approx.bf16", "bf16", "bf16", tolerance=(1, 0))
    yield unary("tanh.approx.bf16x2", "bf16x2", "bf16x2", tolerance=(1, 0))


def half_forms() -> Iterator[Form]:
    for t in ("f16", "f16x2"):
        for op in ("add", "sub", "mul"):
            for mode in ("", ".ftz", ".sat", ".ftz.sat", ".rn"):
                yield binary(f"{op}{mode}.{t}", t, t, t)
        for mode in ("", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"):
            yield ternary(f"fma.rn{mode}.{t}", t, t, t, t)
        for op in ("abs", "neg"):
            for ftz in ("", ".ftz"):
                yield unary(f"{op}{ftz}.{t}", t, t)
        for op in ("min", "max"):
            for mode in ("", ".ftz", ".NaN", ".xorsign.abs", ".ftz.NaN", ".NaN.xorsign.abs"):
                yield binary(f"{op}{mode}.{t}", t, t, t)
    for t in ("bf16", "bf16x2"):
        for op in ("add", "sub", "mul"):
            yield binary(f"{op}.{t}", t, t, t)
        for mode in ("", ".relu"):
            yield ternary(f"fma.rn{mode}.{t}", t, t, t, t)
        for op in ("abs", "neg"):
            yield unary(f"{op}.{t}", t, t)
        for op in ("min", "max"):
            for mode in ("", ".NaN", ".xorsign.abs"):
                yield binary(f"{op}{mode}.{t}", t, t, t)


def fits(a: str, d: str) -> bool:
    """Every value of integer type ``a`` is one of ``d``."""
    bits_a, bits_d = int(a[1:]), int(d[1:])
    if a[0] == "s" and d[0] == "u":
        return False
    return bits_a <= bits_d if a[0] == d[0] else bits_a < bits_d


def convert_forms() -> Iterator[Form]:
    ints = ("u8", "s8", *INTS)
    for d in ints:
        for a in ints:
            if d != a:
                yield unary(f"cvt.{d}.{a}", d, a, count=256)
            if not fits(a, d):  # .sat is refused where nothing can saturate
                yield unary(f"cvt.sat.{d}.{a}", d, a, count=256)
    for a in ints:
        for d in ("f32", "f64", "f16"):
            for r in ROUNDINGS:
                yield unary(f"cvt.{r}.{d}.{a}", d, a, count=256)
        if a not in ("u8", "s8"):  # bf16 is not converted from or to 8-bit integers
            yield unary(f"cvt.rn.bf16.{a}", "bf16", a, count=256)
        yield unary(f"cvt.rn.sat.f32.{a}", "f32", a, count=128)
    for a in ("f32", "f64", "f16"):
        for d in ints:
            for r in ("rni", "rzi", "rmi", "rpi"):
                yield unary(f"cvt.{r}.{d}.{a}", d, a, count=384)
                if a == "f32":
                    yield unary(f"cvt.{r}.ftz.{d}.{a}", d, a, count=384)
    for d in INTS:
        yield unary(f"cvt.rzi.{d}.bf16", d, "bf16", count=256)
    for r in ROUNDINGS:
        for ftz in ("", ".ftz"):
            for sat in ("", ".sat"):
                yield unary(f"cvt.{r}{ftz}{sat}.f32.f64", "f32", "f64", count=512)
                if not (ftz and sat):
                    yield unary(f"cvt.{r}{ftz}{sat}.f16.f32", "f16", "f32", count=2048)
        yield unary(f"cvt.{r}.f16.f64", "f16", "f64", count=512)
    for r in ("rn", "rz"):
        for relu in ("", ".relu"):
            yield unary(f"cvt.{r}{relu}.bf16.f32", "bf16", "f32", count=2048)
            yield binary(f"cvt.{r}{relu}.f16x2.f32", "f16x2", "f32", "f32")
            yield binary(f"cvt.{r}{relu}.bf16x2.f32", "bf16x2", "f32", "f32")
    for ftz in ("", ".ftz"):
        yield unary(f"cvt{ftz}.f64.f32", "f64", "f32", count=512)
        yield unary(f"cvt{ftz}.f32.f16", "f32", "f16", count=2048)
        for sat in ("", ".sat"):
            if ftz or sat:
                yield unary(f"cvt{ftz}{sat}.f32.f32", "f32", "f32", count=512)
            for r in ("rni", "rzi", "rmi", "rpi"):
                yield unary(f"cvt.{r}{ftz}{sat}.f32.f32", "f32", "f32", count=512)
    yield unary("cvt.f32.bf16", "f32", "bf16", count=1024)
    yield unary("cvt.f64.f16", "f64", "f16", count=512)
    for r in ("rni", "rzi", "rmi", "rpi"):
        yield unary(f"cvt.{r}.f64.f64", "f64", "f64", count=512)
        yield unary(f"cvt.{r}.f16.f16", "f16", "f16", count=512)
    yield unary("cvt.rna.tf32.f32", "b32", "f32", count=2048)
    for r in ("rn", "rz"):
        for relu in ("", ".relu"):
            yield unary(f"cvt.{r}{relu}.tf32.f32", "b32", "f32", count=1024)
    for t in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            yield binary(f"cvt.rn.satfinite{relu}.{t}.f32", "b16", "f32", "f32", count=2048)
            yield unary(f"cvt.rn.satfinite{relu}.{t}.f16x2", "b16", "f16x2", count=1024)
            yield unary(f"cvt.rn{relu}.f16x2.{t}", "f16x2", "b16", count=2048)
    for t in ("u16", "s16"):
        yield binary(f"cvt.pack.sat.{t}.s32", "b32", "s32", "s32", count=512)
    for t in ("u8", "s8", "u4", "s4"):
        yield ternary(f"cvt.pack.sat.{t}.s32.b32", "b32", "s32", "s32", "b32", count=512)


def compare_forms() -> Iterator[Form]:
    orders = ("eq", "ne", "lt", "le", "gt", "ge")
    unordered = (*(o + "u" for o in orders), "num", "nan")
    for t in INTS:
        for c in orders:
            yield binary(f"setp.{c}.{t}", "pred", t, t, count=512)
    for t in ("b16", "b32", "b64"):
        for c in ("eq", "ne"):
            yield binary(f"setp.{c}.{t}", "pred", t, t, count=256)
    for t in ("f32", "f64", "f16", "bf16"):
        for c in (*orders, *unordered):
            yield binary(f"setp.{c}.{t}", "pred", t, t, count=1024)
            if t == "f32":
                yield binary(f"setp.{c}.ftz.{t}", "pred", t, t, count=1024)
    for op in ("and", "or", "xor"):
        yield ternary(f"setp.lt.{op}.s32", "pred", "s32", "s32", "pred", count=512)
        yield Form(
            f"{{{{ .reg .pred p, q; setp.ltu.{op}.ftz.f32 p|q, {{a}}, {{b}}, !{{c}}; selp.u32 {{d}}, 1, 0, p; @q add.u32 {{d}}, {{d}}, 2; }}}}",
            "u32", ("f32", "f32", "pred"), count=512, name=f"setp.ltu.{op}.ftz.f32:pair",
        )
    for d in ("u32", "f32"):
        for t in ("s32", "f32"):
            yield binary(f"set.gt.{d}.{t}", d, t, t, count=512)
    for t in ("b16", "b32", "b64", "f32", "f64"):
        yield ternary(f"selp.{t}", t, t, t, "pred", count=256)
    yield ternary("slct.u32.s32", "u32", "u32", "u32", "s32", count=256)
    for ftz in ("", ".ftz"):
        yield ternary(f"slct{ftz}.u64.f32", "u64", "u64", "u64", "f32", count=256)


def warp_forms() -> Iterator[Form]:
    for mode in ("up", "down", "bfly", "idx"):
        for clamp in (0x1F, 0x00, 0x0F, 0x181F, 0x1C03, 0x1807):
            yield Form(
                f"{{{{ .reg .pred p; .reg .u32 x; shfl.sync.{mode}.b32 {{d}}|p, {{a}}, {{b}}, {clamp:#x}, 0xffffffff; "
                "@!p xor.b32 {d}, {d}, 0x55555555; }}",
                "u32", ("u32", "u32"), count=512, name=f"shfl.sync.{mode}.b32:{clamp:#x}",
            )
    for mode in ("all", "any", "uni"):
        yield Form(f"vote.sync.{mode}.pred {{d}}, {{a}}, 0xffffffff;", "pred", ("pred",), count=512, name=f"vote.sync.{mode}.pred")
    yield Form("vote.sync.ballot.b32 {d}, {a}, 0xffffffff;", "b32", ("pred",), count=512, name="vote.sync.ballot.b32")
    for t in ("b32", "b64"):
        mask = "0x3" if t == "b32" else "0x7"
        yield Form(
            f"{{{{ .reg .{t} x; and.{t} x, {{a}}, {mask}; match.any.sync.{t} {{d}}, x, 0xffffffff; }}}}",
            "b32", (t,), count=512, name=f"match.any.sync.{t}",
        )
        yield Form(
            f"{{{{ .reg .{t} x; .reg .pred p; and.{t} x, {{a}}, 0; match.all.sync.{t} {{d}}|p, x, 0xffffffff; @p add.u32 {{d}}, {{d}}, 5; }}}}",
            "b32", (t,), count=128, name=f"match.all.sync.{t}",
        )
    for op, t in (("add", "u32"), ("add", "s32"), ("min", "u32"), ("min", "s32"), ("max", "u32"), ("max", "s32"), ("and", "b32"), ("or", "b32"), ("xor", "b32")):
        yield Form(f"redux.sync.{op}.{t} {{d}}, {{a}}, 0xffffffff;", t, (t,), count=512, name=f"redux.sync.{op}.{t}")
    yield Form("movmatrix.sync.aligned.m8n8.trans.b16 {d}, {a};", "b32", ("b32",), count=128, name="movmatrix")
    for trans in ("", ".trans"):
        yield Form(
            "{{ .shared .align 16 .b8 tile[2048]; .reg .u32 p, l, w; .reg .b32 x, y, z, t; mov.u32 l, %tid.x; shr.u32 w, l, 5; shl.b32 w, w, 9; "
            "and.b32 l, l, 31; shl.b32 p, l, 2; add.u32 p, p, w; mov.u32 t, tile; add.u32 p, p, t; st.shared.b32 [p], {a}; "
            "bar.warp.sync 0xffffffff; and.b32 l, l, 7; shl.b32 l, l, 4; add.u32 p, w, l; add.u32 p, p, t; "
            f"ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {{{{{{d}}}}}}, [p]; }}}}",
            "b32", ("b32",), count=128, name=f"ldmatrix.x1{trans}",
        )
        yield Form(
            "{{ .shared .align 16 .b8 tile[2048]; .reg .u32 p, l, w; .reg .b32 t; mov.u32 l, %tid.x; shr.u32 w, l, 5; shl.b32 w, w, 9; "
            "and.b32 l, l, 31; mov.u32 t, tile; add.u32 w, w, t; and.b32 p, l, 7; shl.b32 p, p, 4; add.u32 p, p, w; "
            f"stmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 [p], {{{{{{a}}}}}}; "
            "bar.warp.sync 0xffffffff; shl.b32 p, l, 2; add.u32 p, p, w; ld.shared.b32 {d}, [p]; }}",
            "b32", ("b32",), count=128, name=f"stmatrix.x1{trans}",
        )
    for op, d in (("popc.u32", "u32"), ("and.pred", "pred"), ("or.pred", "pred")):
        yield Form(f"bar.red.{op} {{d}}, 0, {{a}};", d, ("pred",), count=512, name=f"bar.red.{op}")


def atomic_forms() -> Iterator[Form]:
    """Each thread on its own word: {e} is its address in global memory, which holds {a}; {b} is the operand."""
    def atom(op: str, t: str, operands: str, count: int = 512) -> Form:
        bits = 8 * width_of(t)
        types = (t,) * (3 if "{c}" in operands else 2)
        return Form(
            f"{{{{ .reg .b{bits} old; st.global.b{bits} [{{e}}], {{a}}; atom.global.{op}.{t} old, [{{e}}], {operands}; "
            f"ld.global.b{bits} {{d}}, [{{e}}]; }}}}",
            t, types, count=count, name=f"atom.global.{op}.{t}",
        )
    for t in ("u32", "s32", "u64", "s64"):
        for op in ("min", "max"):
            yield atom(op, t, "{b}")
    for t in ("u32", "s32", "u64"):
        yield atom("add", t, "{b}")
    for op in ("inc", "dec"):
        yield atom(op, "u32", "{b}")
    for t in ("b32", "b64"):
        for op in ("and", "or", "xor", "exch"):
            yield atom(op, t, "{b}")
        yield atom("cas", t, "{b}, {c}")
    yield atom("cas", "b16", "{b}, {c}")
    yield atom("add", "f32", "{b}", 1024)
    yield atom("add", "f64", "{b}", 1024)
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        yield atom("add.noftz", t, "{b}", 1024)
    yield Form(
        "{{ .shared .align 8 .b8 room[1024]; .reg .u32 p, t; .reg .b32 old; mov.u32 p, %tid.x; shl.b32 p, p, 3; mov.u32 t, room; add.u32 p, p, t; "
        "st.shared.b32 [p], {a}; atom.shared.add.f32 old, [p], {b}; ld.shared.b32 {d}, [p]; }}",
        "f32", ("f32", "f32"), count=1024, name="atom.shared.add.f32",
    )


def memory_forms() -> Iterator[Form]:
    """A store of {a} to the thread's own place {e} and a narrower or wider load from it."""
    for t in ("u8", "s8", "u16", "s16", "u32", "s32"):
        for d in ("b32", "b64") if t not in ("u32", "s32") else ("b64",):
            yield Form(f"{{{{ st.global.b64 [{{e}}], {{a}}; ld.global.{t} {{d}}, [{{e}}+0]; }}}}", d, ("b64",), count=128, name=f"ld.global.{t}:{d}")
    yield Form(
        "{{ .reg .b32 x, y; st.global.b64 [{e}], {a}; ld.global.v2.b32 {{x, y}}, [{e}]; xor.b32 {d}, x, y; }}",
        "b32", ("b64",), count=128, name="ld.global.v2.b32",
    )
    for size in (0, 1, 5, 8, 15, 16):
        yield Form(
            "{{ .shared .align 16 .b8 room[2048]; .reg .u32 p, t, n; .reg .u64 q; .reg .b64 x, y; st.global.b64 [{e}], {a}; st.global.b64 [{e}+8], {a}; "
            "membar.gl; mov.u32 p, %tid.x; shl.b32 p, p, 4; mov.u32 t, room; add.u32 p, p, t; st.shared.b64 [p], {a}; st.shared.b64 [p+8], {a}; "
            f"mov.u32 n, {size}; cp.async.cg.shared.global [p], [{{e}}], 16, n; cp.async.commit_group; cp.async.wait_group 0; "
            "ld.shared.b64 x, [p]; ld.shared.b64 y, [p+8]; shl.b64 y, y, 1; xor.b64 {d}, x, y; }}",
            "b64", ("b64",), count=128, name=f"cp.async:{size}",
        )


@dataclass(frozen=True)
class Mma:
    shape: str
    d: str
    a: str
    b: str

    @property
    def name(self) -> str:
        return f"mma.{self.shape}.{self.d}.{self.a}.{self.b}"


MMA = (
    Mma("m16n8k8", "f32", "f16", "f16"), Mma("m16n8k16", "f32", "f16", "f16"), Mma("m16n8k16", "f16", "f16", "f16"),
    Mma("m16n8k8", "f16", "f16", "f16"), Mma("m16n8k8", "f32", "bf16", "bf16"), Mma("m16n8k16", "f32", "bf16", "bf16"),
    Mma("m16n8k4", "f32", "tf32", "tf32"), Mma("m16n8k8", "f32", "tf32", "tf32"), Mma("m16n8k32", "f32", "e4m3", "e4m3"),
    Mma("m16n8k32", "f32", "e5m2", "e4m3"), Mma("m16n8k32", "s32", "s8", "s8"), Mma("m16n8k32", "s32", "u8", "s8"),
    Mma("m16n8k16", "s32", "s8", "s8"), Mma("m16n8k16", "s32", "u8", "u8"), Mma("m8n8k16", "s32", "s8", "s8"),
    Mma("m8n8k4", "f64", "f64", "f64"), Mma("m16n8k4", "f64", "f64", "f64"), Mma("m16n8k8", "f64", "f64", "f64"),
    Mma("m16n8k16", "f64", "f64", "f64"),
)


def missing_on_hardware() -> Iterator[Form]:
    """Conversions that sm_90 lacks: compared with the format's definition, not with the hardware."""
    for relu in ("", ".relu"):
        yield Form(
            f"{{{{ .reg .b8 t; cvt.rn.satfinite{relu}.e2m1x2.f32 t, {{a}}, {{b}}; cvt.u16.u8 {{d}}, t; }}}}",
            "b16", ("f32", "f32"), hardware=False, name=f"cvt.rn.satfinite{relu}.e2m1x2.f32",
        )
        yield Form(
            f"{{{{ .reg .b8 t, u; mov.b16 {{{{t, u}}}}, {{a}}; cvt.rn{relu}.f16x2.e2m1x2 {{d}}, t; }}}}",
            "f16x2", ("b16",), hardware=False, name=f"cvt.rn{relu}.f16x2.e2m1x2",
        )
    for r in ("rz", "rp"):
        for sat in ("", ".satfinite"):
            yield binary(f"cvt.{r}{sat}.ue8m0x2.f32", "b16", "f32", "f32", hardware=False)
            yield unary(f"cvt.{r}{sat}.ue8m0x2.bf16x2", "b16", "bf16x2", hardware=False)
    yield unary("cvt.rn.bf16x2.ue8m0x2", "bf16x2", "b16", hardware=False)


def all_forms() -> list[Form]:
    """Every form that runs on both sides, in a fixed order."""
    forms: list[Form] = []
    for family in (integer_forms, bit_forms, float_forms, special_forms, half_forms, convert_forms, compare_forms, warp_forms, atomic_forms, memory_forms):
        forms.extend(family())
    keys = [f.key for f in forms]
    if len(keys) != len(set(keys)):
        raise ValueError(f"two forms of one name: {sorted(k for k in keys if keys.count(k) > 1)[:4]}")
    return forms

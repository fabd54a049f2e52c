"""Warp collectives, matrices, atomics and memory. Standard library only."""

from collections.abc import Iterator
from dataclasses import dataclass

from .forms import Form, width_of


def warp_forms() -> Iterator[Form]:
    for mode in ("up", "down", "bfly", "idx"):
        for clamp in (0x1F, 0x00, 0x0F, 0x181F, 0x1C03, 0x1807):
            yield Form(
                f"{{{{ .reg .pred p; .reg .u32 x; "
                f"shfl.sync.{mode}.b32 {{d}}|p, {{a}}, {{b}}, {clamp:#x}, 0xffffffff; "
                "@!p xor.b32 {d}, {d}, 0x55555555; }}",
                "u32",
                ("u32", "u32"),
                count=512,
                name=f"shfl.sync.{mode}.b32:{clamp:#x}",
            )
    for mode in ("all", "any", "uni"):
        yield Form(
            f"vote.sync.{mode}.pred {{d}}, {{a}}, 0xffffffff;",
            "pred",
            ("pred",),
            count=512,
            name=f"vote.sync.{mode}.pred",
        )
    yield Form(
        "vote.sync.ballot.b32 {d}, {a}, 0xffffffff;", "b32", ("pred",), count=512, name="vote.sync.ballot.b32"
    )
    for t in ("b32", "b64"):
        mask = "0x3" if t == "b32" else "0x7"
        yield Form(
            f"{{{{ .reg .{t} x; and.{t} x, {{a}}, {mask}; match.any.sync.{t} {{d}}, x, 0xffffffff; }}}}",
            "b32",
            (t,),
            count=512,
            name=f"match.any.sync.{t}",
        )
        yield Form(
            f"{{{{ .reg .{t} x; .reg .pred p; and.{t} x, {{a}}, 0; "
            f"match.all.sync.{t} {{d}}|p, x, 0xffffffff; @p add.u32 {{d}}, {{d}}, 5; }}}}",
            "b32",
            (t,),
            count=128,
            name=f"match.all.sync.{t}",
        )
    for op, t in (
        ("add", "u32"),
        ("add", "s32"),
        ("min", "u32"),
        ("min", "s32"),
        ("max", "u32"),
        ("max", "s32"),
        ("and", "b32"),
        ("or", "b32"),
        ("xor", "b32"),
    ):
        yield Form(
            f"redux.sync.{op}.{t} {{d}}, {{a}}, 0xffffffff;", t, (t,), count=512, name=f"redux.sync.{op}.{t}"
        )
    yield Form(
        "movmatrix.sync.aligned.m8n8.trans.b16 {d}, {a};", "b32", ("b32",), count=128, name="movmatrix"
    )
    for trans in ("", ".trans"):
        yield Form(
            "{{ .shared .align 16 .b8 tile[2048]; .reg .u32 p, l, w; .reg .b32 x, y, z, t; "
            "mov.u32 l, %tid.x; shr.u32 w, l, 5; shl.b32 w, w, 9; "
            "and.b32 l, l, 31; shl.b32 p, l, 2; add.u32 p, p, w; mov.u32 t, tile; add.u32 p, p, t; "
            "st.shared.b32 [p], {a}; "
            "bar.warp.sync 0xffffffff; and.b32 l, l, 7; shl.b32 l, l, 4; add.u32 p, w, l; add.u32 p, p, t; "
            f"ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {{{{{{d}}}}}}, [p]; }}}}",
            "b32",
            ("b32",),
            count=128,
            name=f"ldmatrix.x1{trans}",
        )
        yield Form(
            "{{ .shared .align 16 .b8 tile[2048]; .reg .u32 p, l, w; .reg .b32 t; "
            "mov.u32 l, %tid.x; shr.u32 w, l, 5; shl.b32 w, w, 9; "
            "and.b32 l, l, 31; mov.u32 t, tile; add.u32 w, w, t; and.b32 p, l, 7; shl.b32 p, p, 4; "
            "add.u32 p, p, w; "
            f"stmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 [p], {{{{{{a}}}}}}; "
            "bar.warp.sync 0xffffffff; shl.b32 p, l, 2; add.u32 p, p, w; ld.shared.b32 {d}, [p]; }}",
            "b32",
            ("b32",),
            count=128,
            name=f"stmatrix.x1{trans}",
        )
    for op, d in (("popc.u32", "u32"), ("and.pred", "pred"), ("or.pred", "pred")):
        yield Form(f"bar.red.{op} {{d}}, 0, {{a}};", d, ("pred",), count=512, name=f"bar.red.{op}")


def atomic_forms() -> Iterator[Form]:
    """Each thread on its own word: {e} is its address, the word holds {a}, {b} is the operand."""

    def atom(op: str, t: str, operands: str, count: int = 512) -> Form:
        bits = 8 * width_of(t)
        types = (t,) * (3 if "{c}" in operands else 2)
        return Form(
            f"{{{{ .reg .b{bits} old; st.global.b{bits} [{{e}}], {{a}}; "
            f"atom.global.{op}.{t} old, [{{e}}], {operands}; "
            f"ld.global.b{bits} {{d}}, [{{e}}]; }}}}",
            t,
            types,
            count=count,
            name=f"atom.global.{op}.{t}",
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
        "{{ .shared .align 8 .b8 room[1024]; .reg .u32 p, t; .reg .b32 old; mov.u32 p, %tid.x; "
        "shl.b32 p, p, 3; mov.u32 t, room; add.u32 p, p, t; "
        "st.shared.b32 [p], {a}; atom.shared.add.f32 old, [p], {b}; ld.shared.b32 {d}, [p]; }}",
        "f32",
        ("f32", "f32"),
        count=1024,
        name="atom.shared.add.f32",
    )


def memory_forms() -> Iterator[Form]:
    """A store of {a} to the thread's own place {e} and a narrower or wider load from it."""
    for t in ("u8", "s8", "u16", "s16", "u32", "s32"):
        for d in ("b32", "b64") if t not in ("u32", "s32") else ("b64",):
            yield Form(
                f"{{{{ st.global.b64 [{{e}}], {{a}}; ld.global.{t} {{d}}, [{{e}}+0]; }}}}",
                d,
                ("b64",),
                count=128,
                name=f"ld.global.{t}:{d}",
            )
    yield Form(
        "{{ .reg .b32 x, y; st.global.b64 [{e}], {a}; ld.global.v2.b32 {{x, y}}, [{e}]; "
        "xor.b32 {d}, x, y; }}",
        "b32",
        ("b64",),
        count=128,
        name="ld.global.v2.b32",
    )
    for size in (0, 1, 5, 8, 15, 16):
        yield Form(
            "{{ .shared .align 16 .b8 room[2048]; .reg .u32 p, t, n; .reg .u64 q; .reg .b64 x, y; "
            "st.global.b64 [{e}], {a}; st.global.b64 [{e}+8], {a}; "
            "membar.gl; mov.u32 p, %tid.x; shl.b32 p, p, 4; mov.u32 t, room; add.u32 p, p, t; "
            "st.shared.b64 [p], {a}; st.shared.b64 [p+8], {a}; "
            f"mov.u32 n, {size}; cp.async.cg.shared.global [p], [{{e}}], 16, n; "
            f"cp.async.commit_group; cp.async.wait_group 0; "
            "ld.shared.b64 x, [p]; ld.shared.b64 y, [p+8]; shl.b64 y, y, 1; xor.b64 {d}, x, y; }}",
            "b64",
            ("b64",),
            count=128,
            name=f"cp.async:{size}",
        )


@dataclass(frozen=True)
class Mma:
    """``mode`` stands before the types, ``bits`` behind them; ``c`` is the type of C if not ``d``."""

    shape: str
    d: str
    a: str
    b: str
    c: str = ""
    layout: str = "row.col"
    mode: str = ""
    bits: str = ""

    @property
    def name(self) -> str:
        plain = f"mma.{self.shape}.{self.d}.{self.a}.{self.b}"
        c, layout = self.c and f".{self.c}", "" if self.layout == "row.col" else f".{self.layout}"
        return f"{plain}{c}{layout}{self.mode}{self.bits}"

    @property
    def version(self) -> str:
        """Of PTX."""
        later = self.a in ("e4m3", "e5m2") and (self.d == "f16" or self.shape.endswith("k16"))
        return "8.7" if later else "8.6"


LAYOUTS = ("row", "col")
SUMS = (("f16", "f16"), ("f32", "f32"), ("f32", "f16"))  # of D and C
NIBBLES = ("m8n8k32", "m16n8k32", "m16n8k64")
BITS = ("m8n8k128", "m16n8k128", "m16n8k256")
MMA = (
    Mma("m16n8k8", "f32", "f16", "f16"),
    Mma("m16n8k16", "f32", "f16", "f16"),
    Mma("m16n8k16", "f16", "f16", "f16"),
    Mma("m16n8k8", "f16", "f16", "f16"),
    Mma("m16n8k8", "f32", "bf16", "bf16"),
    Mma("m16n8k16", "f32", "bf16", "bf16"),
    Mma("m16n8k4", "f32", "tf32", "tf32"),
    Mma("m16n8k8", "f32", "tf32", "tf32"),
    Mma("m16n8k32", "f32", "e4m3", "e4m3"),
    Mma("m16n8k32", "f32", "e5m2", "e4m3"),
    Mma("m16n8k32", "s32", "s8", "s8"),
    Mma("m16n8k32", "s32", "u8", "s8"),
    Mma("m16n8k16", "s32", "s8", "s8"),
    Mma("m16n8k16", "s32", "u8", "u8"),
    Mma("m8n8k16", "s32", "s8", "s8"),
    Mma("m8n8k4", "f64", "f64", "f64"),
    Mma("m16n8k4", "f64", "f64", "f64"),
    Mma("m16n8k8", "f64", "f64", "f64"),
    Mma("m16n8k16", "f64", "f64", "f64"),
    *(Mma("m8n8k4", d, "f16", "f16", c, f"{a}.{b}") for a in LAYOUTS for b in LAYOUTS for d, c in SUMS),
    Mma("m16n8k16", "f32", "e4m3", "e5m2"),
    Mma("m16n8k16", "f16", "e5m2", "e4m3"),
    Mma("m16n8k32", "f16", "e4m3", "e4m3"),
    Mma("m16n8k32", "f16", "e5m2", "e5m2"),
    *(Mma("m16n8k32", "s32", a, b, mode=".satfinite") for a in ("s8", "u8") for b in ("s8", "u8")),
    *(Mma(s, "s32", a, b) for s in NIBBLES for a in ("s4", "u4") for b in ("s4", "u4")),
    *(Mma(s, "s32", "s4", "u4", mode=".satfinite") for s in NIBBLES),
    *(Mma(s, "s32", "b1", "b1", bits=f".{op}.popc") for s in BITS for op in ("and", "xor")),
)

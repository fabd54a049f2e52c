"""PTX for the forms: kernels of one signature (out, a, b, c, room), one thread an element.

Standard library only.
"""

from .forms import Form, width_of
from .warp_forms import Mma

HEADER = ".version {version}\n.target {target}\n.address_size 64\n\n"
LETTERS = "abc"
PARAMS = ", ".join(f".param .u64 {name}" for name in ("po", "pa", "pb", "pc", "pe"))
THREAD = "  mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t0, %t0, %t1, %t2;"


def register_of(type_name: str) -> str:
    return "pred" if type_name == "pred" else f"b{8 * width_of(type_name)}"


def kernel(form: Form, name: str) -> str:
    """The kernel of a form. Predicates travel as 32-bit 0 or 1 (bit 0 of the operand)."""
    lines = [
        f".visible .entry {name}({PARAMS})",
        "{",
        "  .reg .u32 %t<4>; .reg .u64 %o, %e, %x, %y;",
        f"  .reg .{register_of(form.d)} %d;",
    ]
    if form.d == "pred":
        lines.append("  .reg .u32 %dv;")
    for letter, t in zip(LETTERS, form.operands, strict=False):
        lines.append(
            f"  .reg .{register_of(t)} %{letter};" + (f" .reg .u32 %{letter}v;" if t == "pred" else "")
        )
    lines.append(
        "  mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t0, %t0, %t1, %t2;"
    )
    lines.append("  ld.param.u64 %e, [pe]; mul.wide.u32 %x, %t0, 16; add.u64 %e, %e, %x;")
    for letter, t in zip(LETTERS, form.operands, strict=False):
        width = width_of(t)
        target = f"%{letter}v" if t == "pred" else f"%{letter}"
        lines.append(
            f"  ld.param.u64 %y, [p{letter}]; mul.wide.u32 %x, %t0, {width}; add.u64 %y, %y, %x; "
            f"ld.global.b{8 * width} {target}, [%y];"
        )
        if t == "pred":
            lines.append(f"  and.b32 %{letter}v, %{letter}v, 1; setp.ne.u32 %{letter}, %{letter}v, 0;")
    names = {letter: f"%{letter}" for letter in LETTERS}
    lines.append("  " + form.text.format(d="%d", e="%e", **names))
    width = width_of(form.d)
    if form.d == "pred":
        lines.append("  selp.u32 %dv, 1, 0, %d;")
    source = "%dv" if form.d == "pred" else "%d"
    lines.append(
        f"  ld.param.u64 %o, [po]; mul.wide.u32 %x, %t0, {width}; add.u64 %o, %o, %x; "
        f"st.global.b{8 * width} [%o], {source};"
    )
    lines.append("  ret;")
    lines.append("}")
    return "\n".join(lines) + "\n"


MMA_BITS = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4, "b1": 1}


def mma_counts(op: Mma) -> tuple[int, int, int, int]:
    """Registers of d, a, b, c, each 32 bits (64 for f64)."""
    m, rest = op.shape[1:].split("n")
    n, k = rest.split("k")
    rows, columns, depth = int(m), int(n), int(k)
    bits = MMA_BITS.get(op.a, 8)
    unit = 64 if op.a == "f64" else 32
    times = 4 if op.a == "f16" and op.shape == "m8n8k4" else 1  # matrices in one warp
    d, c = (times * rows * columns // 32 * (16 if t == "f16" else 32) // 32 for t in (op.d, op.c or op.d))
    return d, times * rows * depth * bits // 32 // unit, times * depth * columns * bits // 32 // unit, c


def mma_kernel(op: Mma, name: str) -> str:
    """One warp a tile: register r of a lane lies at index (thread * registers + r) of its array."""
    counts = mma_counts(op)
    width = 8 if op.a == "f64" else 4
    bits = 8 * width
    lines = [
        f".visible .entry {name}({PARAMS})",
        "{",
        "  .reg .u32 %t<4>; .reg .u64 %x, %y;",
        f"  .reg .b{bits} %d<8>, %a<8>, %b<8>, %c<8>;",
        "  mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t0, %t0, %t1, %t2;",
    ]
    for letter, count in zip("abc", counts[1:], strict=True):
        lines.append(
            f"  ld.param.u64 %y, [p{letter}]; mul.wide.u32 %x, %t0, {width * count}; add.u64 %y, %y, %x;"
        )
        lines.extend(f"  ld.global.b{bits} %{letter}{r}, [%y+{width * r}];" for r in range(count))
    groups = [
        "{" + ", ".join(f"%{letter}{r}" for r in range(count)) + "}"
        for letter, count in zip("dabc", counts, strict=True)
    ]
    types = f"{op.mode}.{op.d}.{op.a}.{op.b}.{op.c or op.d}{op.bits}"
    lines.append(f"  mma.sync.aligned.{op.shape}.{op.layout}{types} {', '.join(groups)};")
    lines.append(f"  ld.param.u64 %y, [po]; mul.wide.u32 %x, %t0, {width * counts[0]}; add.u64 %y, %y, %x;")
    lines.extend(f"  st.global.b{bits} [%y+{width * r}], %d{r};" for r in range(counts[0]))
    lines.append("  ret;\n}\n")
    return "\n".join(lines)

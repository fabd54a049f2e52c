"""Atomics on vectors and 128 bits, loads of 128 bits, groups of matrix tiles. Standard library only."""

from collections.abc import Iterator

from .forms import Form, width_of

VECTORS = (
    ("add", "f32", 2),
    ("add", "f32", 4),
    *((f"{op}.noftz", t, n) for t in ("f16", "bf16") for op in ("add", "min", "max") for n in (2, 4, 8)),
    *((f"{op}.noftz", t, n) for t in ("f16x2", "bf16x2") for op in ("add", "min", "max") for n in (2, 4)),
)


def group(names: list[str]) -> str:
    return "{{" + ", ".join(names) + "}}"


def spread(names: list[str], sources: str, bits: int) -> str:
    """Fills registers of 16 or 32 bits with the operands in turn."""
    if bits == 32:
        return " ".join(f"mov.b32 {name}, {{{sources[k % len(sources)]}}};" for k, name in enumerate(names))
    return " ".join(
        f"mov.b32 {group(names[k : k + 2])}, {{{sources[k // 2 % len(sources)]}}};"
        for k in range(0, len(names), 2)
    )


def folded(names: list[str], bits: int) -> str:
    """Every register into {d}, each turned by another angle so that none hides another."""
    lines = ["mov.b32 {d}, 0;"]
    for k in range(0, len(names), 32 // bits):
        word = names[k] if bits == 32 else group(names[k : k + 2])
        lines.append(f"mov.b32 t, {word}; xor.b32 {{d}}, {{d}}, t; shf.l.wrap.b32 {{d}}, {{d}}, {{d}}, 5;")
    return " ".join(lines)


def vector_form(op: str, t: str, n: int, returns: bool) -> Form:
    """Memory holds {a}, {b}, {c} in turn, the operand is {c}, {a}, {b} in turn."""
    bits = 8 * width_of(t)
    names = {letter: [f"{letter}{k}" for k in range(n)] for letter in "mvrn"}
    held = names["m"]
    words = f"v{n}.b{bits}" if n <= 4 else "v4.b32"
    packed = held if n <= 4 else [f"w{k}" for k in range(4)]
    registers = ", ".join(f"{letter}<{n}>" for letter in names)
    lines = [f"{{{{ .reg .b{bits} {registers}; .reg .b32 t, w<4>;"]
    lines.append(spread(names["m"], "abc", bits))
    lines.append(spread(names["v"], "cab", bits))
    if n > 4:
        lines += [f"mov.b32 w{k}, {group(held[2 * k : 2 * k + 2])};" for k in range(4)]
    lines.append(f"st.global.{words} [{{e}}], {group(packed)};")
    head = f"global.v{n}.{t}.{op}"
    if returns:
        lines.append(f"atom.{head} {group(names['r'])}, [{{e}}], {group(names['v'])};")
    else:
        lines.append(f"red.{head} [{{e}}], {group(names['v'])}; {spread(names['r'], 'b', bits)}")
    lines.append(f"ld.global.{words} {group(packed if n > 4 else names['n'])}, [{{e}}];")
    if n > 4:
        lines += [f"mov.b32 {group(names['n'][2 * k : 2 * k + 2])}, w{k};" for k in range(4)]
    lines.append(folded(names["n"] + names["r"], bits) + " }}")
    pair = {"f16": "f16x2", "bf16": "bf16x2"}.get(t, t)
    return Form(" ".join(lines), "b32", (pair,) * 3, count=512, name=f"{'atom' if returns else 'red'}.{head}")


def wide_atomic(op: str) -> Form:
    """Memory holds {a}, {b}, the new value is {c}, {a}; half of the threads compare with what is there."""
    swap = (
        "atom.global.b128.exch old, [{e}], new;"
        if op == "exch"
        else "setp.ne.b64 p, {c}, 0; selp.b64 x, {a}, {b}, p; mov.b128 cmp, {{x, {b}}}; "
        "atom.global.b128.cas old, [{e}], cmp, new;"
    )
    return Form(
        "{{ .reg .b128 old, new, cmp; .reg .b64 x, y, z, w; .reg .pred p; "
        "st.global.v2.b64 [{e}], {{{a}, {b}}}; mov.b128 new, {{{c}, {a}}}; "
        f"{swap} mov.b128 {{{{x, y}}}}, old; ld.global.v2.b64 {{{{z, w}}}}, [{{e}}]; "
        "shl.b64 y, y, 1; xor.b64 x, x, y; mul.lo.u64 z, z, 3; xor.b64 x, x, z; mul.lo.u64 w, w, 5; "
        "xor.b64 {d}, x, w; }}",
        "b64",
        ("b64", "b64", "b64"),
        count=512,
        name=f"atom.global.b128.{op}",
    )


def tile_form(op: str, count: int, trans: str) -> Form:
    """stmatrix or ldmatrix of several tiles, each register another mixture of the operands."""
    registers = [f"x{k}" for k in range(count)]
    mix = " ".join(f"mul.lo.u32 x{k}, {{a}}, {2 * k + 1}; xor.b32 x{k}, x{k}, {{b}};" for k in range(count))
    place = (
        "mov.u32 l, %tid.x; shr.u32 w, l, 5; mul.lo.u32 w, w, 512; and.b32 l, l, 31; mov.u32 t, tile; "
        "add.u32 w, w, t; mad.lo.u32 p, l, 16, w; mad.lo.u32 q, l, 4, w; "
    )
    shared = " ".join(f"st.shared.b32 [q+{128 * k}], x{k};" for k in range(count))
    back = " ".join(
        f"ld.shared.b32 x, [q+{128 * k}]; xor.b32 y, y, x; shf.l.wrap.b32 y, y, y, 7;" for k in range(count)
    )
    fold = " ".join(f"xor.b32 y, y, x{k}; shf.l.wrap.b32 y, y, y, 7;" for k in range(count))
    vector = group(registers)
    modifiers = f"sync.aligned.m8n8.x{count}{trans}.shared.b16"
    body = (
        f"stmatrix.{modifiers} [p], {vector}; bar.warp.sync 0xffffffff; {back}"
        if op == "stmatrix"
        else f"{shared} bar.warp.sync 0xffffffff; ldmatrix.{modifiers} {vector}, [p]; {fold}"
    )
    return Form(
        "{{ .shared .align 16 .b8 tile[2048]; .reg .u32 p, q, l, w, t, y; .reg .b32 x, x<4>; "
        f"{mix} mov.u32 y, 0; {place} {body} mov.b32 {{d}}, y; }}}}",
        "b32",
        ("b32", "b32"),
        count=128,
        name=f"{op}.x{count}{trans}",
    )


def special_form(name: str, bits: int = 32) -> Form:
    """A special register plus the operand."""
    return Form(
        f"{{{{ .reg .u{bits} x; mov.u{bits} x, %{name}; add.u{bits} {{d}}, x, {{a}}; }}}}",
        f"u{bits}",
        (f"u{bits}",),
        count=256,
        name=f"%{name}",
    )


SPECIALS = (
    *(f"clusterid.{c}" for c in "xyz"),
    *(f"nclusterid.{c}" for c in "xyz"),
    *(f"cluster_ctaid.{c}" for c in "xyz"),
    *(f"cluster_nctaid.{c}" for c in "xyz"),
    *("cluster_ctarank", "cluster_nctarank", "total_smem_size", "aggr_smem_size", "dynamic_smem_size"),
    *("reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap"),
    *(f"lanemask_{c}" for c in ("eq", "le", "lt", "ge", "gt")),
    *("laneid", "tid.x", "ntid.x", "ctaid.x", "nctaid.x", "tid.y", "ntid.z"),
)


def wide_forms() -> Iterator[Form]:
    for op, t, n in VECTORS:
        yield vector_form(op, t, n, True)
        yield vector_form(op, t, n, False)
    for op in ("exch", "cas"):
        yield wide_atomic(op)
    yield Form(
        "{{ .reg .b128 x; .reg .b64 y, z; st.global.v2.b64 [{e}], {{{a}, {b}}}; ld.global.b128 x, [{e}]; "
        "mov.b128 {{y, z}}, x; shl.b64 z, z, 1; st.global.b128 [{e}], x; ld.global.b64 {d}, [{e}+8]; "
        "mad.lo.u64 {d}, {d}, 3, y; xor.b64 {d}, {d}, z; }}",
        "b64",
        ("b64", "b64"),
        count=128,
        name="ld.st.global.b128",
    )
    for op in ("ldmatrix", "stmatrix"):
        for count in (2, 4):
            for trans in ("", ".trans"):
                yield tile_form(op, count, trans)
    for name in SPECIALS:
        yield special_form(name)
    yield Form(
        "{{ .reg .pred p; mov.pred p, %is_explicit_cluster; selp.u32 {d}, 1, 0, p; add.u32 {d}, {d}, {a}; }}",
        "u32",
        ("u32",),
        count=128,
        name="%is_explicit_cluster",
    )
    yield Form(
        "{{ .reg .pred p; .reg .u32 r; elect.sync r|p, 0xffffffff; selp.u32 {d}, 7, 0, p; "
        "add.u32 {d}, {d}, r; add.u32 {d}, {d}, {a}; }}",
        "u32",
        ("u32",),
        count=128,
        name="elect.sync",
    )
    yield Form(
        "{{ .shared .align 4 .b8 room[64]; .reg .u32 p, q; .reg .u64 g, h; mov.u32 p, room; "
        "mapa.shared::cluster.u32 q, p, 0; sub.u32 {d}, q, p; add.u32 {d}, {d}, {a}; }}",
        "u32",
        ("u32",),
        count=128,
        name="mapa.shared::cluster.u32",
    )

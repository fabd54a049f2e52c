"""wmma: matrices from memory, products, and where a fragment's elements lie. Standard library only."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from .operands import pack

BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "s32": 32,
    "f64": 64,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "b1": 1,
}
WARPS = 4
SQUARE, HIGH, WIDE = "m16n16k16", "m32n8k16", "m8n32k16"


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def registers(shape: str, role: str, t: str) -> int:
    """Of a fragment, each of 32 bits (64 for f64)."""
    if t == "f16" and role in "ab":
        return 8
    m, n, k = sizes(shape)
    elements = {"a": m * k, "b": k * n}.get(role, m * n)
    return elements * BITS[t] // 32 // (64 if t == "f64" else 32)


@dataclass(frozen=True)
class Wmma:
    """D = A * B + C of one warp, in global memory; ``load``: the registers of one matrix are the answer."""

    shape: str
    d: str
    a: str
    b: str
    c: str = ""
    layout: str = "row.col"
    memory: str = "row"  # of C and D
    mode: str = ""
    bits: str = ""
    load: str = ""

    @property
    def name(self) -> str:
        if self.load:
            return f"wmma.load.{self.load}.{self.shape}.{self.type_of(self.load)}.{self.order(self.load)}"
        types = f"{self.d}.{self.a}.{self.b}.{self.type_of('c')}"
        return f"wmma.{self.shape}.{types}.{self.layout}.{self.memory}{self.mode}{self.bits}"

    def type_of(self, role: str) -> str:
        return {"a": self.a, "b": self.b, "c": self.c or self.d, "d": self.d}[role]

    def order(self, role: str) -> str:
        a, b = self.layout.split(".")
        return {"a": a, "b": b}.get(role, self.memory)

    def extent(self, role: str) -> tuple[int, int]:
        m, n, k = sizes(self.shape)
        return {"a": (m, k), "b": (k, n)}.get(role, (m, n))

    def bytes_of(self, role: str) -> int:
        rows, columns = self.extent(role)
        return rows * columns * BITS[self.type_of(role)] // 8

    @property
    def result_type(self) -> str:
        return self.type_of(self.load) if self.load else self.d

    @property
    def out_bytes(self) -> int:
        """Of one warp."""
        if not self.load:
            return self.bytes_of("d")
        wide = 8 if self.result_type == "f64" else 4
        return 32 * wide * registers(self.shape, self.load, self.result_type)

    def inputs(self, moderate) -> list[bytes]:  # type: ignore[no-untyped-def]
        """Matrices of all warps; those of a load hold a number for each element."""
        source = random.Random("wmma:" + self.name)
        arrays = []
        for role in "abc":
            t = self.type_of(role)
            each = BITS[t]
            count = WARPS * self.bytes_of(role) * 8 // each
            values = [k & ((1 << each) - 1) if self.load else moderate(t, source) for k in range(count)]
            if each < 8:
                per = 32 // each
                words = [sum(values[w + p] << (each * p) for p in range(per)) for w in range(0, count, per)]
                arrays.append(pack(words, 4))
            else:
                arrays.append(bytes(values) if each == 8 else pack(values, each // 8))
        return arrays

    def statement(self, role: str, address: str, group: str) -> str:
        rows, columns = self.extent(role)
        order, t = self.order(role), self.type_of(role)
        stride = columns if order == "row" else rows
        if role == "d":
            return (
                f"  wmma.store.d.sync.aligned.{order}.{self.shape}.global.{t} [{address}], {group}, {stride};"
            )
        return (
            f"  wmma.load.{role}.sync.aligned.{order}.{self.shape}.global.{t} {group}, [{address}], {stride};"
        )

    def kernel(self, name: str, params: str, thread: str) -> str:
        groups = {}
        lines = [f".visible .entry {name}({params})", "{", "  .reg .u32 %t<5>; .reg .u64 %x, %y;", thread]
        lines.append("  mov.u32 %t4, %ctaid.x;")
        for role in "abcd":
            t = self.type_of(role)
            count = registers(self.shape, role, t)
            kind = "b64" if t == "f64" else "f32" if t == "f32" else "b32"
            lines.append(f"  .reg .{kind} %{role}<{count}>;")
            groups[role] = "{" + ", ".join(f"%{role}{r}" for r in range(count)) + "}"
        for role in self.load or "abc":
            lines.append(
                f"  ld.param.u64 %y, [p{role}]; mul.wide.u32 %x, %t4, {self.bytes_of(role)}; "
                "add.u64 %y, %y, %x;"
            )
            lines.append(self.statement(role, "%y", groups[role]))
        if self.load:
            count = registers(self.shape, self.load, self.result_type)
            wide = 64 if self.result_type == "f64" else 32
            lines.append(
                f"  ld.param.u64 %y, [po]; mul.wide.u32 %x, %t0, {wide // 8 * count}; add.u64 %y, %y, %x;"
            )
            lines.extend(f"  st.global.b{wide} [%y+{wide // 8 * r}], %{self.load}{r};" for r in range(count))
        else:
            types = f"{self.d}.{self.type_of('c')}"
            if self.a != "f16":
                types = f"{self.d}.{self.a}.{self.b}.{self.type_of('c')}"
            order = ", ".join(groups[role] for role in "dabc")
            lines.append(
                f"  wmma.mma{self.bits}.sync.aligned.{self.layout}.{self.shape}.{types}{self.mode} {order};"
            )
            lines.append(
                f"  ld.param.u64 %y, [po]; mul.wide.u32 %x, %t4, {self.bytes_of('d')}; add.u64 %y, %y, %x;"
            )
            lines.append(self.statement("d", "%y", groups["d"]))
        return "\n".join([*lines, "  ret;", "}"]) + "\n"


LAYOUTS = ("row.col", "row.row", "col.col", "col.row")
SHAPES = (SQUARE, HIGH, WIDE)


def products() -> Iterator[Wmma]:
    for shape in SHAPES:
        for layout in LAYOUTS:
            yield Wmma(shape, "f32", "f16", "f16", layout=layout)
            yield Wmma(shape, "f16", "f16", "f16", layout=layout, memory="col")
            yield Wmma(shape, "f32", "bf16", "bf16", layout=layout)
            for t in ("s8", "u8"):
                yield Wmma(shape, "s32", t, t, layout=layout, memory="col" if t == "s8" else "row")
        yield Wmma(shape, "f32", "f16", "f16", c="f16")
        yield Wmma(shape, "f16", "f16", "f16", c="f32")
        yield Wmma(shape, "s32", "s8", "s8", mode=".satfinite")
    for layout in LAYOUTS:
        yield Wmma("m16n16k8", "f32", "tf32", "tf32", layout=layout)
        yield Wmma("m8n8k4", "f64", "f64", "f64", layout=layout)
    for t in ("s4", "u4"):
        yield Wmma("m8n8k32", "s32", t, t)
    for op in ("and", "xor"):
        yield Wmma("m8n8k128", "s32", "b1", "b1", bits=f".{op}.popc")


def loads() -> Iterator[Wmma]:
    for shape in SHAPES:
        for t in ("f16", "bf16", "s8"):
            d = "s32" if t == "s8" else "f32"
            for role in "ab":
                for layout in ("row.row", "col.col"):
                    yield Wmma(shape, d, t, t, layout=layout, load=role)
        for d in ("f16", "f32", "s32"):
            t = "s8" if d == "s32" else "f16"
            for memory in ("row", "col"):
                yield Wmma(shape, d, t, t, memory=memory, load="c")
    for role in "ab":
        for layout in ("row.row", "col.col"):
            yield Wmma("m16n16k8", "f32", "tf32", "tf32", layout=layout, load=role)
            yield Wmma("m8n8k4", "f64", "f64", "f64", layout=layout, load=role)
        yield Wmma("m8n8k32", "s32", "s4", "s4", load=role)
        yield Wmma("m8n8k128", "s32", "b1", "b1", load=role)
    yield Wmma("m16n16k8", "f32", "tf32", "tf32", load="c")
    yield Wmma("m8n8k4", "f64", "f64", "f64", load="c")
    yield Wmma("m8n8k32", "s32", "s4", "s4", load="c")


WMMA = (*products(), *loads())

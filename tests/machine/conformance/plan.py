"""The whole run: PTX modules, one input file, one text plan; both runners read the same three things.

A plan line is ``module kernel grid block out_bytes a_offset b_offset c_offset``, an offset of -1 for an
operand that is not there. The runner writes the outputs one behind the other. Standard library only.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import ptx
from .answers import digest
from .catalogue import FAMILIES, all_forms
from .forms import Form, width_of
from .operands import operand_sets, pack, random_value
from .warp_forms import MMA, Mma
from .wmma_forms import WARPS, WMMA, Wmma

KERNELS_PER_MODULE = 64
MMA_WARPS = 8
VERSION = "8.6"
"""Of the PTX of a module whose forms need none later."""
Entry = Form | Mma | Wmma
MATRICES: tuple[Mma | Wmma, ...] = (*MMA, *WMMA)
MATRIX = "matrix"
PLANNED = (*FAMILIES, MATRIX)
"""Every family that is recorded and compared."""


@dataclass(frozen=True)
class Item:
    """One kernel of the plan, and where its answer lies in the output.

    question: a digest of its kernel and operands.
    """

    key: str
    question: str
    out_offset: int
    out_bytes: int


def form_inputs(form: Form) -> list[bytes]:
    sets = operand_sets(tuple("u32" if t == "pred" else t for t in form.operands), form.count, form.key)
    return [pack(values, width_of(t)) for values, t in zip(sets, form.operands, strict=True)]


def moderate(type_name: str, source: random.Random) -> int:
    """An element of a matrix: finite, so that sums say something."""
    if type_name in ("s8", "u8"):
        return source.getrandbits(8)
    if type_name in ("s4", "u4", "b1"):
        return source.getrandbits(ptx.MMA_BITS[type_name])
    if type_name in ("e4m3", "e5m2"):
        value = source.getrandbits(8)
        return value & 0xBF | (0x08 if type_name == "e4m3" else 0x10)
    if type_name == "f16":
        return source.getrandbits(1) << 15 | (12 + source.getrandbits(2)) << 10 | source.getrandbits(10)
    if type_name == "bf16":
        return source.getrandbits(1) << 15 | (124 + source.getrandbits(2)) << 7 | source.getrandbits(7)
    if type_name in ("f32", "tf32"):
        return source.getrandbits(1) << 31 | (124 + source.getrandbits(2)) << 23 | source.getrandbits(23)
    if type_name == "f64":
        return source.getrandbits(1) << 63 | (1020 + source.getrandbits(2)) << 52 | source.getrandbits(52)
    return random_value("i32", source)


def mma_inputs(op: Mma) -> list[bytes]:
    source = random.Random("mma:" + op.name)
    bits = {**ptx.MMA_BITS, "f32": 32, "s32": 32}
    result = []
    for t, count in zip((op.a, op.b, op.c or op.d), ptx.mma_counts(op)[1:], strict=True):
        element = bits.get(t, 8)
        width = 8 if op.a == "f64" else 4
        values = []
        for _ in range(MMA_WARPS * 32 * count):
            value = 0
            for part in range(8 * width // element):
                value |= moderate(t, source) << (element * part)
            values.append(value)
        result.append(pack(values, width))
    return result


def write_plan(folder: Path, families: Iterable[str]) -> list[Item]:
    """The plan of all forms of the families, of which MATRIX is one. Returns what each answer is."""
    all_forms()  # no two of one key
    work: list[tuple[Entry, list[bytes]]] = []
    for family in families:
        if family == MATRIX:
            work.extend((op, mma_inputs(op)) for op in MMA)
            work.extend((op, op.inputs(moderate)) for op in WMMA)
        else:
            work.extend((form, form_inputs(form)) for form in FAMILIES[family]())
    return write_entries(folder, "sm_90", work)


def key_of(entry: Entry) -> str:
    """By which its answer is known."""
    return entry.key if isinstance(entry, Form) else entry.name


def kernel_of(entry: Entry, name: str) -> str:
    """Its PTX, as a kernel of this name."""
    if isinstance(entry, Form):
        return ptx.kernel(entry, name)
    return (
        entry.kernel(name, ptx.PARAMS, ptx.THREAD) if isinstance(entry, Wmma) else ptx.mma_kernel(entry, name)
    )


def write_entries(folder: Path, target: str, work: list[tuple[Entry, list[bytes]]]) -> list[Item]:
    """Writes modules ``m<k>.ptx``, ``inputs.bin`` and ``plan.txt`` for forms with their operand arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    items: list[Item] = []
    lines: list[str] = []
    inputs = bytearray()
    modules: list[str] = []
    offset, version = 0, ""
    for index, (entry, arrays) in enumerate(work):
        needs = getattr(entry, "version", VERSION)
        if index % KERNELS_PER_MODULE == 0 or needs != version:
            version = needs
            modules.append(ptx.HEADER.format(version=version, target=target))
        if isinstance(entry, Form):
            grid, block, out = entry.count // entry.block, entry.block, entry.count * width_of(entry.d)
        elif isinstance(entry, Wmma):
            grid, block, out = WARPS, 32, WARPS * entry.out_bytes
        else:
            grid, block = MMA_WARPS, 32
            out = MMA_WARPS * 32 * ptx.mma_counts(entry)[0] * (8 if entry.a == "f64" else 4)
        name = f"k{index}"
        modules[-1] += kernel_of(entry, name)
        asked = f"{version} {target} {grid} {block} {out}\n{kernel_of(entry, 'k')}"
        question = digest(b"".join((asked.encode(), *(digest(array).encode() for array in arrays))))
        offsets = []
        for array in arrays:
            while len(inputs) % 16:
                inputs.append(0)
            offsets.append(len(inputs))
            inputs += array
        offsets += [-1] * (3 - len(offsets))
        lines.append(f"{len(modules) - 1} {name} {grid} {block} {out} {' '.join(map(str, offsets))}")
        items.append(Item(key_of(entry), question, offset, out))
        offset += out
    for number, text in enumerate(modules):
        (folder / f"m{number}.ptx").write_text(text)
    (folder / "inputs.bin").write_bytes(bytes(inputs))
    (folder / "plan.txt").write_text("\n".join(lines) + "\n")
    return items

"""Operands of the instruction forms: edge values of each type, then seeded random bits.

``random.Random.getrandbits`` is the one source of randomness; its stream is fixed by the language, so the
operands need not be stored with the answers. Standard library only.
"""

import random
import struct

EDGES: dict[str, list[int]] = {
    "f32": [
        0x00000000,
        0x80000000,
        0x00000001,
        0x80000001,
        0x007FFFFF,
        0x807FFFFF,
        0x00800000,
        0x80800000,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0xFFC12345,
        0xFFA00000,
        0x7F800001,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x3F800001,
        0x3F7FFFFF,
        0x00800001,
        0x34000000,
        0x3FC00000,
        0x4F000000,
        0xCF000000,
        0x3F000000,
        0x7E800001,
        0x33800000,
        0x4B800001,
        0x40200000,
        0xBF000000,
        0x4EFFFFFF,
        0x5F000000,
        0xDF000000,
        0x5F7FFFFF,
        0x4F7FFFFF,
        0x4F800000,
        0x477FE000,
        0x477FF000,
        0x477FEFFF,
        0x38800000,
        0x387FFFFF,
        0x33000000,
        0x33000001,
        0x43E00000,
        0x43E80000,
        0x43E7FFFF,
        0x3B000000,
        0x3A800000,
        0x47600000,
        0x47700000,
        0x7F000000,
        0x7E800000,
        0x40490FDB,
        0xC0490FDB,
        0x42FE0000,
        0x42FFFFFF,
        0x43000000,
        0xC3000000,
        0x437F0000,
        0x477FFF00,
        0x47000000,
        0xC7000000,
        0x3F808000,
        0x3F818000,
        0x7F7F8000,
        0x40400000,
        0x40A00000,
        0x40E00000,
        0x3E800000,
        0x3DCCCCCD,
        0x42C80000,
        0xC2AEAC50,
    ],
    "f64": [
        0x0000000000000000,
        0x8000000000000000,
        0x0000000000000001,
        0x800FFFFFFFFFFFFF,
        0x0010000000000000,
        0x3FF0000000000000,
        0xBFF0000000000000,
        0x7FF0000000000000,
        0xFFF0000000000000,
        0x7FF8000000000000,
        0xFFF8000000012345,
        0x7FF4000000000000,
        0xFFF8000000000000,
        0xFFF7FFFFFFFFFFFF,
        0x7FF0000000000001,
        0x7FEFFFFFFFFFFFFF,
        0xFFEFFFFFFFFFFFFF,
        0x3FF0000000000001,
        0x3FEFFFFFFFFFFFFF,
        0x3CA0000000000000,
        0x3FE0000000000000,
        0x4004000000000000,
        0x41E0000000000000,
        0xC1E0000000000000,
        0x43E0000000000000,
        0xC3E0000000000000,
        0x41DFFFFFFFC00000,
        0x47EFFFFFE0000000,
        0x47EFFFFFF0000000,
        0x3810000000000000,
        0x380FFFFFFFFFFFFF,
        0x36A0000000000000,
        0x3690000000000000,
        0x43F0000000000000,
        0x41F0000000000000,
        0x40EFFC0000000000,
        0x40EFFE0000000000,
        0x3FF8000000000000,
    ],
    "f16": [
        0x0000,
        0x8000,
        0x0001,
        0x8001,
        0x03FF,
        0x83FF,
        0x0400,
        0x3C00,
        0xBC00,
        0x7C00,
        0xFC00,
        0x7E00,
        0xFE01,
        0x7C01,
        0x7BFF,
        0xFBFF,
        0x3C01,
        0x3BFF,
        0x1400,
        0x3800,
        0x4100,
        0x0401,
        0x7800,
        0x3555,
        0x5C00,
        0x5F00,
        0x5F80,
        0xB800,
    ],
    "bf16": [
        0x0000,
        0x8000,
        0x0001,
        0x8001,
        0x007F,
        0x807F,
        0x0080,
        0x3F80,
        0xBF80,
        0x7F80,
        0xFF80,
        0x7FC0,
        0xFFC1,
        0x7F81,
        0x7F7F,
        0xFF7F,
        0x3F81,
        0x3F7F,
        0x3B80,
        0x3F00,
        0x4020,
        0x0081,
        0x7E80,
        0x3EAB,
        0x0040,
        0x0041,
        0x4F00,
        0xCF00,
    ],
    "i64": [
        0,
        1,
        2,
        0xFFFFFFFFFFFFFFFF,
        0x7FFFFFFFFFFFFFFF,
        0x8000000000000000,
        0x8000000000000001,
        3,
        31,
        32,
        33,
        63,
        64,
        65,
        0x7FFFFFFF,
        0x80000000,
        0xFFFFFFFF,
        0x100000000,
        0x0123456789ABCDEF,
        0xFEDCBA9876543210,
        255,
        0xFFFFFF00,
        1 << 53,
        (1 << 53) + 1,
        0xFFFFFFFFFFFFF800,
        0xFFFFFFFFFFFFFC00,
        0x7FFFFFFFFFFFFDFF,
        0xAAAAAAAAAAAAAAAA,
    ],
    "i32": [
        0,
        1,
        2,
        0xFFFFFFFF,
        0x7FFFFFFF,
        0x80000000,
        0x80000001,
        3,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        0xFF,
        0x80,
        0x7F,
        0x8000,
        0xFFFF,
        0x7FFF,
        0x10000,
        0x01234567,
        0xFEDCBA98,
        0xAAAAAAAA,
        0x01FFFFFF,
        0x00FFFFFF,
        0x01000001,
        0xFFFFFF80,
        64,
    ],
    "i16": [
        0,
        1,
        2,
        0xFFFF,
        0x7FFF,
        0x8000,
        0x8001,
        3,
        15,
        16,
        17,
        31,
        32,
        0xFF,
        0x80,
        0x7F,
        0x1234,
        0xFEDC,
        0xAAAA,
        255,
        0xFF80,
        0x0100,
        0x5555,
        0xFF00,
    ],
}
BITS = {"f32": 32, "f64": 64, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16}


def kind_of(type_name: str) -> str:
    """The row of ``EDGES`` for a PTX type; pairs and 8-bit types are taken as integers of their width."""
    if type_name in EDGES:
        return type_name
    digits = "".join(c for c in type_name.split("x")[0] if c.isdigit())
    if type_name in ("f16x2", "bf16x2"):
        return type_name
    bits = int(digits) * (2 if type_name.endswith("x2") else 1)
    return {8: "i16", 16: "i16", 32: "i32", 64: "i64"}[bits]


def edges(type_name: str) -> list[int]:
    kind = kind_of(type_name)
    if kind in ("f16x2", "bf16x2"):
        half = EDGES[kind[:-2]]
        return [value | half[(3 * k + 7) % len(half)] << 16 for k, value in enumerate(half)]
    return EDGES[kind]


def random_value(type_name: str, source: random.Random) -> int:
    """Any bits, or (every other time for floating types) a value of moderate size."""
    kind = kind_of(type_name)
    if kind in ("f16x2", "bf16x2"):
        return random_value(kind[:-2], source) | random_value(kind[:-2], source) << 16
    bits = BITS[kind]
    value = source.getrandbits(bits)
    moderate = source.getrandbits(2)
    if kind == "f32" and moderate:
        value = value & 0x807FFFFF | (127 - 12 + (value >> 23) % 25) << 23
    elif kind == "f64" and moderate:
        value = value & 0x800FFFFFFFFFFFFF | (1023 - 30 + (value >> 52) % 61) << 52
    elif kind == "bf16" and moderate:
        value = value & 0x807F | (127 - 6 + (value >> 7) % 13) << 7
    elif kind.startswith("i") and moderate == 0:
        value >>= source.getrandbits(6) % bits
    return value


def operand_sets(types: tuple[str, ...], count: int, seed: str) -> list[list[int]]:
    """``count`` operand tuples as one list an operand: crossed edge values first, random ones behind them."""
    source = random.Random("operands:" + seed)
    lists = [edges(t) for t in types]
    rows: list[tuple[int, ...]]
    if len(types) == 1:
        rows = [(v,) for v in lists[0]]
    elif len(types) == 2:
        side = max(4, int((count * 3 // 4) ** 0.5))
        rows = [(a, b) for a in lists[0][:side] for b in lists[1][:side]]
    else:
        side = max(3, round((count * 0.7) ** (1 / len(types))))
        rows = [()]
        for values in lists:
            rows = [(*row, v) for row in rows for v in values[:side]]
    rows = rows[:count]
    while len(rows) < count:
        rows.append(tuple(random_value(t, source) for t in types))
    return [[row[k] for row in rows] for k in range(len(types))]


def pack(values: list[int], width: int) -> bytes:
    return struct.pack(f"<{len(values)}{ {2: 'H', 4: 'I', 8: 'Q'}[width] }", *values)

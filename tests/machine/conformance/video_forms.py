"""Video instructions: on chosen bytes and halfwords, or on several parts at once. Standard library only."""

import re
from collections.abc import Iterator
from itertools import product

from .forms import Form

SIGNS = ("u32", "s32")
SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
ORDERS = ("eq", "ne", "lt", "le", "gt", "ge")
PARTS = ("b0", "b1", "b2", "b3", "h0", "h1")
SECOND = ("add", "min", "max")
# Selectors of two and four parts: the usual order, reversed, repeated, mixed.
CHOICES = {2: ("", ".h32", ".h01", ".h13", ".h22"), 4: ("", ".b3210", ".b7654", ".b0246", ".b5555", ".b7310")}
MASKS = {2: ("", ".h0", ".h1", ".h10"), 4: ("", ".b0", ".b31", ".b210", ".b3210")}


# The processor has few of these instructions. ptxas 13.0 expands the others, these not to what PTX defines
# (an unsigned saturation that wraps, a half of the result that is lost): the H200's answers show it.
EXPANDED_OTHERWISE = re.compile(
    "|".join(
        (
            r"vadd\.u32\.(u32\.[us]32|s32\.u32)\.sat(\.\w+)?d_a_b(_c)?",
            r"v(add|sub)\.u32\.s32\.s32\.sat\.(min|max)d_a_b_c",
            r"vsub\.u32\.u32\.u32\.sat\.(min|max)d_a_b_c",
            r"vsub\.u32\.u32\.s32\.sat(\.\w+)?d_a_b(_c)?",
            r"vabsdiff\.u32\.(u32\.s32|s32\.u32)\.sat(\.(add|max))?d_a_b(_c)?",
            r"vadd\.[us]32\.[us]32\.s32\.satd\.(b\d|h0)_.*",
            r"v\w+\.[us]32\.[us]32\.s32(\.sat)?d\.h1_.*",
            r"vshl\..*\.sat\..*",
            r"vmad\.u32\.u32\.u32\..*",
        )
    )
)


def form(text: str, operands: int = 3, count: int = 256) -> Form:
    """``text`` names the registers {d}, {a}, {b} and {c}, which may have selectors; it names the form too."""
    name = text.translate(str.maketrans(dict.fromkeys("{} "))).replace(",", "_").rstrip(";")
    return Form(text, "u32", ("u32",) * operands, count=count, name=name)


def scalar_forms() -> Iterator[Form]:
    for op, d, a, b in product(SCALAR, SIGNS, SIGNS, SIGNS):
        for sat in ("", ".sat"):
            yield form(f"{op}.{d}.{a}.{b}{sat} {{d}}, {{a}}, {{b}};", 2, 128)
        for second in SECOND:
            yield form(f"{op}.{d}.{a}.{b}.sat.{second} {{d}}, {{a}}, {{b}}, {{c}};", 3, 128)
    for k, part in enumerate(PARTS):
        other = PARTS[(k * 5 + 2) % 6]
        for op, sign in product(("vadd", "vabsdiff"), SIGNS):
            yield form(f"{op}.{sign}.s32.u32 {{d}}, {{a}}.{part}, {{b}}.{other};", 2, 128)
            for sat in ("", ".sat"):
                yield form(f"{op}.{sign}.{sign}.s32{sat} {{d}}.{part}, {{a}}, {{b}}.{other}, {{c}};", 3, 128)
    for op, mode, d, a in product(("vshl", "vshr"), ("clamp", "wrap"), SIGNS, SIGNS):
        for sat in ("", ".sat"):
            yield form(f"{op}.{d}.{a}.u32{sat}.{mode} {{d}}, {{a}}, {{b}};", 2, 128)
        yield form(f"{op}.{d}.{a}.u32.sat.{mode}.add {{d}}, {{a}}.h1, {{b}}.b0, {{c}};", 3, 128)
    for c, a, b in product(ORDERS, SIGNS, SIGNS):
        yield form(f"vset.{a}.{b}.{c} {{d}}, {{a}}, {{b}};", 2, 128)
    yield form("vset.s32.u32.lt.add {d}, {a}.b3, {b}.h0, {c};", 3, 128)
    yield form("vset.s32.u32.ge {d}.b2, {a}.b3, {b}.h0, {c};", 3, 128)
    yield from multiply_forms()


def multiply_forms() -> Iterator[Form]:
    for a, b in product(SIGNS, SIGNS):
        d = "u32" if a == b == "u32" else "s32"
        for sat, shift in product(("", ".sat"), ("", ".shr7", ".shr15")):
            yield form(f"vmad.{d}.{a}.{b}{sat}{shift} {{d}}, {{a}}.h0, {{b}}.h1, {{c}};", 3, 128)
        yield form(f"vmad.{d}.{a}.{b}.sat {{d}}, {{a}}.b3, {{b}}.b2, {{c}};", 3, 128)
        for sat in ("", ".sat"):
            yield form(f"vmad.{d}.{a}.{b}.po{sat}.shr7 {{d}}, {{a}}.h1, {{b}}.h0, {{c}};", 3, 128)
    yield form("vmad.s32.u32.s32.sat.shr7 {d}, -{a}.h0, {b}.h1, {c};", 3, 128)
    yield form("vmad.s32.s32.s32.sat.shr15 {d}, {a}.h0, {b}.h1, -{c};", 3, 128)


def packed_forms() -> Iterator[Form]:
    for parts in (2, 4):
        for op, d, a, b in product((*SCALAR, "vavrg"), SIGNS, SIGNS, SIGNS):
            for mode in ("", ".sat", ".add"):
                yield form(f"{op}{parts}.{d}.{a}.{b}{mode} {{d}}, {{a}}, {{b}}, {{c}};", 3, 128)
        for c, a, b in product(ORDERS, SIGNS, SIGNS):
            yield form(f"vset{parts}.{a}.{b}.{c} {{d}}, {{a}}, {{b}}, {{c}};", 3, 128)
        yield form(f"vset{parts}.u32.s32.le.add {{d}}, {{a}}, {{b}}, {{c}};", 3, 128)
        choices, masks = CHOICES[parts], MASKS[parts]
        for k, (choice, mask) in enumerate(product(choices, masks)):
            other = choices[(k * 2 + 1) % len(choices)]
            yield form(f"vsub{parts}.s32.s32.u32 {{d}}{mask}, {{a}}{choice}, {{b}}{other}, {{c}};", 3, 128)
            yield form(
                f"vabsdiff{parts}.u32.u32.s32.add {{d}}{mask}, {{a}}{other}, {{b}}{choice}, {{c}};", 3, 128
            )


def video_forms() -> Iterator[Form]:
    yield from scalar_forms()
    yield from packed_forms()

"""Conversions: between scalars, packed, and those that sm_90 lacks. Standard library only."""

from collections.abc import Iterator

from .forms import INTS, ROUNDINGS, Form, binary, ternary, unary


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
    yield from saturating_and_flushing()
    for t in ("u16", "s16"):
        yield binary(f"cvt.pack.sat.{t}.s32", "b32", "s32", "s32", count=512)
    for t in ("u8", "s8", "u4", "s4", "u2", "s2"):
        yield ternary(f"cvt.pack.sat.{t}.s32.b32", "b32", "s32", "s32", "b32", count=512)


def saturating_and_flushing() -> Iterator[Form]:
    """What is left of types, roundings, .sat, .ftz, .satfinite and .relu, as ptxas accepts them."""

    def plain(mode: str, d: str, a: str, count: int = 128) -> Form:
        return unary(f"cvt{mode}.{d}.{a}", d, a, count=count)

    ints = ("u8", "s8", *INTS)
    for t in (*ints, "f16", "bf16", "f32", "f64"):
        yield plain("", t, t)
    yield plain("", "f64", "bf16", 512)
    yield plain(".ftz", "f32", "bf16", 512)
    for d, a in (("f16", "f16"), ("f32", "f16"), ("f64", "f16"), ("f64", "f32"), ("f64", "f64")):
        yield plain(".sat", d, a)
    for d, a in (("f32", "f16"), ("f64", "f32")):
        yield plain(".ftz.sat", d, a)
    for r in ("rni", "rzi", "rmi", "rpi"):
        for d in ints:
            for a in ("f16", "f32", "f64"):
                yield plain(f".{r}.sat", d, a)
            yield plain(f".{r}.ftz.sat", d, "f32")
        for t in ("f16", "f64"):
            yield plain(f".{r}.sat", t, t)
        yield plain(f".{r}", "bf16", "bf16", 512)
        if r != "rzi":
            for d in INTS:
                yield plain(f".{r}", d, "bf16", 256)
    for r in ROUNDINGS:
        for a in ints:
            for mode, d in ((".sat", "f16"), (".sat", "f64"), (".ftz", "f32"), (".ftz.sat", "f32")):
                yield plain(f".{r}{mode}", d, a)
            if r != "rn":
                yield plain(f".{r}.sat", "f32", a)
        yield plain(f".{r}.sat", "f16", "f64")
        yield plain(f".{r}.ftz.sat", "f16", "f32", 512)
        for d, a in (("f16", "bf16"), ("bf16", "f16"), ("bf16", "f64"), ("f32", "bf16"), ("f64", "bf16")):
            yield plain(f".{r}", d, a, 512)
        for d, a in (("bf16", "f32"), ("f32", "bf16")):
            yield plain(f".{r}.ftz", d, a, 512)
        if r != "rn":
            for a in INTS:
                yield plain(f".{r}", "bf16", a)
        if r in ("rm", "rp"):
            yield plain(f".{r}", "bf16", "f32", 1024)
    for r in ("rn", "rz"):
        yield plain(f".{r}.relu", "f16", "f32", 512)
        for mode in (".satfinite", ".relu.satfinite", ".satfinite.relu"):
            for d in ("f16", "bf16"):
                yield plain(f".{r}{mode}", d, "f32", 512)
                yield binary(f"cvt.{r}{mode}.{d}x2.f32", f"{d}x2", "f32", "f32", count=512)
    yield unary("cvt.rna.satfinite.tf32.f32", "b32", "f32", count=512)


def missing_on_hardware() -> Iterator[Form]:
    """Conversions that sm_90 lacks: compared with the format's definition, not with the hardware."""
    for relu in ("", ".relu"):
        yield Form(
            f"{{{{ .reg .b8 t; cvt.rn.satfinite{relu}.e2m1x2.f32 t, {{a}}, {{b}}; cvt.u16.u8 {{d}}, t; }}}}",
            "b16",
            ("f32", "f32"),
            hardware=False,
            name=f"cvt.rn.satfinite{relu}.e2m1x2.f32",
        )
        yield Form(
            f"{{{{ .reg .b8 t, u; mov.b16 {{{{t, u}}}}, {{a}}; cvt.rn{relu}.f16x2.e2m1x2 {{d}}, t; }}}}",
            "f16x2",
            ("b16",),
            hardware=False,
            name=f"cvt.rn{relu}.f16x2.e2m1x2",
        )
    for r in ("rz", "rp"):
        for sat in ("", ".satfinite"):
            yield binary(f"cvt.{r}{sat}.ue8m0x2.f32", "b16", "f32", "f32", hardware=False)
            yield unary(f"cvt.{r}{sat}.ue8m0x2.bf16x2", "b16", "bf16x2", hardware=False)
    yield unary("cvt.rn.bf16x2.ue8m0x2", "bf16x2", "b16", hardware=False)

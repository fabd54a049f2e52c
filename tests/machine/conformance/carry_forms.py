"""Chains of instructions that hand a carry on: each writer before each reader, and three in a row.

An addition may ask for the carry of a subtraction (nvcc divides 128-bit integers like that).
Standard library only.
"""

from collections.abc import Iterator

from .forms import Form

WRITERS = ("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc")
READERS = ("addc", "subc", "madc.lo", "madc.hi")


def instruction(op: str, t: str, d: str, sources: tuple[str, str, str]) -> str:
    """``op`` with as many of ``sources`` as it takes."""
    taken = sources if op.startswith("mad") else sources[:2]
    return f"{op}.{t} {d}, {', '.join(taken)};"


def carry_forms() -> Iterator[Form]:
    for t in ("u32", "s32", "u64", "s64"):
        for first in WRITERS:
            for last in READERS:
                text = instruction(first, t, "lo", ("{a}", "{b}", "{c}"))
                text += instruction(last, t, "{d}", ("{b}", "{c}", "lo"))
                yield Form(
                    f"{{{{ .reg .{t} lo; {text} }}}}", t, (t, t, t), count=512, name=f"{first}+{last}.{t}"
                )
            for middle in READERS:
                text = instruction(first, t, "lo", ("{a}", "{b}", "{c}"))
                text += instruction(f"{middle}.cc", t, "lo", ("{b}", "{c}", "{a}"))
                text += instruction("addc", t, "{d}", ("lo", "{c}", ""))
                yield Form(
                    f"{{{{ .reg .{t} lo; {text} }}}}",
                    t,
                    (t, t, t),
                    count=512,
                    name=f"{first}+{middle}.cc+addc.{t}",
                )

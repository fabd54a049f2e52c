"""The table of PTX: what the CPU device executes, what it refuses and why, asked of its decoder.

``python machine/table/table.py`` prints docs/reference/ptx.md. The instructions are in ``instructions.txt``.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent.parent))

from verify.toolchain.machine_build import machine_program  # noqa: E402

VERSION = "9.0"
LATER = "Later than sm_90"
"""The family of what sm_90 lacks."""

_REGISTERS = (
    ("r", "b32", 16),
    ("h", "b16", 8),
    ("d", "b64", 8),
    ("q", "b128", 4),
    ("f", "f32", 8),
    ("g", "f64", 8),
)
_CHOICE = re.compile(r"<([^<>]*)>")
_WHERE = re.compile(r"^kernel 'k', PTX line \d+: |^PTX line \d+: ")
_SPELLING = re.compile(r" in '[^']*'$")


@dataclass(frozen=True)
class Row:
    """One line of the data: ``family``, and the ``pattern`` of its statements."""

    family: str
    pattern: str

    def statements(self) -> list[str]:
        """Every choice in turn."""
        parts = _CHOICE.split(self.pattern)
        choices = [part.split("|") if k % 2 else [part] for k, part in enumerate(parts)]
        return ["".join(words) for words in itertools.product(*choices)]


def rows() -> list[Row]:
    """The whole table, in order."""
    result, family = [], ""
    for line in (HERE / "instructions.txt").read_text().splitlines():
        if line.startswith("= "):
            family = line[2:]
        elif line and not line.startswith("#"):
            result.append(Row(family, line))
    return result


def module(statements: list[str], target: str = "sm_90a") -> str:
    """PTX with one kernel ``k`` that holds the statements, and all that they name."""
    registers = " ".join(f".reg .{t} %{letter}<{count}>;" for letter, t, count in _REGISTERS)
    body = "\n  ".join(f"{s};" for s in statements)
    return (
        f".version {VERSION}\n.target {target}\n.address_size 64\n"
        ".global .align 16 .b8 g[64];\n.const .align 16 .b8 c[64];\n.func f() { ret; }\n"
        f".entry k(.param .u64 a) {{\n  .shared .align 16 .b8 s[64]; .local .align 16 .b8 l[64];\n"
        f"  .reg .pred %p<8>; {registers}\n  P: .callprototype _ ();\n  T: .branchtargets L, L;\n"
        f"  {body}\n  L: ret;\n}}\n"
    )


def refusals(statements: list[str]) -> list[str]:
    """What the decoder says of each statement alone; empty where it executes it. Raises MachineBuildError."""
    program = machine_program(HERE / "decode.cpp")
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "modules"
        texts.write_text("\0".join(module([s]) for s in statements))
        done = subprocess.run([str(program), str(texts)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    return [_SPELLING.sub("", _WHERE.sub("", line)) for line in lines]


def shown(pattern: str) -> str:
    return "`" + pattern.replace("|", "\\|") + "`"


def page() -> Iterator[str]:
    """docs/reference/ptx.md, line by line."""
    table = rows()
    forms = [row.statements() for row in table]
    answers = iter(refusals([s for statements in forms for s in statements]))
    judged = [[(s, next(answers)) for s in statements] for statements in forms]
    ours = [bad for row, found in zip(table, judged, strict=True) if row.family != LATER for _, bad in found]
    yield "# PTX on the CPU device"
    yield ""
    yield "Printed by `python machine/table/table.py` from the decoder itself; a test keeps it true."
    yield "`<a|b>` stands for each of its parts in turn. What the instructions compute is compared with an"
    yield "H200 (`tests/machine/conformance`). Of the forms that nvcc 13 accepts for sm_75 to sm_90a,"
    yield f"as far as the table lists them, {ours.count('')} of {len(ours)} execute."
    family = ""
    for row, found in zip(table, judged, strict=True):
        if row.family != family:
            family = row.family
            yield from ("", f"## {family}", "", "| instruction | forms | refused |", "|---|---|---|")
        bad = [(s, why) for s, why in found if why]
        reasons = sorted({why for _, why in bad})
        refused = "; ".join(reasons)
        if bad and len(bad) < len(found):
            refused = f"{len(bad)}: {refused}"
        yield f"| {shown(row.pattern)} | {len(found)} | {refused.replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    print("\n".join(page()))

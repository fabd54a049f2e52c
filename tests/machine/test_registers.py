"""Registers that share a place in the frame: no value may be lost while it is still needed.

Random structured kernels, with divergent branches, loops and guarded writes over many registers, against a
lane-by-lane evaluation in Python.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.machine.test_execution import HEAD, PROLOGUE, launch

REGISTERS, LANES = 24, 64
WORD = 0xFFFFFFFF


@dataclass
class Kernel:
    """A random body, as PTX and as a tree.

    Nodes: ("op", d, a, b, guard bit), ("if", bit, then, else), ("loop", n, body).
    """

    seed: int
    labels: int = 0
    text: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.tree = self.block(0)

    def say(self, line: str) -> None:
        self.text.append(line)

    def label(self) -> int:
        self.labels += 1
        return self.labels

    def block(self, depth: int) -> list[tuple[Any, ...]]:
        return [self.statement(depth) for _ in range(self.random.randrange(3, 9))]

    def statement(self, depth: int) -> tuple[Any, ...]:
        kind = self.random.random()
        if depth < 3 and kind < 0.15:
            return self.branch(depth)
        if depth < 3 and kind < 0.27:
            return self.loop(depth)
        d, a, b = (self.random.randrange(REGISTERS) for _ in range(3))
        bit = self.random.choice([None, None, None, 0, 2, 4])
        if bit is not None:
            self.say(f"and.b32 %x, %t, {1 << bit}; setp.ne.u32 %q, %x, 0;")
        guard = "" if bit is None else "@%q "
        self.say(f"{guard}mad.lo.u32 %v{d}, %v{a}, 5, %v{b}; {guard}add.u32 %v{d}, %v{d}, %t;")
        return ("op", d, a, b, bit)

    def branch(self, depth: int) -> tuple[Any, ...]:
        bit, label = self.random.randrange(5), self.label()
        self.say(f"and.b32 %x, %t, {1 << bit}; setp.eq.u32 %q, %x, 0; @%q bra ELSE{label};")
        then = self.block(depth + 1)
        self.say(f"bra END{label}; ELSE{label}:")
        other = self.block(depth + 1)
        self.say(f"END{label}:")
        return ("if", bit, then, other)

    def loop(self, depth: int) -> tuple[Any, ...]:
        """Lane l goes round 1 + l % n times."""
        n, label = self.random.randrange(1, 5), self.label()
        self.say(f".reg .u32 %n{label}; rem.u32 %n{label}, %t, {n};")
        self.say(f"add.u32 %n{label}, %n{label}, 1; LOOP{label}:")
        body = self.block(depth + 1)
        self.say(f"sub.u32 %n{label}, %n{label}, 1; setp.ne.u32 %q, %n{label}, 0; @%q bra LOOP{label};")
        return ("loop", n, body)

    def ptx(self) -> str:
        """Registers begin unwritten, which reads as zero; half of them are stored at the end."""
        stores = "".join(
            f"mad.lo.u32 %x, %t, {REGISTERS // 2}, {k}; mul.wide.u32 %e, %x, 4; add.u64 %e, %b, %e; "
            f"st.global.u32 [%e], %v{k};\n"
            for k in range(REGISTERS // 2)
        )
        head = f".reg .u32 %v<{REGISTERS}>, %x; .reg .pred %q; .reg .u64 %e;\n"
        return HEAD + PROLOGUE + head + "\n".join(self.text) + "\n" + stores + "ret;\n}\n"


def run(tree: list[tuple[Any, ...]], lane: int, v: list[int]) -> None:
    """What one lane does."""
    for node in tree:
        match node:
            case ("op", d, a, b, bit):
                if bit is None or lane >> bit & 1:
                    v[d] = (v[a] * 5 + v[b] + lane) & WORD
            case ("if", bit, then, other):
                run(then if lane >> bit & 1 else other, lane, v)
            case ("loop", n, body):
                for _ in range(1 + lane % n):
                    run(body, lane, v)


@pytest.mark.parametrize("seed", range(24))
def test_values_outlive_what_shares_their_place(tmp_path: Path, seed: int) -> None:
    """Fault: a place given away while another iteration, branch side or guarded write needs it."""
    kernel = Kernel(seed)
    words = LANES * REGISTERS // 2
    status, lines = launch(tmp_path, kernel.ptx(), f"buf={4 * words}", "dump=0:u32", block=str(LANES))
    assert status == "status: ok", status
    expected: list[int] = []
    for lane in range(LANES):
        v = [0] * REGISTERS
        run(kernel.tree, lane, v)
        expected += v[: REGISTERS // 2]
    assert [int(word) for word in lines[-1].split()] == expected

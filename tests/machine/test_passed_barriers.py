"""Which bypassed block barriers synccheck reports, in PTX that nvcc rarely writes or where counts decide.

128 threads run each kernel; whole programs of either kind are in ``programs/``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine.test_execution import HEAD, PROLOGUE, launch

KIND = "Divergent thread(s) in block at a barrier"
STORE = "st.global.u32 [%o], %t;"
# %p1: the lanes that stay away.
WARPS = "setp.ge.u32 %p1, %t, 64;"
LANES = "setp.ge.u32 %p1, %t, 45;"
MEET = ".func meet() { bar.sync 0; ret; }\n.func outer() { call.uni meet; ret; }\n"
# As many rounds as %r3 says, of which those with bit 0 of %r2 set go on at S.
ROUNDS = "mov.u32 %r2, 0; L: and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra S;"
NEXT = "S: st.global.u32 [%o], %r2; add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, %r3; @%p3 bra L;"

PASSED = {
    "a predicate": f"{WARPS} @!%p1 bar.sync 0; {STORE}",
    "a predicate of part of a warp": f"{LANES} @!%p1 bar.sync 0; {STORE}",
    "barrier.sync": f"{LANES} @%p1 bra E; barrier.sync 0; E: {STORE}",
    "bar.red": f"{WARPS} @%p1 bra E; bar.red.popc.u32 %r2, 0, %p1; E: {STORE}",
    "a call": f"{WARPS} @%p1 bra E; call.uni meet; E: {STORE}",
    "a call in a call": f"{WARPS} @%p1 bra E; call.uni outer; E: {STORE}",
    "a jump table": f"ts: .branchtargets X, Y, Z; shr.u32 %r2, %t, 5; rem.u32 %r2, %r2, 3; brx.idx %r2, ts; "
    f"X: bar.sync 0; bra E; Y: mov.u32 %r3, 6; bra E; Z: mov.u32 %r3, 7; E: {STORE}",
    "two barriers": f"{WARPS} bar.sync 0; @%p1 bra A; bar.sync 0; A: @%p1 bra E; bar.sync 0; E: {STORE}",
    "one round of several": f"mov.u32 %r3, 5; {ROUNDS} {WARPS} @%p1 bra S; bar.sync 0; {NEXT}",
    "one time more than others": f"mov.u32 %r3, 2; {WARPS} @%p1 mov.u32 %r3, 3; mov.u32 %r2, 0; "
    f"L: setp.eq.u32 %p2, %r2, 2; @%p2 bra S; bra T; S: bar.sync 0; "
    f"T: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, %r3; @%p3 bra L; {STORE}",
}

NOT_PASSED = {
    "a predicate of all that is left": f"{WARPS} @!%p1 bar.sync 0;",
    "a return by predicate": f"{LANES} @%p1 ret; bar.sync 0; {STORE}",
    "a call behind a return": f"{LANES} @%p1 ret; call.uni outer; {STORE}",
    "a barrier on every way": f"{WARPS} @%p1 bra A; bar.sync 0; bra E; A: bar.sync 0; E: {STORE}",
    "a jump table with barriers on each way": "ts: .branchtargets X, Y; shr.u32 %r2, %t, 6; "
    f"brx.idx %r2, ts; X: bar.sync 0; bra E; Y: bar.sync 0; E: {STORE}",
    "a jump table that ends": "ts: .branchtargets X, Y; shr.u32 %r2, %t, 6; brx.idx %r2, ts; "
    f"X: bar.sync 0; {STORE} bra E; Y: {STORE} E:",
    "a count of others": f"{WARPS} @%p1 bra E; bar.sync 1, 64; E: {STORE}",
    "a return in the round that all leave out": f"mov.u32 %r3, 6; {ROUNDS} bar.sync 0; "
    f"S: st.global.u32 [%o], %r2; {WARPS} setp.ge.and.u32 %p1, %r2, 2, %p1; @%p1 bra E; "
    "add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, %r3; @%p3 bra L; E:",
    "a return with another barrier between": f"mov.u32 %r3, 6; {ROUNDS} bar.sync 0; "
    f"S: st.global.u32 [%o], %r2; {WARPS} setp.eq.and.u32 %p1, %r2, 2, %p1; @%p1 bra E; bar.sync 2; "
    "add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, %r3; @%p3 bra L; E:",
}


def findings(tmp_path: Path, body: str, seed: int) -> list[str]:
    """The lines of the report that name a kind of finding."""
    text = HEAD + MEET + PROLOGUE + body + " ret;\n}\n"
    status, lines = launch(tmp_path, text, "buf=512", "tools=synccheck", f"seed={seed}", block="128")
    assert status == "status: ok", status
    assert any("Work:" in line for line in lines)
    return [line.removeprefix("========= ") for line in lines if "Divergent" in line]


@pytest.mark.parametrize("seed", [0, 1, 20])
@pytest.mark.parametrize("way", PASSED)
def test_a_bypassed_barrier_is_reported(way: str, seed: int, tmp_path: Path) -> None:
    """Fault: a form of the barrier, or of the way past it, that the check does not know."""
    found = findings(tmp_path, PASSED[way], seed)
    assert found and set(found) == {KIND}


@pytest.mark.parametrize("seed", [0, 1, 20])
@pytest.mark.parametrize("way", NOT_PASSED)
def test_no_report_of_a_barrier_that_no_thread_misses(way: str, seed: int, tmp_path: Path) -> None:
    """Fault: a return, a barrier reached elsewhere or a round that all threads skip is reported as missed."""
    assert findings(tmp_path, NOT_PASSED[way], seed) == []


def test_every_missed_barrier_is_reported(tmp_path: Path) -> None:
    """Fault: the second missed barrier is not reported after the first."""
    body = PASSED["two barriers"].replace("; ", ";\n")  # a finding is told once a line
    assert len(findings(tmp_path, body, 0)) == 2

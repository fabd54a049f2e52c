"""Small PTX kernels on the machine itself, without runtime and checks: control flow, calls, limits.

Each kernel writes what it computed; the expected values are worked out by hand.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from verify.toolchain.machine_build import machine_program

DRIVER = Path(__file__).parent / "driver" / "main.cpp"
HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
# Every kernel has one buffer; %t is the thread in the block, %g in the grid, %o its word of the buffer.
PROLOGUE = """
.visible .entry k(.param .u64 p) {
  .reg .u32 %t, %g, %r<20>; .reg .u64 %b, %o, %d<8>; .reg .pred %p<8>; .reg .f32 %f<8>;
  ld.param.u64 %b, [p]; mov.u32 %t, %tid.x; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x;
  mad.lo.u32 %g, %r0, %r1, %t; mul.wide.u32 %o, %g, 4; add.u64 %o, %b, %o;
"""


def launch(
    tmp_path: Path, text: str, *arguments: str, grid: str = "1", block: str = "32", kernel: str = "k"
) -> tuple[str, list[str]]:
    """Status line and the other lines of output."""
    path = tmp_path / "kernel.ptx"
    path.write_text(text)
    command = [str(machine_program(DRIVER)), str(path), kernel, grid, block, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    lines = done.stdout.splitlines()
    return lines[-1], lines[:-1]


def values(
    tmp_path: Path, body: str, words: int, *arguments: str, functions: str = "", **where: str
) -> list[int]:
    """The buffer after a kernel of ``body`` ran without an error."""
    text = HEAD + functions + PROLOGUE + body + "  ret;\n}\n"
    status, lines = launch(tmp_path, text, f"buf={4 * words}", "dump=0:u32", *arguments, **where)
    assert status == "status: ok", status
    return [int(word) for word in lines[-1].split()]


def test_divergent_branches_meet_again(tmp_path: Path) -> None:
    """Fault: lanes lost after a branch, or run twice."""
    body = """
      and.b32 %r2, %t, 3; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 7;
      @%p1 bra A; setp.eq.u32 %p2, %r2, 1; @%p2 bra B; mov.u32 %r3, 30; bra C;
      A: mov.u32 %r3, 10; bra C;
      B: mov.u32 %r3, 20;
      C: activemask.b32 %r4; popc.b32 %r4, %r4; mad.lo.u32 %r3, %r4, 1000, %r3; st.global.u32 [%o], %r3;
    """
    assert values(tmp_path, body, 32) == [32000 + (10, 20, 30, 30)[k & 3] for k in range(32)]


def test_loop_with_a_trip_count_of_each_lane(tmp_path: Path) -> None:
    """Fault: a lane that leaves a loop early loses its value while others continue."""
    body = """
      mov.u32 %r2, 0; mov.u32 %r3, 0;
      L: setp.ge.u32 %p1, %r2, %t; @%p1 bra E; add.u32 %r3, %r3, %r2; add.u32 %r2, %r2, 1; bra L;
      E: st.global.u32 [%o], %r3;
    """
    assert values(tmp_path, body, 64, block="64") == [k * (k - 1) // 2 for k in range(64)]


def test_partial_warps(tmp_path: Path) -> None:
    """Fault: lanes that do not exist write."""
    body = "mov.u32 %r2, 1; st.global.u32 [%o], %r2;"
    assert values(tmp_path, body, 40, block="33") == [1] * 33 + [0] * 7


def test_indexed_branch(tmp_path: Path) -> None:
    """Fault: a table read at the wrong place, or lanes of different targets run as one."""
    body = """
      ts: .branchtargets X, Y, Z;
      rem.u32 %r2, %t, 3; brx.idx %r2, ts;
      X: mov.u32 %r3, 5; bra W;
      Y: mov.u32 %r3, 6; bra W;
      Z: mov.u32 %r3, 7;
      W: st.global.u32 [%o], %r3;
    """
    assert values(tmp_path, body, 32) == [5 + k % 3 for k in range(32)]


def test_recursion_to_a_depth_of_each_lane(tmp_path: Path) -> None:
    """Fault: registers or arguments of one activation overwritten by another."""
    functions = """
    .func (.param .b32 out) fib(.param .b32 in) {
      .reg .u32 %n<8>; .reg .pred %q;
      ld.param.u32 %n0, [in]; setp.lt.u32 %q, %n0, 2; @%q bra Base;
      { .param .b32 a; .param .b32 r; sub.u32 %n1, %n0, 1; st.param.b32 [a], %n1;
        call.uni (r), fib, (a); ld.param.b32 %n2, [r]; }
      { .param .b32 a; .param .b32 r; sub.u32 %n3, %n0, 2; st.param.b32 [a], %n3;
        call.uni (r), fib, (a); ld.param.b32 %n4, [r]; }
      add.u32 %n5, %n2, %n4; st.param.b32 [out], %n5; ret;
      Base: st.param.b32 [out], %n0; ret;
    }
    """
    body = """
      and.b32 %r2, %t, 7;
      { .param .b32 a; .param .b32 r; st.param.b32 [a], %r2; call.uni (r), fib, (a); ld.param.b32 %r3, [r]; }
      st.global.u32 [%o], %r3;
    """
    fib = [0, 1, 1, 2, 3, 5, 8, 13]
    assert values(tmp_path, body, 32, functions=functions) == [fib[k & 7] for k in range(32)]


def test_endless_recursion_is_a_stack_overflow(tmp_path: Path) -> None:
    """Fault: a crash of the host instead of an error."""
    functions = ".func f() { .local .align 4 .b8 room[256]; call.uni f; ret; }\n"
    status, _ = launch(tmp_path, HEAD + functions + PROLOGUE + "call.uni f; ret; }", "buf=4")
    assert status.startswith("status: stack_overflow"), status


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_lock_spun_on_within_a_warp(tmp_path: Path, seed: int) -> None:
    """Fault: a schedule that starves the lane that holds the lock."""
    body = """
      add.u64 %d1, %b, 4;
      L: atom.global.cas.b32 %r2, [%b], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;
      ld.volatile.global.u32 %r3, [%d1]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%d1], %r3;
      membar.gl; atom.global.exch.b32 %r2, [%b], 0;
    """
    assert values(tmp_path, body, 2, f"seed={seed}", block="64", grid="2")[1] == 128


@pytest.mark.parametrize("seed", [0, 5])
def test_flag_from_a_later_block_is_waited_for(tmp_path: Path, seed: int) -> None:
    """Fault: blocks that are not resident together, or never pre-empted."""
    body = """
      mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 3; @%p1 bra Set;
      W: ld.acquire.gpu.global.u32 %r3, [%b+64]; setp.eq.u32 %p2, %r3, 0; @%p2 bra W;
      mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %b, %d1; st.global.u32 [%d1], %r3; bra E;
      Set: mov.u32 %r4, 9; st.release.gpu.global.u32 [%b+64], %r4;
      E:
    """
    assert values(tmp_path, body, 17, f"seed={seed}", block="1", grid="4")[:4] == [9, 9, 9, 0]


def test_deadlock_names_who_waits(tmp_path: Path) -> None:
    """Fault: an endless run instead of a report: one warp polls a flag that nobody sets, one is at
    a barrier."""
    body = """
      setp.lt.u32 %p1, %t, 32; @%p1 bra W; bar.sync 0; bra E;
      W: ld.volatile.global.u32 %r2, [%b]; setp.eq.u32 %p2, %r2, 0; @%p2 bra W;
      E:
    """
    status, _ = launch(tmp_path, HEAD + PROLOGUE + body + "ret; }", "buf=4", block="64")
    assert status.startswith("status: deadlock"), status
    assert "barrier 0" in status and "warp 0" in status and "polls" in status


def test_a_bounded_wait_is_no_deadlock(tmp_path: Path) -> None:
    """Fault: a retry loop with an end reported as a deadlock."""
    body = """
      mov.u32 %r2, 0;
      L: ld.volatile.global.u32 %r3, [%b]; nanosleep.u32 100; add.u32 %r2, %r2, 1;
      setp.lt.u32 %p1, %r2, 300; @%p1 bra L;
      st.global.u32 [%o], %r2;
    """
    assert values(tmp_path, body, 1, block="1") == [300]


def test_barrier_with_reduction(tmp_path: Path) -> None:
    """Fault: a count that leaves out warps, or a result that some lanes do not get."""
    body = """
      and.b32 %r2, %t, 1; setp.ne.u32 %p1, %r2, 0; bar.red.popc.u32 %r3, 0, %p1; st.global.u32 [%o], %r3;
    """
    assert values(tmp_path, body, 96, block="96") == [48] * 96


def test_collectives_in_divergent_code(tmp_path: Path) -> None:
    """Fault: lanes of one arm read by the other, or a wait for lanes that the mask does not name."""
    body = """
      setp.lt.u32 %p1, %t, 16; @%p1 bra A;
      shfl.sync.idx.b32 %r2, %t, 31, 31, 0xffff0000; bra E;
      A: shfl.sync.idx.b32 %r2, %t, 5, 31, 0x0000ffff;
      E: st.global.u32 [%o], %r2;
    """
    assert values(tmp_path, body, 32) == [5] * 16 + [31] * 16


def test_async_copy_lands_at_its_wait_and_not_before(tmp_path: Path) -> None:
    """Fault: a copy that completes at once hides a missing wait."""
    body = """
      .shared .align 16 .b8 room[512]; .reg .u32 %s;
      mov.u32 %s, room; shl.b32 %r2, %t, 2; add.u32 %s, %s, %r2;
      mov.u32 %r3, 1; st.shared.u32 [%s], %r3; add.u32 %r4, %t, 100; st.global.u32 [%o], %r4;
      cp.async.ca.shared.global [%s], [%o], 4; cp.async.commit_group;
      ld.shared.u32 %r5, [%s]; cp.async.wait_group 0; ld.shared.u32 %r6, [%s];
      mad.lo.u32 %r7, %r5, 1000, %r6; st.global.u32 [%o], %r7;
    """
    assert values(tmp_path, body, 32) == [1100 + k for k in range(32)]


def test_result_does_not_depend_on_the_cores(tmp_path: Path) -> None:
    """Fault: a partition of the grid that loses or repeats blocks."""
    body = "mad.lo.u32 %r2, %g, %g, 3; st.global.u32 [%o], %r2;"
    wanted = [(k * k + 3) % 2**32 for k in range(100 * 64)]
    for cores in (1, 2, 3):
        assert values(tmp_path, body, 6400, f"cores={cores}", grid="100", block="64") == wanted


def test_printf_and_assert(tmp_path: Path) -> None:
    """Fault: arguments read at the wrong offset; an assertion that does not end the launch."""
    text = HEAD + (
        ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 fmt[14] = {37, 100, 32, 37, 115, 32, 37, 46, 50, 102, 10, 0, 0, 0};\n"
        ".global .align 1 .b8 word[3] = {104, 105, 0};\n"
        ".visible .entry k(.param .u64 p) {\n"
        "  .local .align 8 .b8 depot[24]; .reg .b64 %d<6>; .reg .b32 %r<4>;\n"
        "  mov.u64 %d0, depot; cvta.local.u64 %d1, %d0; mov.u32 %r0, -5; st.local.u32 [%d0], %r0;\n"
        "  mov.u64 %d2, word; cvta.global.u64 %d2, %d2; st.local.u64 [%d0+8], %d2;\n"
        "  mov.b64 %d3, 0d400921FB54442D18; st.local.u64 [%d0+16], %d3;\n"
        "  mov.u64 %d4, fmt; cvta.global.u64 %d4, %d4;\n"
        "  { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d4; st.param.b64 [a], %d1;\n"
        "    call.uni (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }\n  ret;\n}\n"
    )
    status, lines = launch(tmp_path, text, "buf=4", block="2")
    assert status == "status: ok" and lines == ["-5 hi 3.14", "-5 hi 3.14"]


def test_wild_address_is_an_error_of_the_launch(tmp_path: Path) -> None:
    """Fault: a store that harms the host process."""
    body = "mov.u64 %d1, 0xdead0000bee0; st.global.u32 [%d1], %t;"
    status, _ = launch(tmp_path, HEAD + PROLOGUE + body + "ret; }", "buf=4")
    assert status.startswith("status: illegal_address"), status
    status, _ = launch(tmp_path, HEAD + PROLOGUE + "st.global.u32 [%b+2], %t; ret; }", "buf=8")
    assert status.startswith("status: misaligned_address"), status


@pytest.mark.parametrize("lanes", ["uniform", "one lane"])
@pytest.mark.parametrize("space", ["local", "shared"])
def test_the_end_of_a_space_is_found_when_its_address_wraps(tmp_path: Path, space: str, lanes: str) -> None:
    """Fault: an offset so high that address and width wrap to zero, which looks like the first byte of the
    space."""
    wide = space == "local"
    high, register = ("0xfffffffffffffffc", "%d1") if wide else ("0xfffffffc", "%r3")
    body = f".{space} .align 4 .b8 room[64]; mov.u{64 if wide else 32} {register}, {high};"
    if lanes == "one lane":  # the others stay inside
        kind = "b64" if wide else "b32"
        body += f"setp.eq.u32 %p1, %t, 7; selp.{kind} {register}, {register}, 8, %p1;"
    body += f"st.{space}.u32 [{register}], %t; ret; }}"
    status, _ = launch(tmp_path, HEAD + PROLOGUE + body, "buf=4")
    assert status.startswith("status: illegal_address"), status


def test_endless_kernel_stops_at_the_limit(tmp_path: Path) -> None:
    """Fault: a gate that never ends."""
    text = HEAD + PROLOGUE + "L: add.u32 %r2, %r2, 1; bra L; ret; }"
    status, _ = launch(tmp_path, text, "buf=4", "limit=1000000")
    assert status.startswith("status: stalled"), status


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("frobnicate.u32 %r2, %t;", "unknown instruction"),
        ("add.rn.u32 %r2, %t, %t;", "unknown modifier '.rn'"),
        ("ld.global.L3::64B.u32 %r2, [%b];", "L3::64B"),
        ("add.u64 %d1, %r2, %d1;", "wrong width"),
        ("mul.u32 %r2, %t, %t;", ".lo, .hi or .wide"),
        ("bra Nowhere;", "label 'Nowhere' is not defined"),
        ("mov.u32 %r2, %nosuch;", "unknown name"),
        ("wgmma.fence.sync.aligned;", "unknown instruction"),
    ],
)
def test_unknown_forms_are_refused(tmp_path: Path, statement: str, wanted: str) -> None:
    """Fault: an opcode, type or modifier skipped or guessed: the message names kernel, line and spelling."""
    status, _ = launch(tmp_path, HEAD + PROLOGUE + statement + "\nret; }", "buf=4")
    assert status.startswith("status: invalid_ptx"), status
    assert wanted in status and "kernel 'k'" in status and "PTX line" in status

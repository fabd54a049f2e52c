"""Schedules: what a seed permutes, that each is fair, what counts as a deadlock, what is tried further."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine.known_programs import run
from tests.machine.test_execution import HEAD, PROLOGUE, launch, values
from verify.device.interface import TOOLS

TICKET = """
  atom.global.add.u32 %r2, [%b], 1; mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %b, %d1;
  mov.u32 %r3, %ctaid.x; st.global.u32 [%d1+4], %r3;
"""
"""Each block writes its number where its ticket says."""


def order_of_blocks(tmp_path: Path, seed: int, *options: str) -> tuple[int, ...]:
    return tuple(values(tmp_path, TICKET, 25, f"seed={seed}", *options, block="1", grid="24")[1:])


def test_blocks_of_a_resident_grid_run_in_any_order(tmp_path: Path) -> None:
    """Fault: blocks that take turns in index order whatever the seed: what depends on their order never
    shows."""
    orders = {seed: order_of_blocks(tmp_path, seed) for seed in range(6)}
    assert orders[0] == tuple(range(24))
    assert all(sorted(order) == list(range(24)) for order in orders.values())
    assert len(set(orders.values())) == 6
    assert orders[3] == order_of_blocks(tmp_path, 3)


def test_blocks_that_do_not_communicate_start_in_any_order(tmp_path: Path) -> None:
    """Fault: a result that the last block leaves, the same under every seed although nothing orders them."""
    body = "mov.u32 %r2, %ctaid.x; st.global.u32 [%b], %r2;"
    last = {values(tmp_path, body, 1, f"seed={seed}", block="1", grid="8")[0] for seed in range(8)}
    assert len(last) > 2


@pytest.mark.parametrize("seed", range(8))
def test_a_larger_grid_starts_in_index_order(tmp_path: Path, seed: int) -> None:
    """Fault: a look-back scan never ends because the block that each waits for is not resident yet."""
    body = """
      mov.u32 %r2, %ctaid.x; mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %b, %d1;
      W: ld.acquire.gpu.global.u32 %r3, [%d1]; setp.eq.u32 %p1, %r3, 0;
      setp.ne.and.u32 %p1, %r2, 0, %p1; @%p1 bra W;
      add.u32 %r3, %r3, 1; st.release.gpu.global.u32 [%d1+4], %r3;
    """
    found = values(tmp_path, body, 25, f"seed={seed}", "resident=2", block="1", grid="24")
    assert found[1:] == list(range(1, 25))


def test_lanes_of_an_atomic_take_effect_in_any_order(tmp_path: Path) -> None:
    """Fault: a float sum over the lanes of one warp looks repeatable because they always add in order."""
    body = "atom.global.add.u32 %r2, [%b], 1; st.global.u32 [%o+4], %r2;"
    orders = {tuple(values(tmp_path, body, 33, f"seed={seed}")[1:]) for seed in range(4)}
    assert tuple(range(32)) in orders
    assert all(sorted(order) == list(range(32)) for order in orders) and len(orders) == 4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("work", [1, 20, 333])
@pytest.mark.parametrize(("grid", "block"), [("4", "1"), ("1", "4"), ("1", "128")])
def test_every_thread_gets_a_lock_in_turn(
    tmp_path: Path, seed: int, work: int, grid: str, block: str
) -> None:
    """Fault: starvation: a thread that takes the lock repeatedly is always preempted while it holds it."""
    body = f"""
      mov.u32 %r9, %nctaid.x; mul.lo.u32 %r9, %r9, %r1; sub.u32 %r9, %r9, 1; setp.ne.u32 %p3, %g, 0;
      L: atom.global.cas.b32 %r2, [%b], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;
      membar.gl; ld.global.u32 %r3, [%b+4]; mov.u32 %r4, 0;
      D: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, {work}; @%p2 bra D;
      @%p3 add.u32 %r3, %r3, 1; st.global.u32 [%b+4], %r3;
      membar.gl; atom.global.exch.b32 %r2, [%b], 0;
      setp.lt.u32 %p4, %r3, %r9; @%p3 bra E; @%p4 bra L;
      E:
    """
    threads = int(grid) * int(block)
    found = values(tmp_path, body, 2, f"seed={seed}", "limit=40000000", grid=grid, block=block)
    assert found[1] == threads - 1


@pytest.mark.parametrize("seed", [0, 3])
def test_long_reads_of_volatile_memory_are_no_deadlock(tmp_path: Path, seed: int) -> None:
    """Fault: a warp that keeps reading while the others wait for it is reported as polling in vain."""
    body = """
      setp.gt.u32 %p1, %t, 31; @%p1 bra B; mov.u32 %r2, 0;
      A: ld.volatile.global.u32 %r3, [%b]; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 400000; @%p2 bra A;
      B: bar.sync 0; st.global.u32 [%o], %r2;
    """
    assert values(tmp_path, body, 64, f"seed={seed}", block="64")[0] == 400_000


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "loop",
    [
        "W: ld.volatile.global.u32 %r2, [%b]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;",
        "W: atom.global.cas.b32 %r2, [%b], 5, 6; setp.ne.u32 %p1, %r2, 5; @%p1 bra W;",
        "W: nanosleep.u32 100; ld.volatile.global.u32 %r2, [%b]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;",
        "W: add.u32 %r3, %r3, 1; ld.volatile.global.u32 %r2, [%b]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;",
        "W: bra W;",
    ],
)
def test_an_endless_wait_is_a_deadlock(tmp_path: Path, loop: str, seed: int) -> None:
    """Fault: a run never ends, whatever is polled and however short the turns are."""
    status, _ = launch(
        tmp_path,
        HEAD + PROLOGUE + loop + " ret; }",
        "buf=4",
        f"seed={seed}",
        "timeout=60",
        block="64",
        grid="3",
    )
    assert status.startswith("status: deadlock"), status


BACK_OFF = """
  mov.u64 %d2, %globaltimer; mov.u32 %r4, 0;
  W: ld.volatile.global.u32 %r2, [%b]; setp.ne.u32 %p1, %r2, 0; @%p1 bra E;
  setp.ge.u32 %p2, %r4, 16; @%p2 bra S; add.u32 %r4, %r4, 1; bra W;
  S: mov.u64 %d3, %globaltimer; sub.u64 %d4, %d3, %d2; setp.ge.u64 %p3, %d4, 4000000; @%p3 bra L;
  shr.u64 %d5, %d4, 2; cvt.u32.u64 %r5, %d5; nanosleep.u32 %r5; bra W;
  L: nanosleep.u32 1000000; bra W;
  E:
"""
"""A wait that sleeps the longer the longer it has waited, as cuda::barrier of CUDA 13.0 does."""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_wait_that_polls_the_clock_is_soon_a_deadlock(tmp_path: Path, seed: int) -> None:
    """Fault: an endless wait that reads the clock, so that its state never repeats, takes minutes to be
    reported."""
    status, _ = launch(
        tmp_path,
        HEAD + PROLOGUE + BACK_OFF + " ret; }",
        "buf=4",
        f"seed={seed}",
        "limit=1000000",
        block="64",
        grid="3",
    )
    assert status.startswith("status: deadlock"), status


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_waits_for_a_time_end(tmp_path: Path, seed: int) -> None:
    """Fault: a wait that ends by the clock, or with a time limit, is reported as a deadlock."""
    body = """
      mov.u32 %r5, 0;
      R: mov.u64 %d2, %globaltimer;
      W: mov.u64 %d3, %globaltimer; sub.u64 %d4, %d3, %d2; setp.lt.u64 %p1, %d4, 50000000; @%p1 bra W;
      add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5; @%p2 bra R;
      mov.u32 %r6, %clock;
      T: ld.volatile.global.u32 %r2, [%b]; setp.ne.u32 %p3, %r2, 0; @%p3 bra E;
      mov.u32 %r7, %clock; sub.u32 %r8, %r7, %r6; setp.lt.u32 %p4, %r8, 900000000; @%p4 bra T;
      E: st.global.u32 [%o+4], %r5;
    """
    assert values(tmp_path, body, 65, f"seed={seed}", "limit=3000000", block="64")[1:] == [5] * 64


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("called", [False, True])
def test_a_lock_of_each_lane_is_soon_had(tmp_path: Path, seed: int, called: bool) -> None:
    """Lanes that spin at a lower counter, or deeper in a call, starve the lane that has the lock."""
    functions = """
      .func (.reg .u32 %v) swap(.reg .u64 %a, .reg .u32 %n) { atom.global.exch.b32 %v, [%a], %n; ret; }
      .func drop(.reg .u64 %a) { st.release.gpu.global.u32 [%a], 0; ret; }
    """
    take = "call (%r2), swap, (%b, 1);" if called else "atom.acquire.gpu.global.exch.b32 %r2, [%b], 1;"
    give = "call drop, (%b);" if called else "st.release.gpu.global.u32 [%b], 0;"
    body = f"""
      L: {take} setp.ne.u32 %p1, %r2, 0; @%p1 bra L;
      ld.global.u32 %r3, [%b+4]; add.u32 %r3, %r3, 1; st.global.u32 [%b+4], %r3;
      {give}
    """
    options = (f"seed={seed}", "limit=40000")
    found = values(tmp_path, body, 2, *options, functions=functions, grid="4", block="48")
    assert found[1] == 192


def schedules_of(program: str, scratch: Path) -> int:
    done = run(program, TOOLS, scratch)
    assert done.report is not None, done.reason
    return done.report.work["schedules"]


def test_only_launches_that_communicate_are_tried_further(tmp_path: Path) -> None:
    """Fault: kernels that do not communicate pay for other schedules, or a lock and an mbarrier get none."""
    assert schedules_of("global_overrun_right", tmp_path) == 0
    assert schedules_of("missing_syncthreads_right", tmp_path) == 0
    assert schedules_of("spin_lock_right", tmp_path) >= 2
    assert schedules_of("ring_parity_right", tmp_path) >= 2


def test_further_schedules_are_reported_alike_every_time(tmp_path: Path) -> None:
    """Fault: two runs with the same seed report differently, or the report depends on the cores."""
    texts = set()
    for threads in (1, 2, 2):
        run("ring_parity_faulty", TOOLS, tmp_path, threads=threads)
        texts.add((tmp_path / "report.txt").read_text())
    (text,) = texts
    assert "seen under another schedule of the launch (--seed " in text


def test_further_schedules_leave_nothing_but_findings(tmp_path: Path) -> None:
    """Fault: output that is printed once more for each schedule, or memory that a tried schedule
    has changed."""
    done = run("counted_once_right", TOOLS, tmp_path)
    assert done.report is not None, done.reason
    assert done.report.work["schedules"] >= 2 and done.exit_code == 0
    assert (tmp_path / "output.txt").read_text() == "ticket 0\nticket 1\n"

"""The GPU lease: one process at a time a GPU, threads of one process side by side, several GPUs in turn."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from verify.device import gpu_pool
from verify.device.cuda_probe import Gpu
from verify.device.gpu_pool import GpuPool


def gpu(index: int) -> Gpu:
    return Gpu(index, f"GPU-{index}", "card", "sm_90", 132, 1 << 30)


HOLDER = """
import sys, filelock
with filelock.FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def on_wait(pool: GpuPool, monkeypatch: pytest.MonkeyPatch, action: Callable[[int], object]) -> list[int]:
    """Call ``action`` with the number of each wait of the pool, instead of waiting; the waits so far."""
    waits: list[int] = []

    def wait(timeout: float) -> bool:
        waits.append(len(waits) + 1)
        action(len(waits))
        return False

    monkeypatch.setattr(pool._changed, "wait", wait)
    return waits


def test_a_second_process_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: two workers run on one GPU at once."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "GPU-0.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    pool = GpuPool([gpu(0)], tmp_path)
    waits = on_wait(pool, monkeypatch, lambda number: other.communicate() if number == 3 else None)
    with pool.lease():
        assert other.poll() == 0
    assert waits == [1, 2, 3]


def test_a_long_wait_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: the suite waits without a message while another process has the GPU."""
    now = [0.0]
    monkeypatch.setattr("verify.device.gpu_pool.time.monotonic", lambda: now[0])
    held = filelock.FileLock(tmp_path / "GPU-0.lock", thread_local=False)
    held.acquire()
    reported: list[tuple[int, str]] = []
    pool = GpuPool([gpu(0)], tmp_path)

    def pass_time(number: int) -> None:
        now[0] += gpu_pool.SILENT_SECONDS / 4
        if number == 10:
            held.release()

    waits = on_wait(pool, monkeypatch, pass_time)
    with pool.lease(lambda line: reported.append((len(waits), line))):
        pass
    assert reported == [(5, "waiting for another process to release the GPU")]


def test_threads_of_one_process_share_its_gpu(tmp_path: Path) -> None:
    """Fault: the four tools wait for each other instead of running side by side."""
    pool = GpuPool([gpu(0)], tmp_path)
    together = threading.Barrier(4, timeout=60)

    def work() -> None:
        with pool.lease():
            together.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken


def test_work_spreads_over_the_gpus(tmp_path: Path) -> None:
    """Fault: one of two GPUs stays idle, or one gets most of the work."""
    pool = GpuPool([gpu(0), gpu(1)], tmp_path)
    with pool.lease() as a, pool.lease() as b, pool.lease() as c, pool.lease() as d:
        assert {a.uuid, b.uuid} == {"GPU-0", "GPU-1"}
        assert {c.uuid, d.uuid} == {"GPU-0", "GPU-1"}


def test_a_gpu_held_by_another_process_is_not_leased(tmp_path: Path) -> None:
    """Fault: a lease waits although another GPU is free."""
    with filelock.FileLock(tmp_path / "GPU-0.lock"), GpuPool([gpu(0), gpu(1)], tmp_path).lease() as got:
        assert got.uuid == "GPU-1"


def test_the_lock_is_released_with_the_last_lease(tmp_path: Path) -> None:
    """Fault: a GPU stays locked until the process ends, or is given away while a thread still uses it."""
    pool = GpuPool([gpu(0)], tmp_path)
    other = filelock.FileLock(tmp_path / "GPU-0.lock")
    first, second = pool.lease(), pool.lease()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not _can_take(other)
    second.__exit__(None, None, None)
    assert _can_take(other)


def _can_take(lock: filelock.FileLock) -> bool:
    try:
        with lock.acquire(timeout=0):
            return True
    except filelock.Timeout:
        return False

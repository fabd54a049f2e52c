"""The GPU lease: one process at a time a GPU, threads of one process side by side, several GPUs in turn."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import filelock
import pytest

from verify.device import gpu_pool
from verify.device.cuda_probe import Gpu
from verify.device.gpu_pool import GpuPool


def gpu(index: int) -> Gpu:
    return Gpu(index, f"GPU-{index}", "card", "sm_90", 132, 1 << 30)


def test_a_second_process_waits_for_the_first(tmp_path: Path) -> None:
    """Fault: two workers run on one GPU at once."""
    code = (
        "import sys, time, filelock\n"
        "with filelock.FileLock(sys.argv[1]): print('held', flush=True); time.sleep(0.6)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "GPU-0.lock")], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    other.stdout.readline()
    started = time.monotonic()
    with GpuPool([gpu(0)], tmp_path).lease():
        waited = time.monotonic() - started
    other.wait()
    assert waited > 0.3


def test_a_long_wait_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: the suite stands still without a word while another process has the GPU."""
    monkeypatch.setattr(gpu_pool, "SILENT_SECONDS", 0.1)
    held = filelock.FileLock(tmp_path / "GPU-0.lock", thread_local=False)
    held.acquire()
    threading.Timer(0.5, held.release).start()
    said: list[str] = []
    with GpuPool([gpu(0)], tmp_path).lease(said.append):
        pass
    assert said == ["waiting for another process to release the GPU"]


def test_threads_of_one_process_share_its_gpu(tmp_path: Path) -> None:
    """Fault: the four tools wait for each other instead of running side by side."""
    pool = GpuPool([gpu(0)], tmp_path)
    together = threading.Barrier(4, timeout=5)

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

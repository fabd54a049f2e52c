"""The guard: nothing that a process has started outlives its being killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STARTS = """
import sys, time
from verify.device.guard import guarded
alone = sys.argv[1] == "alone"
program = ["sleep", "60"] if alone else ["sh", "-c", "sleep 60; true"]
with guarded(program, group=not alone) as early:
    pass
with guarded(program, group=not alone) as late:
    print(early.pid, late.pid, flush=True)
    time.sleep(60)
"""


def running(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("kind", ["group", "alone"])
def test_what_is_guarded_ends_with_its_killed_parent(kind: str) -> None:
    """Fault: an endless kernel, or what a tool started, goes on when the suite is killed; or what was given
    free is killed too.
    """
    parent = subprocess.Popen([sys.executable, "-c", STARTS, kind], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    early, late = map(int, parent.stdout.readline().split())
    below = children(late) if kind == "group" else []
    try:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        deadline = time.monotonic() + 10
        while any(running(pid) for pid in (late, *below)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert running(early)
    finally:
        for pid in (early, late):
            if running(pid):
                os.killpg(pid, signal.SIGKILL) if kind == "group" else os.kill(pid, signal.SIGKILL)

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
import time
from verify.system.guard import guarded

# What it starts leaves its session, as a tool's program may.
with guarded(["sh", "-c", "setsid sleep 60 & echo $! $$; wait"], start_new_session={session}):
    time.sleep(60)
"""


def running(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("session", [True, False])
@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_a_guarded_process_ends_with_its_killed_parent(session: bool, delay: float) -> None:
    """Fault: an endless kernel, or a tool's child, survives the suite when that is killed, even right
    away."""
    command = [sys.executable, "-c", STARTS.format(session=session)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert parent.stdout is not None
    below = [int(word) for word in parent.stdout.readline().split()]
    assert len(below) == 2 and all(map(running, below))
    time.sleep(delay)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while any(map(running, below)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


FREE = """
import os, subprocess
from verify.system.guard import guarded

quiet = subprocess.DEVNULL
free = subprocess.Popen(["sleep", "60"], stdout=quiet, stderr=quiet)
with guarded(["true"]) as one:
    one.wait()
print(free.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_an_unguarded_process_survives() -> None:
    """Fault: the guard kills by name, or whatever its process has started."""
    done = subprocess.run([sys.executable, "-c", FREE], stdout=subprocess.PIPE, timeout=30, check=False)
    free = int(done.stdout)
    time.sleep(0.7)
    try:
        assert running(free)
    finally:
        os.kill(free, signal.SIGKILL)

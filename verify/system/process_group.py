"""Ends a child process with all its descendants, including those that left its process group."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

GRACE_SECONDS = 3.0
"""Between SIGTERM and SIGKILL, for a tool to write its log."""

DRIVER_SECONDS = 30.0
"""How long to wait for a killed process that is stuck in the driver."""


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Reap ``process``; if it still runs, send its group SIGTERM, then SIGKILL to the group and descendants.

    The process must lead its own session (``start_new_session=True``), so that its group is not ours.
    """
    family = descendants(process.pid)
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    _signal_group(process.pid, signal.SIGKILL)
    for pid in family:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        # A process stuck in the driver ends when the driver returns; the suite does not wait longer.
        process.wait(DRIVER_SECONDS)
    if process.stdout is not None:
        process.stdout.close()


def end_descendants() -> None:
    """Kill all descendants of this process."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Process ids below ``root``, from /proc; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The command name is in parentheses and may hold spaces; the parent is the second field after it.
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    found: list[int] = []
    frontier = [root]
    while frontier:
        below = children.get(frontier.pop(), [])
        found.extend(below)
        frontier.extend(below)
    return found


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)

"""Kills what this process has started when it is killed itself, so that no endless kernel is left running.

A killed process cannot clean up. So a shell beside it waits for the other end of a pipe to close, and then
kills every process that has this one's mark in its environment; children inherit the mark. The kernel's own
mechanism (a parent-death signal) is tied to the thread that starts the child, and is lost if a tool sits in
between.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MARK = "VERIFY_OWNER"

# Two rounds: a process between fork and exec has the mark in its environment only after exec.
_SCRIPT = f"""
cat > /dev/null
for turn in 1 2; do
    for file in $(grep -ls "{MARK}=$1" /proc/[0-9]*/environ); do
        one=${{file#/proc/}}
        kill -s KILL "${{one%/environ}}" 2> /dev/null
    done
    sleep 0.2
done
"""

_starting = threading.Lock()
_owner = (0, "")
"""The process whose guard runs, and its mark; a fork starts without a guard of its own."""


@contextlib.contextmanager
def guarded(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, **how: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that is killed when this one dies, as are its descendants.

    env: its whole environment, by default this process's. how: further arguments of Popen. Raises OSError
    when the process cannot start.
    """
    with _starting:
        marked = {**(os.environ if env is None else env), MARK: _mark()}
        process = subprocess.Popen(command, env=marked, **how)
    yield process


def start_guard() -> None:
    """Start the guard early, so that it is not mistaken for a process that a program started."""
    with _starting:
        _mark()


def start_no_more() -> None:
    """Block every later attempt to start a process: this one is about to exit."""
    _starting.acquire()


def _mark() -> str:
    """This process's mark; starts its guard, outside the terminal's process group, if there is none."""
    global _owner
    if _owner[0] != os.getpid():
        mark = f"{os.getpid()}-{time.time_ns()}"
        reading, _ = os.pipe()  # the other end closes when this process ends, however it ends
        with contextlib.suppress(OSError):
            subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", mark],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Without the mark of a parent process, whose guard would kill this guard before its work.
                env={name: value for name, value in os.environ.items() if name != MARK},
                start_new_session=True,
            )
        os.close(reading)
        _owner = (os.getpid(), mark)
    return _owner[1]

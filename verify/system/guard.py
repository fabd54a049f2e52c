"""Ends what this process has started when it is killed itself, so that no endless kernel is left behind.

A killed process cannot clean up. A shell waits beside it for its end of a pipe to close, and then kills every
process that carries this one's mark in its environment, which all that they start inherit. The system's own
means (a death signal for children) is tied to the thread that starts a child, and lost where a tool stands
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

# Twice: what was about to become another program carried the mark only from then on.
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
"""The process whose guard runs, and its mark: a fork has none of its own yet."""


@contextlib.contextmanager
def guarded(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, **how: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that dies with this one, as does all that it starts. Raises OSError when it cannot start.

    env: its whole environment, by default this process's. how: as Popen takes it.
    """
    with _starting:
        marked = {**(os.environ if env is None else env), MARK: _mark()}
        process = subprocess.Popen(command, env=marked, **how)
    yield process


def start_guard() -> None:
    """Have the guard run from now on, so that it is not taken for something that a program started."""
    with _starting:
        _mark()


def start_no_more() -> None:
    """From here on whoever would start a process waits for ever: this one is about to end."""
    _starting.acquire()


def _mark() -> str:
    """This process's mark; starts its guard, outside the terminal's group, when it has none."""
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
                # Not with the mark of a process above, whose guard would end this one before its work.
                env={name: value for name, value in os.environ.items() if name != MARK},
                start_new_session=True,
            )
        os.close(reading)
        _owner = (os.getpid(), mark)
    return _owner[1]

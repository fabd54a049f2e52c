"""Ends what this process has started when it is killed itself, so that no endless kernel is left behind.

A killed process cannot clean up. A shell waits beside it for its end of a pipe to close, and then kills what
the process had under way. The system's own means (a death signal for children) is tied to the thread that
starts a child, and lost where a tool stands between.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Any

_SCRIPT = """
held=
while read -r sign id; do
    kept=
    for one in $held; do [ "$one" = "$id" ] || kept="$kept $one"; done
    held=$kept
    [ "$sign" = + ] && held="$held $id"
done
for one in $held; do kill -s KILL -- "$one" 2>/dev/null; done
"""


class _Guard:
    """One shell a process, started when it is first needed. It stands outside the terminal's group."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._pipe: int | None = None
        self._owner = 0

    def begin(self) -> None:
        """Start the shell, where it does not run yet. Hold the lock."""
        if self._pipe is not None and self._owner == os.getpid():
            return
        reading, self._pipe = os.pipe()
        self._owner = os.getpid()
        with contextlib.suppress(OSError):
            subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        os.close(reading)

    def tell(self, line: str) -> None:
        """Hold the lock. A guard that was ended guards no more; that is no reason to stop."""
        with contextlib.suppress(OSError):
            os.write(self._pipe or 0, line.encode())


_guard = _Guard()


@contextlib.contextmanager
def guarded(command: Sequence[str], *, group: bool = True, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that dies with this one while this lasts. Raises OSError when it cannot be started.

    group: it leads a session of its own, and all of its process group dies. how: as Popen takes it.
    """
    with _guard.lock:
        _guard.begin()
        process = subprocess.Popen(command, start_new_session=group, **how)
        target = -process.pid if group else process.pid
        _guard.tell(f"+ {target}\n")
    try:
        yield process
    finally:
        with _guard.lock:
            _guard.tell(f"- {target}\n")


def start_no_more() -> None:
    """From here on whoever would start a process waits for ever: this one is about to end."""
    _guard.lock.acquire()

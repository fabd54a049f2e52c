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
from collections.abc import Iterator

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
        self._lock = threading.Lock()
        self._pipe: int | None = None
        self._owner = 0

    def tell(self, line: str) -> None:
        with self._lock:
            if self._pipe is None or self._owner != os.getpid():
                self._pipe, self._owner = self._start(), os.getpid()
            # A guard that was ended guards no more; that is no reason to stop.
            with contextlib.suppress(OSError):
                os.write(self._pipe, line.encode())

    def _start(self) -> int:
        reading, writing = os.pipe()
        with contextlib.suppress(OSError):
            subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        os.close(reading)
        return writing


_guard = _Guard()


@contextlib.contextmanager
def guarded(process: subprocess.Popen[bytes], *, group: bool = True) -> Iterator[None]:
    """While this lasts, the process dies with this one. group: all of its process group, which it leads."""
    target = -process.pid if group else process.pid
    _guard.tell(f"+ {target}\n")
    try:
        yield
    finally:
        _guard.tell(f"- {target}\n")

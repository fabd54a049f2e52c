"""Records every program that a process or its descendants exec, so that none escapes the checks unnoticed.

A child that clears its environment, or that carries a CUDA runtime of its own, runs beside the CPU device
and leaves no report. The kernel is asked (seccomp user notification, Linux 5.5 and later) to report every
``execve`` below the watched process before it happens; nothing is refused or changed. See
``seccomp_unotify(2)``.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 36, 38
_SET_MODE_FILTER, _NEW_LISTENER = 1, 1 << 3
_USER_NOTIFY, _ALLOW, _CONTINUE = 0x7FC00000, 0x7FFF0000, 1
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000

# Per architecture: its AUDIT_ARCH constant, and the numbers of the calls seccomp, execve and execveat.
_NUMBERS = {
    "x86_64": (0xC000003E, 317, 59, 322),
    "aarch64": (0xC00000B7, 277, 221, 281),
}

_libc = ctypes.CDLL(None, use_errno=True)


class ExecWatch:
    """Watches the process in which :meth:`enter` ran, and its descendants.

    programs: (process id, file) of every program about to run, in order. watching: False where the system
    does not support it; then programs stays empty.
    """

    def __init__(self) -> None:
        self.programs: list[tuple[int, Path]] = []
        self.watching = False
        self._ours, self._theirs = socket.socketpair()
        # The thread ends with the last of the processes: without its replies they could not exec anything.
        threading.Thread(target=self._listen, daemon=True).start()
        self.enter = self._entry()

    def started(self) -> None:
        """Call this once the process runs, or could not be started."""
        self._theirs.close()

    def _entry(self) -> Callable[[], None]:
        """The function that the child calls between fork and exec; all that it needs is allocated here."""
        numbers = _NUMBERS.get(platform.machine())
        if numbers is None:
            return lambda: None
        architecture, seccomp, *calls = numbers
        code = _filter(architecture, calls)
        lines = ctypes.create_string_buffer(code)
        program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(lines))
        argument = ctypes.create_string_buffer(program)
        theirs = self._theirs

        def enter() -> None:
            _libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            listener = _libc.syscall(seccomp, _SET_MODE_FILTER, _NEW_LISTENER, argument)
            if listener >= 0:
                socket.send_fds(theirs, [b"w"], [listener])

        enter.__dict__["keep"] = lines
        return enter

    def _listen(self) -> None:
        with self._ours:
            _, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
        if not descriptors:
            return
        self.watching = True
        listener = descriptors[0]
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while not poll.poll()[0][1] & (select.POLLHUP | select.POLLERR):
            self._answer(listener)
        os.close(listener)

    def _answer(self, listener: int) -> None:
        notification = bytearray(80)
        with suppress(OSError):  # the caller may have been killed meanwhile
            fcntl.ioctl(listener, _RECEIVE, notification)
            call, thread = struct.unpack_from("<QI", notification)
            number, *_ = struct.unpack_from("<i", notification, 16)
            arguments = struct.unpack_from("<6Q", notification, 32)
            with suppress(OSError, ValueError):
                self.programs.append(_named(thread, number, arguments))
            fcntl.ioctl(listener, _SEND, struct.pack("<QqiI", call, 0, 0, _CONTINUE))


def adopt_orphans(yes: bool) -> None:
    """Make this process adopt descendants whose parent exits, or stop, so that they can still be found."""
    _libc.prctl(_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0)


def _filter(architecture: int, calls: list[int]) -> bytes:
    """A BPF program that reports these calls and allows all others. See ``seccomp(2)``."""

    def line(code: int, if_true: int, if_false: int, value: int) -> bytes:
        return struct.pack("<HBBI", code, if_true, if_false, value)

    load, equal, result = 0x20, 0x15, 0x06
    first, second = calls
    return b"".join(
        (
            line(load, 0, 0, 4),
            line(equal, 0, 3, architecture),
            line(load, 0, 0, 0),
            line(equal, 2, 0, first),
            line(equal, 1, 0, second),
            line(result, 0, 0, _ALLOW),
            line(result, 0, 0, _USER_NOTIFY),
        )
    )


def _named(thread: int, number: int, arguments: tuple[int, ...]) -> tuple[int, Path]:
    """The process id, and the file that it is about to execute."""
    process = int(_status(thread, "Tgid"))
    by_descriptor = number == _NUMBERS[platform.machine()][3]
    name = _text(thread, arguments[1 if by_descriptor else 0])
    folder = Path(f"/proc/{thread}/cwd")
    if by_descriptor:
        descriptor = ctypes.c_int(arguments[0] & 0xFFFFFFFF).value
        if arguments[4] & _AT_EMPTY_PATH and not name:
            return process, Path(os.path.realpath(f"/proc/{thread}/fd/{descriptor}"))
        if descriptor != _AT_FDCWD:
            folder = Path(f"/proc/{thread}/fd/{descriptor}")
    return process, Path(os.path.realpath(folder / name))


def _status(process: int, field: str) -> str:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return line.split()[1]
    raise ValueError(field)


def _text(process: int, address: int) -> str:
    """Read a NUL-terminated string from another process."""
    page = 4096
    text = b""
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        while b"\0" not in text:
            memory.seek(address + len(text))
            # Not past the page's end: the next page may not be mapped.
            read = memory.read(page - (address + len(text)) % page)
            if not read:
                raise ValueError("the string does not end")
            text += read
    return os.fsdecode(text[: text.index(b"\0")])

"""A command runs in a child that must say at its end that it has come to it, with which exit code.

A contract is a program: it may end its process, become another one, close its descriptors, or leave daemons
behind. So the exit code of that process proves nothing. The parent imports nothing of a contract's, passes on
the signals that it gets, and ends all that is left below it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from verify.system.exit_code import ExitCode
from verify.system.process_group import descendants

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a command to end."""

_PARENT_DEATH, _CHILD_SUBREAPER = 1, 36  # of prctl
_FROM_TERMINAL = 0x80  # the code of a signal that the system sent, to the whole group in the foreground


def open_streams() -> None:
    """Give each standard stream that is closed the null device, lest a file gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            setattr(sys, name, open(number, "r" if number == 0 else "w"))  # noqa: SIM115
            CLOSED.add(number)


CLOSED: set[int] = set()
"""Standard streams that were closed when the command began."""


def run_to_completion(command: Callable[[], int]) -> NoReturn:
    """Exit with what ``command`` returns; with 0 or 1 only if it did return."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    waited = (*SIGNALS, signal.SIGCHLD)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    parent, child = os.getpid(), os.fork()
    if child == 0:
        _die_with(parent)
        os.close(reading)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)  # until the command has its own way with them
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = command()
        with contextlib.suppress(OSError):
            os.write(writing, b"%d %d\n" % (os.getpid(), code))
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # None, or closed, or nobody reads it
                stream.flush()
        os._exit(code)  # a contract may have left threads and handlers behind that never end
    os.close(writing)
    status = _wait(child, waited)
    _end_all()
    os._exit(_exit_code(child, status, reading))


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PARENT_DEATH, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(ExitCode.NOT_VERIFIED)


def _wait(child: int, waited: tuple[signal.Signals, ...]) -> int:
    """The child's wait status. A signal from the terminal has reached it already; any other is passed on."""
    while True:
        asked = signal.sigtimedwait(waited, 1.0)
        if asked is not None and asked.si_signo != signal.SIGCHLD and asked.si_code != _FROM_TERMINAL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, asked.si_signo)
        ended = -1
        while ended != 0:  # adopted processes too
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == child:
                return status


def _end_all() -> None:
    """End what the command has left behind, daemons included: they are this process's now."""
    until = time.monotonic() + 10  # one that waits in a driver is left behind
    while (left := descendants(os.getpid())) and time.monotonic() < until:
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.005)


def _exit_code(child: int, status: int, reading: int) -> int:
    said = b""
    with contextlib.suppress(BlockingIOError):
        said = os.read(reading, 64)
    with contextlib.suppress(ValueError):
        process, code = map(int, said.split())
        if process == child:
            return code
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGINT:
        _say("interrupted")
    elif code in [-number for number in SIGNALS]:
        _say(f"ended by {signal.Signals(-code).name} before a verdict")
    elif code < 0:
        _say(f"its process was ended by signal {-code} before a verdict")
        return ExitCode.NOT_VERIFIED
    elif code not in [128 + number for number in SIGNALS]:
        why = "a contract ends it, or closes its files"
        _say(f"its process ended with exit code {code} before a verdict: {why}")
        return ExitCode.USAGE
    return 128 - code if code < 0 else code


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"verify: {text}\n".encode())

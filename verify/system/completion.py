"""Runs a command in a child process that must report its completion and its exit code.

A contract is a program: it may exit, exec another program, close descriptors, or leave daemons behind, so
the exit code of its process proves nothing. The parent imports no contract, forwards the signals that it
receives, and kills whatever descendants are left.
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
"""The signals that ask a command to stop."""

_PARENT_DEATH, _CHILD_SUBREAPER = 1, 36  # prctl options
_FROM_TERMINAL = 0x80  # si_code of a signal that the kernel sent to the whole foreground process group


def open_streams() -> None:
    """Open the null device for each closed standard stream, lest another file gets its descriptor."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            setattr(sys, name, open(number, "r" if number == 0 else "w"))  # noqa: SIM115
            CLOSED.add(number)


CLOSED: set[int] = set()
"""Standard streams that were closed when the command started."""


def run_to_completion(command: Callable[[], int]) -> NoReturn:
    """Exit with the code that ``command`` returns; with 0 or 1 only if it did return."""
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
                signal.signal(number, signal.SIG_DFL)  # until the command installs its own handlers
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = command()
        with contextlib.suppress(OSError):
            os.write(writing, b"%d %d\n" % (os.getpid(), code))
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # None, closed, or without a reader
                stream.flush()
        os._exit(code)  # a contract may have left threads or exit handlers that never finish
    os.close(writing)
    status = _wait(child, waited)
    _end_all()
    os._exit(_exit_code(child, status, reading))


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PARENT_DEATH, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(ExitCode.NOT_VERIFIED)


def _wait(child: int, waited: tuple[signal.Signals, ...]) -> int:
    """The child's wait status. A signal from the terminal has reached it already; others are forwarded."""
    while True:
        asked = signal.sigtimedwait(waited, 1.0)
        if asked is not None and asked.si_signo != signal.SIGCHLD and asked.si_code != _FROM_TERMINAL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, asked.si_signo)
        ended = -1
        while ended != 0:  # also reaps adopted processes
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == child:
                return status


def _end_all() -> None:
    """Kill what the command left running, daemons included: this process has adopted them."""
    until = time.monotonic() + 10  # a process stuck in a driver is left behind
    while (left := descendants(os.getpid())) and time.monotonic() < until:
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.005)


def _exit_code(child: int, status: int, reading: int) -> int:
    reported = b""
    with contextlib.suppress(BlockingIOError):
        reported = os.read(reading, 64)
    with contextlib.suppress(ValueError):
        process, code = map(int, reported.split())
        if process == child:
            return code
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGINT:
        _print("interrupted")
    elif code in [-number for number in SIGNALS]:
        _print(f"terminated by {signal.Signals(-code).name} before a verdict")
    elif code < 0:
        _print(f"its process was killed by signal {-code} before a verdict")
        return ExitCode.NOT_VERIFIED
    elif code not in [128 + number for number in SIGNALS]:
        why = "a contract exits, or closes its files"
        _print(f"its process ended with exit code {code} before a verdict: {why}")
        return ExitCode.USAGE
    return 128 - code if code < 0 else code


def _print(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"verify: {text}\n".encode())

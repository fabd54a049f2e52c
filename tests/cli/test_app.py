"""The command as a process: how it stops on a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.signals import take_interrupts

WAITING = """
import signal, sys, threading, time
from verify.cli import app

app._watch_signals()
main = threading.get_ident()
def wait_for_ever():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
def other():
    last = wait_for_ever.__code__.co_firstlineno + 3
    while (frame := sys._current_frames()[main]).f_lineno != last or frame.f_code.co_name != "wait_for_ever":
        time.sleep(0)  # until the main thread waits
    signal.pthread_kill(threading.get_ident(), signal.{name})  # interrupts only this thread's wait
    threading.Event().wait()
threading.Thread(target=other, daemon=True).start()
wait_for_ever()
"""


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("SIGINT", 130, "verify: interrupted\n"),
        ("SIGTERM", 143, "verify: terminated by SIGTERM before a verdict\n"),
    ],
)
def test_a_signal_that_interrupts_no_wait_ends_the_command(name: str, code: int, said: str) -> None:
    """Fault: Ctrl-C just before a wait for threads begins is seen only when the kernels have ended."""
    command = [sys.executable, "-c", WAITING.format(name=name)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=20, check=False, preexec_fn=take_interrupts
    )
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_the_command_without_a_reader_of_its_errors(name: str, code: int) -> None:
    """Fault: the signal has ended the reader of standard error too; the last line fails, and nothing ends."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", WAITING.format(name=name)]
    try:
        done = subprocess.run(command, stderr=writing, timeout=20, check=False, preexec_fn=take_interrupts)
    finally:
        os.close(writing)
    assert done.returncode == code


STARTING_AGAIN = """
import sys, threading, time
from verify.cli import app
from verify.system.guard import guarded

app._watch_signals()
end_descendants = app.end_descendants
app.end_descendants = lambda: (end_descendants(), time.sleep(0.5))
def session():
    while True:  # as the runs of a pack go on in another process when one is killed
        with guarded(["sleep", sys.argv[1]]) as process:
            print("started", flush=True)
            process.wait()
for _ in range(4):
    threading.Thread(target=session, daemon=True).start()
threading.Event().wait()
"""


def test_nothing_is_started_while_the_command_stops() -> None:
    """Fault: the run behind the one that was killed begins in a new process, which nobody ends."""
    seconds = f"60.{os.getpid()}"
    command = subprocess.Popen(
        [sys.executable, "-c", STARTING_AGAIN, seconds], stdout=subprocess.PIPE, preexec_fn=take_interrupts
    )
    assert command.stdout is not None
    for _ in range(4):
        command.stdout.readline()
    command.send_signal(signal.SIGTERM)
    assert command.wait(20) == 143
    deadline = time.monotonic() + 10
    while left := [file for file in Path("/proc").glob("[0-9]*/cmdline") if _sleeps(file, seconds)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def _sleeps(file: Path, seconds: str) -> bool:
    try:
        return file.read_bytes() == f"sleep\0{seconds}\0".encode()
    except OSError:
        return False

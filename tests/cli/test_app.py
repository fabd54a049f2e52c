"""The command as a process: what it does when it is asked to end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.signals import take_interrupts

WAITING = """
import signal, threading, time
from verify.cli import app

app._watch_signals()
def other():
    time.sleep(0.3)  # the main thread waits by now
    signal.pthread_kill(threading.get_ident(), signal.{name})  # interrupts no wait but this thread's
    time.sleep(30)
threading.Thread(target=other, daemon=True).start()
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""


@pytest.mark.parametrize(
    ("name", "code", "said"), [("SIGINT", 130, "verify: interrupted\n"), ("SIGTERM", 143, "")]
)
def test_a_signal_that_wakes_no_wait_ends_the_command(name: str, code: int, said: str) -> None:
    """Fault: Ctrl-C just before a wait for threads begins is seen only when the kernels have ended."""
    command = [sys.executable, "-c", WAITING.format(name=name)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=20, check=False, preexec_fn=take_interrupts
    )
    assert (done.returncode, done.stderr) == (code, said)

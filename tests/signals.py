"""Signals of the processes that tests start."""

from __future__ import annotations

import signal


def take_interrupts() -> None:
    """For ``preexec_fn``: what a background job or nohup starts ignores interrupts or hangups."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)

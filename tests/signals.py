"""Signals of the processes that tests start."""

from __future__ import annotations

import signal


def take_interrupts() -> None:
    """For ``preexec_fn``: a shell's background job ignores interrupts, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

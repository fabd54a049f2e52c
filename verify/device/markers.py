"""The markers that a harness prints, and the state of one process according to them."""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass, field

from verify.device.interface import RunStatus

TAIL_LINES = 40
_MARKER = re.compile(r"@(begin|launched|done|error|refused|fault|buffer) (\S+)(?: (.*))?$")
_KERNELS = re.compile(r"\bkernels=(\d+)")
_NO_MEMORY = re.compile(r"^no memory: needs (\d+) bytes of device memory, (\d+) are free")


@dataclass
class ProcessState:
    """The state of one process according to its markers so far.

    since: when the current run began. took: seconds of successful runs, not yet passed on. limit: seconds
    that the current run may take.
    """

    wanted: frozenset[str]
    begun: list[str] = field(default_factory=list)
    current: str | None = None
    kernels: dict[str, int] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    buffers: dict[str, dict[str, int]] = field(default_factory=dict)
    ends: dict[str, tuple[RunStatus, str]] = field(default_factory=dict)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    given_up: str = ""
    since: float = 0.0
    took: list[tuple[str, float]] = field(default_factory=list)
    limit: float = 0.0

    def read(self, line: str) -> bool:
        """Process one line of output; returns whether it was a marker of a run of this process."""
        marker = _MARKER.search(line)
        if marker is None or marker[2] not in self.wanted:
            if line.strip():
                self.tail.append(line)
            return False
        word, run, text = marker[1], marker[2], marker[3] or ""
        if word == "begin":
            self.begun.append(run)
            self.current, self.since = run, time.monotonic()
        elif word == "launched":
            count = _KERNELS.search(text)
            self.kernels[run] = int(count[1]) if count else 0
        elif word == "buffer":
            name, _, address = text.rpartition(" ")
            if address.isdecimal():
                self.buffers.setdefault(run, {})[name] = int(address)
        elif word == "fault":
            self.faults.setdefault(run, []).append(text)
        elif word == "error":
            if found := _NO_MEMORY.match(text):
                needed, free = (int(number) / 1e9 for number in found.groups())
                missing = f"needs {needed:.1f} GB of device memory, {free:.1f} GB are free"
                self.ends[run] = (RunStatus.REFUSED_MEMORY, missing)
            else:
                self.ends[run] = (RunStatus.FAULT, text)
            self.current = None
        elif word == "refused":
            self.ends[run] = (RunStatus.DONE, text)
        else:
            self.ends.setdefault(run, (RunStatus.DONE, ""))
            self.current = None
            self.took.append((run, time.monotonic() - self.since))
        return True

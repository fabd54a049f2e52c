"""How long the runs of one build take, and so how long another may take before it counts as a hang.

A limit that is right for the slowest kernel on the slowest machine is minutes, which every hang would wait
for. Once runs of the same build have ended well, the others are held to what their size makes likely, with a
factor and a floor so generous that a machine which slows down meanwhile makes no hangs.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from math import inf, prod

from verify.wire.run import Run

FACTOR = 20.0
"""What a run may take of the time that the slowest run so far makes likely for its size."""

FLOOR_SECONDS = 30.0
"""No run has less than this."""


@dataclass
class Pace:
    """The slowest runs so far, by lane: a tool's name, or ``native``. Threads may share it."""

    _longest: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _rate: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def took(self, lane: str, run: Run, seconds: float) -> None:
        """A run ended well."""
        with self._lock:
            self._longest[lane] = max(self._longest[lane], seconds)
            self._rate[lane] = max(self._rate[lane], seconds / _size(run))

    def limit(self, lane: str, run: Run) -> float:
        """Seconds that a run may take; without an end where nothing of its lane has ended yet."""
        with self._lock:
            if lane not in self._longest:
                return inf
            likely = max(self._longest[lane], self._rate[lane] * _size(run))
        return max(FLOOR_SECONDS, FACTOR * likely)


def _size(run: Run) -> int:
    """Elements that a run's calls may touch."""
    elements = sum(max(prod(run.case.shape(buffer)), 0) for buffer in run.case.contract.buffers)
    return max(elements, 1) * max(run.repeats, 1)

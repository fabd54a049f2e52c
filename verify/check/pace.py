"""Derives the time limit of a run from the durations of earlier runs of the same build.

A fixed limit for the slowest kernel on the slowest machine would be minutes, and every hang would take that
long. Once runs of the same build have succeeded, the limit follows from a run's size, with a factor and a
minimum large enough that a machine that becomes slower meanwhile causes no false hangs.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from math import inf, prod

from verify.wire.run import Run

FACTOR = 20.0
"""The limit as a multiple of the time predicted from the slowest run so far and the run's size."""

FLOOR_SECONDS = 30.0
"""The smallest limit of any run."""


@dataclass
class Pace:
    """The slowest runs so far by lane: a tool's name, or ``native``. Thread-safe."""

    _longest: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _rate: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def took(self, lane: str, run: Run, seconds: float) -> None:
        """Record the duration of a successful run."""
        with self._lock:
            self._longest[lane] = max(self._longest[lane], seconds)
            self._rate[lane] = max(self._rate[lane], seconds / _size(run))

    def limit(self, lane: str, run: Run) -> float:
        """Seconds that a run may take; infinite as long as no run of its lane has ended."""
        with self._lock:
            if lane not in self._longest:
                return inf
            likely = max(self._longest[lane], self._rate[lane] * _size(run))
        return max(FLOOR_SECONDS, FACTOR * likely)


def _size(run: Run) -> int:
    """Elements that a run's calls may access."""
    elements = sum(max(prod(run.case.shape(buffer)), 0) for buffer in run.case.contract.buffers)
    return max(elements, 1) * max(run.repeats, 1)

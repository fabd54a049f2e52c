"""Runs that did not end, and what is not tried any more because of them: each would wait the whole limit."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verify.device.interface import RunResult, RunStatus
from verify.wire.run import Run

MOST_FIXTURES = 2
"""Fixtures that may hang; then it is the kernel that does, and its other fixtures are left out as well."""

NATIVE = "native"


@dataclass
class Hangs:
    """What one kernel has hung in, by lane: a tool's name, or ``native`` for all that runs without a tool.

    A hang of a native run is the kernel's. Under a tool the slowness may be the tool's, so that such a hang
    leaves out that tool's runs only. tools_tell: a tool that is ended still says what it saw, so a fixture
    that hangs natively is tried once under each tool.
    """

    tools_tell: bool = False
    _hung: dict[str, dict[str, RunResult]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, lane: str, runs: Sequence[Run], results: Mapping[str, RunResult]) -> None:
        """Take note of the hangs among the ends so far."""
        with self._lock:
            hung = self._hung.setdefault(lane, {})
            for run in runs:
                if run.id in results and results[run.id].status is RunStatus.TIMEOUT:
                    hung.setdefault(run.case.fixture, results[run.id])

    def reason(self, lane: str, run: Run) -> str:
        """Why a run is not to be tried any more in a lane, empty to try it."""
        with self._lock:
            native, own = self._hung.get(NATIVE, {}), self._hung.get(lane, {})
            known = {**native, **own}
            hung = own if self.tools_tell else known
            if (alike := hung.get(run.case.fixture)) is not None:
                return f"left out, since {alike.run} of the same fixture had {_limit(alike)}"
            if hung and len(known) >= MOST_FIXTURES:
                shown = list(known.values())[:MOST_FIXTURES]
                names = " and ".join(r.run for r in shown)
                return f"left out, since {names} had {_limit(shown[0])}: -k takes fixtures one by one"
            return ""


def _limit(hung: RunResult) -> str:
    return f"{hung.error} (VERIFY_RUN_SECONDS allows a slow kernel more)"

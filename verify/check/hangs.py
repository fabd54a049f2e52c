"""Tracks hung runs, and skips further runs because of them: each would wait for the whole time limit."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verify.device.interface import RunResult, RunStatus
from verify.wire.run import Run

MOST_FIXTURES = 2
"""After this many hung fixtures, the kernel itself is at fault, and its other fixtures are skipped too."""

NATIVE = "native"


@dataclass
class Hangs:
    """The hangs of one kernel by lane: a tool's name, or ``native`` for runs without a tool.

    A hang of a native run is the kernel's fault. Under a tool, the tool may be slow, so such a hang skips
    only that tool's runs. tools_report: a killed tool still reports its records, so a fixture that hangs
    natively is tried once under each tool.
    """

    tools_report: bool = False
    _hung: dict[str, dict[str, RunResult]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, lane: str, runs: Sequence[Run], results: Mapping[str, RunResult]) -> None:
        """Record the hangs among the results so far."""
        with self._lock:
            hung = self._hung.setdefault(lane, {})
            for run in runs:
                if run.id in results and results[run.id].status is RunStatus.TIMEOUT:
                    hung.setdefault(run.case.fixture, results[run.id])

    def reason(self, lane: str, run: Run) -> str:
        """Why a run in a lane is to be skipped, empty to run it."""
        with self._lock:
            native, own = self._hung.get(NATIVE, {}), self._hung.get(lane, {})
            known = {**native, **own}
            hung = own if self.tools_report else known
            if (same := hung.get(run.case.fixture)) is not None:
                return f"skipped, since {same.run} of the same fixture had {_limit(same)}"
            if hung and len(known) >= MOST_FIXTURES:
                shown = list(known.values())[:MOST_FIXTURES]
                names = " and ".join(r.run for r in shown)
                return f"skipped, since {names} had {_limit(shown[0])}: -k selects single fixtures"
            return ""


def _limit(hung: RunResult) -> str:
    return f"{hung.error} (VERIFY_RUN_SECONDS raises the limit for a slow kernel)"

"""The other direction: the right kernel, again and again, must never be reported."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from verify.check.specs import usual_checks
from verify.contract.discovery import find_contracts
from verify.device.interface import Device, Execution, Job
from verify.finding.finding import Outcome, Verdict
from verify.gate.gate import run_checks
from verify.gate.prepare import Prepared, prepare
from verify.gate.selection import Selection
from verify.system.progress import Progress

REPEATS: Mapping[str, int] = {"gpu": 20, "cpu": 3}
"""How often a kernel is run. A GPU schedules every time anew. The CPU device is deterministic: only another
seed is another schedule, and its race check does not depend on one, so a few seeds do."""


@dataclass
class Seeded:
    """A CPU device whose schedules follow a seed of their own, unless a job names one."""

    device: Device
    seed: int

    def __getattr__(self, name: str) -> object:
        return getattr(self.device, name)

    def execute(self, job: Job, progress: Progress | None = None) -> Execution:
        """Run a job under this seed."""
        return self.device.execute(replace(job, options={"seed": str(self.seed), **job.options}), progress)


def prepared(kernel: str, device: Device, expression: str | None = None) -> Prepared:
    """The right kernel, built and with its cases."""
    (contract,) = find_contracts([kernel])
    selection = Selection((contract,), expression)
    info = device.info()
    return prepare(contract, selection.select, info.architecture, info.sm_count, lambda _: None)


def run_right(ready: Prepared, device: Device, repeat: int) -> list[Outcome]:
    """All usual checks once more, on the CPU device under the repeat's own seed."""
    seeded: Device = Seeded(device, 100 + repeat) if device.name == "cpu" else device  # type: ignore[assignment]
    with tempfile.TemporaryDirectory(prefix="verify-right-") as scratch:
        selection = Selection((ready.contract,))
        return run_checks(ready, seeded, usual_checks(device), Path(scratch), selection, lambda _: None)


def false_alarms(outcomes: list[Outcome]) -> list[str]:
    """A line for each outcome that is not clean; missing memory is no alarm."""
    lines = []
    for outcome in outcomes:
        if outcome.verdict not in (Verdict.CLEAN, Verdict.NOT_RUN):
            first = outcome.findings[0] if outcome.findings else None
            why = f"{first.kind}: {first.seen}" if first else outcome.reason
            lines.append(f"{outcome.kernel} {outcome.fixture} {outcome.check}: {outcome.verdict}: {why}")
    return lines


def try_right(kernel: str, device: Device, repeats: int, say: Callable[[str], None]) -> list[str]:
    """Every false alarm of so many runs of the right kernel over all of its fixtures."""
    ready = prepared(kernel, device)
    alarms = []
    for repeat in range(repeats):
        found = false_alarms(run_right(ready, device, repeat))
        say(f"{kernel}, right kernel, run {repeat + 1} of {repeats}: {len(found)} false alarms")
        alarms += [f"run {repeat + 1}: {line}" for line in found]
    return alarms

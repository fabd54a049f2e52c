"""Tries a planted fault: builds the mutated kernel and asks the checks that must report it."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.mutants.planted import Mutant, PatchError, plant
from verify.contract.discovery import find_contracts
from verify.contract.model import Contract
from verify.device.interface import TOOLS, Device
from verify.finding.finding import Finding, Outcome, Severity, Verdict, overall
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import FixtureError
from verify.gate.gate import run_checks
from verify.gate.prepare import Prepared, prepare
from verify.gate.selection import Selection, SelectionError
from verify.harness.build import build_harness
from verify.oracle.expectation import Quantity
from verify.toolchain.compile import BuildError

Say = Callable[[str], None]

BESIDE = 5
"""Mutants on a device at a time, at most: each runs its tools side by side already."""


class Fate(StrEnum):
    """What became of a mutant. Only ``killed`` is good."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Trial:
    """One mutant's trial. outcomes: of all checks that were asked. trouble: why nothing could be asked."""

    mutant: Mutant
    device: str
    fate: Fate
    missing: str = ""
    outcomes: tuple[Outcome, ...] = ()
    seconds: float = 0.0

    @property
    def reported_by(self) -> tuple[str, ...]:
        """The checks with findings."""
        checks = dict.fromkeys(o.check for o in self.outcomes)
        return tuple(c for c in checks if overall(self.of(c)) is Verdict.FINDINGS)

    def of(self, check: str) -> list[Outcome]:
        return [o for o in self.outcomes if o.check == check]

    def findings(self, check: str) -> Iterator[Finding]:
        for outcome in self.of(check):
            yield from (f for f in outcome.findings if f.severity is Severity.ERROR)

    def as_json(self) -> dict[str, Any]:
        """For a program: the first finding of each check in full."""
        first = {c: next(self.findings(c)) for c in self.reported_by}
        return {
            "kernel": self.mutant.kernel,
            "mutant": self.mutant.name,
            "fault": self.mutant.fault,
            "device": self.device,
            "expected": list(self.mutant.expected(self.device)),
            "reported_by": list(self.reported_by),
            "fate": str(self.fate),
            "missing": self.missing,
            "seconds": round(self.seconds, 2),
            "verdicts": {o.check: str(overall(self.of(o.check))) for o in self.outcomes},
            "first_findings": {
                c: {
                    "kind": f.kind,
                    "case": f.case,
                    "seen": f.seen,
                    "source": str(f.source or ""),
                    "where": f.where,
                }
                for c, f in first.items()
            },
        }


@dataclass
class Trials:
    """Trials on one device. every: ask all of its checks instead of those that must report.

    References and bounds are computed once for all mutants whose fixture and plan are the same.
    """

    device: Device
    every: tuple[str, ...] = ()
    _expected: dict[str, dict[str, Mapping[str, Quantity]]] = field(default_factory=dict)

    @property
    def machine_code(self) -> bool:
        """The CPU device runs PTX alone."""
        return self.device.name != "cpu"

    def build(self, mutant: Mutant) -> Contract:
        """Compile the mutant's harness. Raises PatchError or BuildError."""
        (contract,) = find_contracts([mutant.kernel])
        planted = plant(contract, mutant)
        build_harness(planted, self.device.info().architecture, _silent, machine_code=self.machine_code)
        return planted

    def run(self, mutant: Mutant, planted: Contract) -> Trial:
        """Ask the checks, over the mutant's fixtures."""
        started = time.monotonic()
        info = self.device.info()
        checks = self.every or mutant.expected(self.device.name)
        selection = Selection((planted,), mutant.fixtures, (), checks)
        try:
            ready = prepare(
                planted, selection.select, info.architecture, info.sm_count, _silent, self.machine_code
            )
        except (FixtureError, SelectionError) as error:
            return Trial(mutant, self.device.name, Fate.UNDECIDED, str(error))
        ready = self._sharing(ready)
        with tempfile.TemporaryDirectory(prefix="verify-mutant-") as scratch:
            outcomes = tuple(run_checks(ready, self.device, checks, Path(scratch), selection, _silent))
        seconds = time.monotonic() - started
        fate, missing = judge(mutant, self.device.name, outcomes, planted.source)
        return Trial(mutant, self.device.name, fate, missing, outcomes, seconds)

    def _sharing(self, ready: Prepared) -> Prepared:
        """With the expectations of other mutants over the same fixtures and plans."""
        key = repr([_numbers(fixture) for fixture in ready.fixtures])
        shared = self._expected.setdefault(f"{ready.contract.name} {key}", {})
        return replace(ready, expected=shared)


def _numbers(resolved: ResolvedFixture) -> tuple[object, ...]:
    return resolved.fixture.name, sorted(resolved.symbols.items()), sorted(resolved.plan.items())


def judge(mutant: Mutant, device: str, outcomes: Sequence[Outcome], source: str) -> tuple[Fate, str]:
    """What became of the mutant, and what is missing for a kill.

    A check reports it when it has findings; a tool's must name a line of the kernel's own source, or it may
    have reported something else.
    """
    missing, silent = [], False
    trial = Trial(mutant, device, Fate.KILLED, "", tuple(outcomes))
    expected = mutant.expected(device)
    for check in expected:
        verdict = overall(trial.of(check))
        if verdict is not Verdict.FINDINGS:
            silent |= verdict is Verdict.CLEAN
            reason = next((o.reason for o in trial.of(check) if o.reason), "")
            missing.append(f"{check}: {verdict}{f' ({reason})' if reason else ''}")
        elif check in TOOLS and not any(_names(f, source) for f in trial.findings(check)):
            silent = True
            missing.append(f"{check}: no finding with a line of {source}")
    kinds = {f.kind for check in expected for f in trial.findings(check)}
    if not missing and mutant.kind and not any(mutant.kind in kind for kind in kinds):
        silent = True
        missing.append(f"no finding is called {mutant.kind!r}, but {', '.join(sorted(kinds))}")
    if not missing:
        return Fate.KILLED, ""
    return (Fate.SURVIVED if silent else Fate.UNDECIDED), "; ".join(missing)


def _names(finding: Finding, source: str) -> bool:
    return finding.source is not None and Path(finding.source.file).name == source


def try_all(mutants: Sequence[Mutant], trials: Trials, jobs: int, say: Say) -> list[Trial]:
    """All mutants: ``jobs`` compilers at a time, and those that are built on the device meanwhile."""

    compilers = threading.Semaphore(jobs)

    def build_and_run(mutant: Mutant) -> Trial:
        try:
            with compilers:
                planted = trials.build(mutant)
        except (PatchError, BuildError) as error:
            trial = Trial(mutant, trials.device.name, Fate.UNDECIDED, str(error))
        else:
            trial = runners.submit(trials.run, mutant, planted).result()
        say(f"{trial.fate}: {mutant.name} ({trial.seconds:.1f} s) {trial.missing}".rstrip())
        return trial

    with (
        ThreadPoolExecutor(min(jobs, BESIDE)) as runners,
        ThreadPoolExecutor(jobs + min(jobs, BESIDE)) as workers,
    ):
        return list(workers.map(build_and_run, mutants))


def usual_jobs() -> int:
    """Compilers at a time: one a core."""
    return len(os.sched_getaffinity(0))


def _silent(_: str) -> None:
    pass

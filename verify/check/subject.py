"""The subject of a check: one kernel with its cases, its binary and a device to run it on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from verify.check.hangs import NATIVE, Hangs
from verify.check.pace import Pace
from verify.contract.model import Case, Contract
from verify.device.interface import Capability, Device, Execution, Job, RunResult, RunStatus, Tool
from verify.fixture.resolve import PlanQuery, ResolvedFixture
from verify.fixture.schema import Fixture
from verify.oracle.expectation import Quantity, expect
from verify.wire.output import RunOutput, read_output
from verify.wire.pack import CaseFiles, write_pack
from verify.wire.run import Run

RUN_SECONDS = "VERIFY_RUN_SECONDS"

MOST_SECONDS = 1_000_000
"""Eleven days. A run without a limit could hang an unattended CI."""


def run_seconds() -> float:
    """The time limit of one run, after which it counts as hung: VERIFY_RUN_SECONDS, or 120."""
    text = os.environ.get(RUN_SECONDS, "120")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= MOST_SECONDS:
        raise ValueError(f"{RUN_SECONDS}: must be a number of seconds from 1 to {MOST_SECONDS}, is {text!r}")
    return seconds


@dataclass(frozen=True)
class Ran:
    """One run's result, with its outputs if it is DONE."""

    run: Run
    result: RunResult
    output: RunOutput | None

    @property
    def done(self) -> bool:
        """Whether the run succeeded and has outputs."""
        return self.result.status is RunStatus.DONE and self.output is not None


@dataclass
class Subject:
    """The input of every check.

    cases: fixture -> profile -> case, in file order. folder: scratch for packs and outputs, emptied by the
    caller. argument: the kernel's name on a command line (or the path of a user's contract). seeds: how many
    schedules determinism and the tools try where they are seeded, 0 for each one's default. progress: called
    with one line at a time. strict: warnings count as findings. plans: queries the launcher's plan for symbol
    values that no fixture has; raises PlanError. offers: the same, but with an empty answer for symbols that
    the plan function rejects. bases: by fixture, the base of refusals, whether selected or not.
    """

    contract: Contract
    fixtures: tuple[ResolvedFixture, ...]
    cases: Mapping[str, Mapping[str, Case]]
    binary: Path
    device: Device
    folder: Path
    argument: str = ""
    strict: bool = False
    seeds: int = 0
    progress: Callable[[str], None] = lambda _: None
    environment: Mapping[str, str] = field(default_factory=dict)
    plans: PlanQuery = lambda asked: [{} for _ in asked]
    suppressed: set[str] = field(default_factory=set)
    offers: PlanQuery = lambda asked: [{} for _ in asked]
    bases: Mapping[str, tuple[Fixture, Case]] = field(default_factory=dict)
    _expected: dict[str, Mapping[str, Quantity]] = field(default_factory=dict)
    _ran: dict[str, Ran] = field(default_factory=dict)
    _hangs: Hangs = field(default_factory=Hangs)
    _pace: Pace = field(default_factory=Pace)
    _files: CaseFiles = field(init=False)

    def __post_init__(self) -> None:
        self._files = CaseFiles(self.folder / "cases")
        self._hangs.tools_report = self.can(Capability.PARTIAL_RECORDS)

    def can(self, capability: Capability) -> bool:
        """Whether the subject's device has a capability."""
        return capability in self.device.capabilities

    def expectation(self, case: Case) -> Mapping[str, Quantity]:
        """The case's reference and bounds, computed once."""
        if case.id not in self._expected:
            self._expected[case.id] = expect(case)
        return self._expected[case.id]

    def execute(self, runs: Iterable[Run]) -> dict[str, Ran]:
        """Execute runs natively, in one process; a run already executed in this session is not repeated.

        Checks that request the same run share it: its id identifies case, mode and fills.
        """
        wanted = {run.id: run for run in runs}
        fresh = [run for run in wanted.values() if run.id not in self._ran]
        if fresh:
            execution = self.start(fresh, f"native-{len(self._ran)}")
            for run in fresh:
                result = execution.results[run.id]
                output = None
                if result.status is RunStatus.DONE and result.output is not None:
                    output = read_output(result.output, run.case)
                self._ran[run.id] = Ran(run, result, output)
        return {run_id: self._ran[run_id] for run_id in wanted}

    def executed(self) -> tuple[Run, ...]:
        """The native runs executed so far in this session."""
        return tuple(ran.run for ran in self._ran.values())

    def start(
        self,
        runs: Sequence[Run],
        name: str,
        tool: Tool | None = None,
        options: Mapping[str, str] | None = None,
        timeout: float | None = None,
        again: bool = False,
    ) -> Execution:
        """Execute one job on the device, with its pack under ``folder/name``.

        After a hang, runs that would wait as long are skipped (:mod:`verify.check.hangs`), unless ``again``.
        """
        lane, by_id = tool or NATIVE, {run.id: run for run in runs}
        measured = RUN_SECONDS not in os.environ  # otherwise the user's limit applies

        def skip(run: str, ends: Mapping[str, RunResult]) -> str:
            self._hangs.note(lane, runs, ends)
            return "" if again else self._hangs.reason(lane, by_id[run])

        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pack = write_pack(folder / "pack", runs, self._files)
        # Under a tool, filling shared memory costs seconds and is useless: the tool sees the read itself.
        quick = {"VERIFY_KEEP_SHARED": "1"} if tool else {}
        job = Job(
            binary=self.binary,
            pack=pack,
            runs=[run.id for run in runs],
            out=folder / "out",
            tool=tool,
            timeout=timeout or run_seconds(),
            options=options or {},
            environment={**quick, **self.environment},
            skip=skip,
            limit=lambda run: self._pace.limit(lane, by_id[run]) if measured else inf,
            took=lambda run, seconds: self._pace.took(lane, by_id[run], seconds),
        )
        execution = self.device.execute(job, lambda run: self.progress(f"{tool or 'native'} {run}"))
        self._hangs.note(lane, runs, execution.results)
        return execution

    def repeat_command(self, check: str, fixture: str) -> str:
        """The command line that reproduces one check on one fixture."""
        return (
            f"python -m verify run {self.argument} -k {fixture} --check {check} --device {self.device.name}"
        )

"""The CPU device: the same harness binary on the PTX machine, through a replacement of its CUDA runtime."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from verify.device.elf import ProgramFile, read_program
from verify.device.fat_binary import FatBinaryError
from verify.device.interface import (
    TOOLS,
    Availability,
    Capability,
    DeviceInfo,
    Execution,
    Job,
    RunResult,
    RunStatus,
    Tool,
)
from verify.device.machine_report import MachineReport, ReportError, merge_reports, read_report
from verify.device.machine_traffic import counters_by_run
from verify.device.program import (
    ARCHITECTURES,
    ProgramOptions,
    RefusedError,
    check_program,
    machine_environment,
)
from verify.device.sanitizer.tripwire import Tripwires
from verify.device.session import Command, ProcessEnd, Session, harness_command, run_session
from verify.system.progress import Progress
from verify.toolchain.machine_build import MachineBuildError, machine_library
from verify.toolchain.toolchain import find_toolchain

MULTIPROCESSORS = {"sm_80": 108, "sm_90": 132}
"""As machine/runtime/limits.cpp tells programs: a launcher's split count must not depend on this machine."""

SEED, ALSO, ROW_BYTES = "seed", "tools", "row_bytes"
"""Job options: the schedule's seed, what looks on beside the job's own tool (names with commas), and the size
of the cells that traffic is counted by.
"""


@dataclass
class CpuDevice:
    """The PTX machine as one device of an architecture.

    Every tool is one of the machine's own checks, so several look on in one run.
    """

    architecture: str = "sm_90"
    name: Literal["gpu", "cpu"] = "cpu"
    tools: tuple[Tool, ...] = TOOLS
    capabilities: frozenset[Capability] = frozenset(
        {
            Capability.COUNTS_READS,
            Capability.SEEDS_SCHEDULES,
            Capability.ORDERS_STREAMS,
            Capability.OWNS_MEMORY,
            Capability.TOOLS_TOGETHER,
        }
    )
    _tripwires: Tripwires = field(default_factory=Tripwires)

    def available(self) -> Availability:
        """Whether the machine can be compiled here; it is compiled when it is first used."""
        if self.architecture not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            return Availability(False, f"the CPU device knows {known}, not {self.architecture}")
        missing = find_toolchain().missing
        reasons = [missing[part] for part in ("g++", "headers") if part in missing]
        return Availability(not reasons, "; ".join(reasons))

    def info(self) -> DeviceInfo:
        """What programs are told, and the memory that this machine has free."""
        return DeviceInfo(
            f"CPU device {self.architecture}, {os.cpu_count()} cores",
            "cpu",
            self.architecture,
            MULTIPROCESSORS[self.architecture],
            _free_memory(),
            {"g++": find_toolchain().gxx_version},
        )

    def variants(self, architectures: Sequence[str]) -> tuple[CpuDevice, ...]:
        """One device for each architecture: PTX image, ``__CUDA_ARCH__`` path, limits and properties."""
        for architecture in architectures:
            if architecture not in ARCHITECTURES:
                known = ", ".join(ARCHITECTURES)
                raise ValueError(f"{architecture}: the CPU device plays {known} (--arch, or the contract's)")
        return tuple(replace(self, architecture=architecture) for architecture in architectures)

    def notes(self) -> tuple[str, ...]:
        """What every report prints."""
        return ("the CPU device checks the PTX of the kernel, not the machine code that ptxas makes of it",)

    def execute(self, job: Job, progress: Progress | None = None) -> Execution:
        """Run a job on the machine; under a tool, with its records and the proof of work."""
        try:
            library = machine_library(progress)
            facts = read_program(job.binary)
            if facts is not None:
                check_program(facts, self.architecture)
        except (RefusedError, MachineBuildError, FatBinaryError) as problem:
            reason = str(problem).splitlines()[0]
            results = {run: RunResult(run, RunStatus.NOT_RUN, error=reason) for run in job.runs}
            return Execution(job, results, doubt=reason)
        return self._execute(job, library, facts, progress)

    def tripwire(self, tool: Tool) -> Availability:
        """Whether the check reports every fault planted for it; asked once."""
        return self._tripwires.tried(self, tool)

    def _execute(
        self, job: Job, library: Path, facts: ProgramFile | None, progress: Progress | None
    ) -> Execution:
        options = self._options(job)
        base = {**find_toolchain().run_environment(), **job.environment, "VERIFY_KEEP_SHARED": "1"}

        def folder(index: int) -> Path:
            return job.out / f"report-{index}"

        def command(index: int, runs: Sequence[str]) -> Command:
            folder(index).mkdir(parents=True, exist_ok=True)
            told = machine_environment(library, options, folder(index), base, facts, job.binary.name)
            # Rows are counted by size where a job gives one; regions would be counted in their place.
            return Command(harness_command(job, runs, regions=ROW_BYTES not in job.options), told)

        session = run_session(job, command, progress)
        reports = [_report_in(folder(index)) for index in range(len(session.processes))]
        whole = merge_reports([r for r in reports if isinstance(r, MachineReport)])
        doubts = [_doubt(end, report) for end, report in zip(session.processes, reports, strict=True)]
        if options.tools and not any(doubts):
            doubts.append(_doubt_of_work(session, whole))
        counters = {"work": dict(whole.work), "by_class": dict(whole.by_class)} if whole else {}
        if whole is not None and whole.traffic:
            try:
                counters |= counters_by_run(session, whole.traffic)
            except ValueError as problem:
                doubts.append(str(problem))
        return Execution(
            job,
            _results(session, reports),
            tuple(finding.record() for finding in whole.findings) if whole else (),
            whole.summary if whole else "",
            next((doubt for doubt in doubts if doubt), ""),
            session.processes[0].command if session.processes else (),
            folder(0),
            session.seconds,
            counters,
            session.faults,
            session.buffers,
        )

    def _options(self, job: Job) -> ProgramOptions:
        """What the machine is asked to do for a job; without a tool it only runs the program."""
        own: list[str] = [job.tool] if job.tool is not None else []
        beside = filter(None, job.options.get(ALSO, "").split(","))
        checks = {name: value for name, value in job.options.items() if name not in (SEED, ALSO)}
        return ProgramOptions(
            tools=tuple(dict.fromkeys([*own, *beside])),
            architecture=self.architecture,
            seed=int(job.options.get(SEED, "0")),
            print_limit=1,
            log_file=(job.out / "report.txt"),
            report_api_errors=job.tool is not None,
            checks=checks,
        )


def _report_in(folder: Path) -> MachineReport | str:
    """The report of one process of a session, or why there is none."""
    try:
        merged = merge_reports([read_report(file) for file in sorted(folder.glob("*.json"))])
    except ReportError as problem:
        return str(problem)
    return merged if merged is not None else "the CPU device left no report"


def _doubt(end: ProcessEnd, report: MachineReport | str) -> str:
    """Why the report of one process cannot be taken as the whole truth, or empty."""
    if isinstance(report, str):
        return f"{report} ({end.cause})"
    if report.refusal:
        return report.refusal
    if end.killed:
        return "the process was ended with the run that hung, before its report was whole"
    return ""


def _doubt_of_work(session: Session, report: MachineReport | None) -> str:
    """The machine must have run every kernel that the harness's markers count."""
    marked = sum(result.kernels for result in session.results.values())
    idle = [r.run for r in session.results.values() if r.status is RunStatus.DONE and r.kernels == 0]
    if idle:
        return f"the harness launched no kernel in {', '.join(idle[:3])}"
    ran = report.launches if report is not None else 0
    return f"the machine ran {ran} kernels, the harness launched {marked}" if ran < marked else ""


def _results(session: Session, reports: Sequence[MachineReport | str]) -> dict[str, RunResult]:
    """The runs' ends; what failed because the machine refused something was not run, and is no fault."""
    results = dict(session.results)
    for end, report in zip(session.processes, reports, strict=True):
        if isinstance(report, MachineReport) and report.refusal:
            for run in end.begun:
                if results[run].status is RunStatus.FAULT:
                    results[run] = replace(results[run], status=RunStatus.NOT_RUN, error=report.refusal)
    return results


def _free_memory() -> int:
    """Bytes that this machine could still give, 0 when it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "0")
    return int(kilobytes) * 1024

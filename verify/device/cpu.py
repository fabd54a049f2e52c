"""The CPU device: runs the same harness binary on the PTX machine, by replacing its CUDA runtime."""

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
from verify.toolchain.machine_build import machine_library
from verify.toolchain.machine_sources import MachineBuildError
from verify.toolchain.toolchain import find_toolchain

MULTIPROCESSORS = {"sm_80": 108, "sm_90": 132, "sm_90a": 132}
"""As reported by machine/runtime/limits.cpp: a launcher's split count must not depend on the host."""

SEED, ALSO, ROW_BYTES = "seed", "tools", "row_bytes"
"""Job options: the schedule's seed, tools that run beside the job's own (comma-separated), and the size of
the cells by which traffic is counted.
"""


@dataclass
class CpuDevice:
    """The PTX machine as a device of one architecture.

    Every tool is one of the machine's own checks, so several can observe one run.
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
            Capability.SHARED_BY_PROCESSES,
        }
    )
    _tripwires: Tripwires = field(default_factory=Tripwires)

    def available(self) -> Availability:
        """Whether the machine can be compiled here; it is compiled on first use."""
        if self.architecture not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            return Availability(False, f"the CPU device supports {known}, not {self.architecture}")
        missing = find_toolchain().missing
        reasons = [missing[part] for part in ("g++", "headers") if part in missing]
        return Availability(not reasons, "; ".join(reasons))

    def info(self) -> DeviceInfo:
        """The properties that programs see, and the host's free memory."""
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
                raise ValueError(f"{architecture}: the CPU device knows {known} (--arch, or the contract's)")
        return tuple(replace(self, architecture=architecture) for architecture in architectures)

    def notes(self) -> tuple[str, ...]:
        """Notes for every report."""
        return ("the CPU device checks the PTX of the kernel, not the machine code that ptxas makes of it",)

    def execute(self, job: Job, progress: Progress | None = None) -> Execution:
        """Run a job on the machine; under a tool, return its records and the proof of work."""
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
        """Whether the check reports every fault planted for it; tried once."""
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
            environment = machine_environment(library, options, folder(index), base, facts, job.binary.name)
            # If a job sets the row size, rows are counted by it; regions would be counted instead.
            return Command(harness_command(job, runs, regions=ROW_BYTES not in job.options), environment)

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
        """The machine's options for a job; without a tool it only runs the program."""
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
    """The report of one process of a session, or the reason why there is none."""
    try:
        merged = merge_reports([read_report(file) for file in sorted(folder.glob("*.json"))])
    except ReportError as problem:
        return str(problem)
    return merged if merged is not None else "the CPU device left no report"


def _doubt(end: ProcessEnd, report: MachineReport | str) -> str:
    """Why the report of one process may be incomplete, or empty."""
    if isinstance(report, str):
        return f"{report} ({end.cause})"
    if report.refusal:
        return report.refusal
    if end.killed:
        return "the process was killed because a run hung, before it had written its report"
    return ""


def _doubt_of_work(session: Session, report: MachineReport | None) -> str:
    """The machine must have run every kernel that the harness's markers counted."""
    marked = sum(result.kernels for result in session.results.values())
    idle = [r.run for r in session.results.values() if r.status is RunStatus.DONE and r.kernels == 0]
    if idle:
        return f"the harness launched no kernel in {', '.join(idle[:3])}"
    ran = report.launches if report is not None else 0
    return f"the machine ran {ran} kernels, the harness launched {marked}" if ran < marked else ""


def _results(session: Session, reports: Sequence[MachineReport | str]) -> dict[str, RunResult]:
    """The results of the runs; a run that failed because the machine refused something counts as not run."""
    results = dict(session.results)
    for end, report in zip(session.processes, reports, strict=True):
        if isinstance(report, MachineReport) and report.refusal:
            for run in end.begun:
                if results[run].status is RunStatus.FAULT:
                    results[run] = replace(results[run], status=RunStatus.NOT_RUN, error=report.refusal)
    return results


def _free_memory() -> int:
    """Available bytes of the host's memory, 0 if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "0")
    return int(kilobytes) * 1024

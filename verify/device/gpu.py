"""The GPU: runs the harness natively, or under one of compute-sanitizer's tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from verify.device.cuda_probe import Gpu, Probe, probe
from verify.device.gpu_pool import GpuPool
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
    ToolRecord,
)
from verify.device.sanitizer.options import arguments, version_doubt
from verify.device.sanitizer.program import Missing, Sanitizer, find_sanitizer
from verify.device.sanitizer.proof import doubt_of_process, doubt_of_runs, first_doubt
from verify.device.sanitizer.read_log import read_logs
from verify.device.sanitizer.tripwire import Tripwires
from verify.device.session import Command, ProcessEnd, Session, harness_command, run_session
from verify.system.progress import Progress
from verify.toolchain.toolchain import find_toolchain


@dataclass
class GpuDevice:
    """All visible GPUs of this machine as one device; a job runs on one of them."""

    name: Literal["gpu", "cpu"] = "gpu"
    tools: tuple[Tool, ...] = TOOLS
    capabilities: frozenset[Capability] = frozenset(
        {Capability.PARTIAL_RECORDS, Capability.LIMITS_RECORDS, Capability.RUNS_MACHINE_CODE}
    )
    _tripwires: Tripwires = field(default_factory=Tripwires)

    @property
    def _probe(self) -> Probe:
        return _probe_once()

    @property
    def _pool(self) -> GpuPool:
        return _pool_once()

    def available(self) -> Availability:
        """Whether there is a driver with a GPU; a missing compute-sanitizer is reported by the tools."""
        return Availability(not self._probe.reason, self._probe.reason)

    def info(self) -> DeviceInfo:
        """The first visible GPU's properties (all are assumed alike), with driver and tool versions.

        Raises RuntimeError if the device is not available.
        """
        if self._probe.reason:
            raise RuntimeError(self._probe.reason)
        first = self._probe.gpus[0]
        versions = {"driver": self._probe.driver, "cuda": self._probe.cuda}
        sanitizer = find_sanitizer()
        if isinstance(sanitizer, Sanitizer):
            versions["compute-sanitizer"] = sanitizer.spelled_version
        many = f" (one of {len(self._probe.gpus)})" if len(self._probe.gpus) > 1 else ""
        return DeviceInfo(
            first.name + many, "gpu", first.architecture, first.sm_count, first.free_bytes, versions
        )

    def variants(self, architectures: Sequence[str]) -> tuple[GpuDevice, ...]:
        """Itself: a GPU has one architecture, and runs code for older ones from PTX."""
        return (self,)

    def notes(self) -> tuple[str, ...]:
        """Notes for every report: the tools' blind spot, and a missing or outdated compute-sanitizer."""
        lines = ["no compute-sanitizer tool sees races between blocks on global memory; --device cpu does"]
        sanitizer = find_sanitizer()
        if isinstance(sanitizer, Missing):
            lines.append(sanitizer.reason)
        elif doubt := version_doubt(sanitizer.version):
            lines.append(doubt)
        return tuple(lines)

    def execute(self, job: Job, progress: Progress | None = None) -> Execution:
        """Run a job on one leased GPU; under a tool, return its records and the proof that it ran."""
        if job.tool is None:
            return self._execute_native(job, progress)
        sanitizer = find_sanitizer()
        if isinstance(sanitizer, Missing):
            reason = sanitizer.reason
            results = {run: RunResult(run, RunStatus.NOT_RUN, error=reason) for run in job.runs}
            return Execution(job, results, doubt=reason)
        return self._execute_under(sanitizer, job.tool, job, progress)

    def tripwire(self, tool: Tool) -> Availability:
        """Whether the tool reports every fault planted for it on this machine; tried once."""
        return self._tripwires.tried(self, tool)

    def _execute_native(self, job: Job, progress: Progress | None) -> Execution:
        with self._pool.lease(progress) as gpu:
            environment = self._environment(job, gpu)
            session = run_session(
                job, lambda _, runs: Command(harness_command(job, runs), environment), progress
            )
        return Execution(
            job,
            session.results,
            doubt=_doubt_of_native(session),
            command=session.processes[0].command if session.processes else (),
            seconds=session.seconds,
            faults=session.faults,
            buffers=session.buffers,
        )

    def _execute_under(
        self, sanitizer: Sanitizer, tool: Tool, job: Job, progress: Progress | None
    ) -> Execution:
        options = arguments(tool, sanitizer.version, job.options)

        def logs(index: int) -> tuple[Path, Path]:
            return job.out / f"{tool}-{index}.txt", job.out / f"{tool}-{index}.xml"

        with self._pool.lease(progress) as gpu:
            environment = self._environment(job, gpu)

            def command(index: int, runs: Sequence[str]) -> Command:
                text, xml = logs(index)
                files = ("--log-file", str(text), "--save", str(xml), "--xml")
                # Live regions are for memcheck: initcheck treats each new region as unwritten memory.
                program = harness_command(job, runs, regions=tool == "memcheck")
                argv = (str(sanitizer.path), *options, *files, *program)
                return Command(argv, environment)

            session = run_session(job, command, progress)
        records: list[ToolRecord] = []
        doubts = [version_doubt(sanitizer.version)]
        summary = ""
        for index, end in enumerate(session.processes):
            log = read_logs(tool, *logs(index))
            doubts.append(doubt_of_process(end, log))
            if log is not None:
                records += log.records
                summary = log.summary or summary
        doubts.append(doubt_of_runs(session.results))
        return Execution(
            job,
            session.results,
            tuple(records),
            summary,
            first_doubt(doubts),
            session.processes[0].command if session.processes else (),
            logs(0)[0],
            session.seconds,
            buffers=session.buffers,
        )

    def _environment(self, job: Job, gpu: Gpu) -> Mapping[str, str]:
        chosen = {"CUDA_VISIBLE_DEVICES": gpu.uuid} if len(self._probe.gpus) > 1 else {}
        return {**find_toolchain().run_environment(), **job.environment, **chosen}


@cache
def _probe_once() -> Probe:
    """The machine's GPUs, probed once per process."""
    return probe()


@cache
def _pool_once() -> GpuPool:
    """One pool per process: a second one would wait for the first one's locks."""
    return GpuPool(_probe_once().gpus)


def _doubt_of_native(session: Session) -> str:
    """Why a native session cannot be trusted: a process failed although all of its runs succeeded."""

    def doubt(end: ProcessEnd) -> str:
        ended_well = all(session.results[run].status is RunStatus.DONE for run in end.settled)
        return f"the harness ended with {end.cause}" if ended_well and (end.code or end.killed) else ""

    return first_doubt([doubt(end) for end in session.processes])

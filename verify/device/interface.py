"""The device interface: a device executes a job and returns an execution. It never judges; checks do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from math import inf
from pathlib import Path
from typing import Literal, Protocol

from verify.finding.finding import Severity, SourceLine
from verify.system.progress import Progress

Tool = Literal["memcheck", "initcheck", "racecheck", "synccheck"]
TOOLS: tuple[Tool, ...] = ("memcheck", "initcheck", "racecheck", "synccheck")

PROGRAM_TOOLS: tuple[str, ...] = TOOLS
"""The CPU device's checks that find faults in any program (machine/observers/checks.inc)."""

MACHINE_CHECKS: tuple[str, ...] = (*PROGRAM_TOOLS, "traffic")
"""All of its checks; traffic counts and finds nothing."""


class Capability(Enum):
    """A feature that only some devices have; checks query it instead of a device's name."""

    COUNTS_READS = "counts the bytes read from each buffer"
    SEEDS_SCHEDULES = "schedules threads in an order that a seed determines"
    ORDERS_STREAMS = "racecheck detects unordered operations on two streams"
    OWNS_MEMORY = "no other process allocates or frees its memory"
    TOOLS_TOGETHER = "several tools can observe one run"
    PARTIAL_RECORDS = "a tool that is killed still leaves its records so far"
    RUNS_MACHINE_CODE = "runs machine code, such as that of a library's kernels"
    SHARED_BY_PROCESSES = "several processes can use it at the same time"
    LIMITS_RECORDS = "a tool limits its records to the option print-limit"


@dataclass(frozen=True)
class DeviceInfo:
    """A device's properties. memory_bytes: free for one case. versions: driver, runtime, tools, by name."""

    name: str
    kind: Literal["gpu", "cpu"]
    architecture: str
    sm_count: int
    memory_bytes: int
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Availability:
    """Whether a device can run, and if not, one line that says what is missing."""

    ok: bool
    reason: str = ""


class RunStatus(StrEnum):
    """How one run of a pack ended."""

    DONE = "done"
    FAULT = "fault"
    TIMEOUT = "timeout"
    REFUSED_MEMORY = "no memory"
    LEFT_OUT = "left out"
    """Skipped: another run hung, and this one would only have waited for the same time again."""
    NOT_RUN = "not run"


@dataclass(frozen=True)
class ToolRecord:
    """One record of a checking tool, in the same form for compute-sanitizer and the CPU device.

    kind: the tool's own name for the fault, normalised ("Invalid __global__ read of size 4 bytes").
    thread, block: as printed ("(5,0,0)"). accesses: further places of a race or a backtrace, in order.
    run: the run that it belongs to if the tool knows it, else None (the run is then found by running each
    alone). inlined_at: the calls through which the source line was inlined, innermost first.
    """

    tool: str
    kind: str
    message: str
    severity: Severity = Severity.ERROR
    function: str | None = None
    source: SourceLine | None = None
    thread: str = ""
    block: str = ""
    address: str = ""
    accesses: tuple[str, ...] = ()
    run: str | None = None
    inlined_at: tuple[SourceLine, ...] = ()


@dataclass(frozen=True)
class RunResult:
    """How one run ended. output: its results if DONE. kernels: launches according to the marker.
    error: the CUDA error name and text, or the signal, if it failed."""

    run: str
    status: RunStatus
    output: Path | None = None
    kernels: int = 0
    error: str = ""


@dataclass(frozen=True)
class Job:
    """Runs of a pack for one harness binary. runs: the ids of the runs to execute.
    timeout: seconds that one run may take before its process is killed; limit: a smaller limit for a run id,
    queried when the run begins. took: called with the seconds of each successful run.
    options: tool options beyond the default ones, by name.
    skip: returns why a run is to be skipped, or empty. It is called before each process for every outstanding
    run with the results so far, and periodically for a silent run, with no results, to abandon it."""

    binary: Path
    pack: Path
    runs: Sequence[str]
    out: Path
    tool: Tool | None = None
    timeout: float = 120.0
    options: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    skip: Callable[[str, Mapping[str, RunResult]], str] = lambda run, ends: ""
    limit: Callable[[str], float] = lambda run: inf
    took: Callable[[str, float], None] = lambda run, seconds: None


@dataclass(frozen=True)
class Execution:
    """The result of a job. doubt: why a clean verdict cannot be trusted, the reason for INCONCLUSIVE; empty
    if summary line, markers and exit code agree.
    command: the command line as it was run, to print and repeat.
    faults: by run, what the launch-fault interposer did and observed ("pass=1 call=2 ... returned=...").
    buffers: by run, the device address of each buffer's first byte."""

    job: Job
    results: Mapping[str, RunResult]
    records: tuple[ToolRecord, ...] = ()
    summary: str = ""
    doubt: str = ""
    command: tuple[str, ...] = ()
    log: Path | None = None
    seconds: float = 0.0
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    buffers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class Device(Protocol):
    """gpu or cpu. Instances are cheap; ``available`` and ``info`` may start a probe process, once."""

    name: Literal["gpu", "cpu"]
    tools: tuple[Tool, ...]

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    def available(self) -> Availability: ...

    def info(self) -> DeviceInfo: ...

    def variants(self, architectures: Sequence[str]) -> Sequence[Device]:
        """The devices that verify a contract for these architectures: one CPU device for each; a GPU only
        itself."""
        ...

    def execute(self, job: Job, progress: Progress | None = None) -> Execution: ...

    def notes(self) -> tuple[str, ...]:
        """Lines that every report must print: what this device cannot detect."""
        ...

    def tripwire(self, tool: Tool) -> Availability:
        """Whether the tool reports its planted faults on this device, tried once per session."""
        ...

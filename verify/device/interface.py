"""The device interface: a job goes in, an execution comes out. Devices never judge; checks do."""

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


class Capability(Enum):
    """What some devices can and others cannot; checks ask for it, never for a device's name."""

    COUNTS_READS = "counts what is read from each buffer"
    SEEDS_SCHEDULES = "runs threads in an order that a seed decides"
    ORDERS_STREAMS = "racecheck sees operations of two streams that nothing orders"
    OWNS_MEMORY = "nobody else takes or gives back its memory"
    TOOLS_TOGETHER = "several tools look on in one run"
    PARTIAL_RECORDS = "a tool that is ended still leaves what it saw"
    LIMITS_RECORDS = "a tool prints no more records than the option print-limit says"


@dataclass(frozen=True)
class DeviceInfo:
    """What the device is. memory_bytes: free for one case. versions: driver, runtime, tools, by name."""

    name: str
    kind: Literal["gpu", "cpu"]
    architecture: str
    sm_count: int
    memory_bytes: int
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Availability:
    """Whether a device can run, and if not, the one line that says what is missing."""

    ok: bool
    reason: str = ""


class RunStatus(StrEnum):
    """How one run of a pack ended."""

    DONE = "done"
    FAULT = "fault"
    TIMEOUT = "timeout"
    REFUSED_MEMORY = "no memory"
    LEFT_OUT = "left out"
    """Another run did not end, and this one would only have waited as long again."""
    NOT_RUN = "not run"


@dataclass(frozen=True)
class ToolRecord:
    """One record of a checking tool, compute-sanitizer's or the CPU device's, in one shape.

    kind: the tool's own name of the fault, normalised ("Invalid __global__ read of size 4 bytes").
    thread, block: as printed ("(5,0,0)"). accesses: further places of a race or a backtrace, in order.
    run: the run it belongs to when the tool knows it, else None (then the batch is only a fast path).
    inlined_at: the calls through which the source line got into the kernel, innermost first.
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
    """One run's end. output: the file of results when DONE. kernels: launches that the marker counted.
    error: the CUDA error name and text, or the signal, when it did not end well."""

    run: str
    status: RunStatus
    output: Path | None = None
    kernels: int = 0
    error: str = ""


@dataclass(frozen=True)
class Job:
    """A pack of runs for one harness binary. only: run ids to do (all when empty).
    timeout: seconds that one run may take before its process is ended; limit: fewer, from its id, asked as it
    begins. took: told the seconds of each run that ended well.
    options: tool options beyond the always-set ones, by name.
    skip: asked for every run still to do before each process, with the ends so far, and now and then for a
    silent run, with none: why the run is left out or given up, empty to do it."""

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
    """What happened. proof: why a clean verdict may be believed (summary line seen, marker seen, exit code);
    an empty ``doubt`` means that all of it agrees, otherwise it is the reason for INCONCLUSIVE.
    command: the command line as it was run, to print and repeat.
    faults: by run, what the launch-fault interposer did and met ("pass=1 call=2 ... returned=...").
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
        """The devices that verify a contract of these architectures: the CPU device plays each in turn, a GPU
        is what it is."""
        ...

    def execute(self, job: Job, progress: Progress | None = None) -> Execution: ...

    def notes(self) -> tuple[str, ...]:
        """Lines that every report must print: what this device cannot show, suppressions in force."""
        ...

    def tripwire(self, tool: Tool) -> Availability:
        """Whether the tool reports its planted fault on this device, run once a session."""
        ...

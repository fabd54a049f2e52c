"""A kernel that doubles, and a subject whose device does what a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from verify.check.subject import Ran, Subject
from verify.contract.entries import Launcher, Refusal
from verify.contract.model import Buffer, Case, Contract, Profile
from verify.contract.symbols import Symbol
from verify.device.cpu import CpuDevice
from verify.device.gpu import GpuDevice
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
from verify.finding.finding import SourceLine
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import Fixture
from verify.oracle import tracked as t
from verify.system.progress import Progress
from verify.wire.output import RunOutput
from verify.wire.run import Run

WORKS = Availability(True)


def random(case: Case, generator: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": generator.normal(size=(case["rows"], 4)), "factors": np.full(case["rows"], 2.0)}


CONTRACT = Contract(
    name="double",
    source="double.cu",
    symbols=("rows", Symbol("chunks", default=0), Symbol("factor", "ints", default=2)),
    buffers=(
        Buffer("x", "f32", ("rows", 4)),
        Buffer("factors", "f32", ("rows",)),
        Buffer("y", "f32", ("rows", 4), "out"),
    ),
    entry=Launcher("double_launch", ("x", "y", "rows", "stream")),
    reference=lambda case: {"y": 2 * case.f64("x")},
    error_model=lambda case: {"y": t.exact(2 * case.f64("x"))},
    profiles=(Profile("normal", random, "anything"), Profile("other", random, "anything", True)),
    batch="rows",
    pinned={"chunks": "auto"},
    captured_at={"factor": 1},
    refusals=(Refusal("no-rows", {"rows": 0}), Refusal("null-x", null=("x",)), Refusal("more", {"rows": 3})),
)


def build(fixture: str, profile: str = "normal", rows: int = 2, contract: Contract = CONTRACT) -> Case:
    x = np.arange(rows * 4, dtype=np.uint32).reshape(rows, 4).view(np.float32)
    arrays = {"x": x.view(np.uint32), "factors": np.full(rows, 2.0, np.float32).view(np.uint32)}
    symbols = {"rows": rows, "chunks": 0, "factor": tuple(range(2, rows + 2))}
    return Case(contract, fixture, profile, symbols, {"auto": 5}, arrays)


def record(tool: str, kind: str, line: int = 7, function: str = "double", **more: Any) -> ToolRecord:
    place = SourceLine("k.cu", line)
    return ToolRecord(tool, kind, f"{kind} somewhere", function=function, source=place, **more)


def right_output(run: Run) -> RunOutput:
    """What a right kernel leaves."""
    case = run.case
    y = (2 * case.arrays["x"].view(np.float32)) if "x" in case.arrays else np.zeros((0, 4), np.float32)
    outputs = {} if run.mode == "refuse" else {"y": y.view(np.uint32)}
    other = (run.captured or case) if run.mode in ("two-streams", "two-threads") else None
    second = {} if other is None else {"y": (2 * other.arrays["x"].view(np.float32)).view(np.uint32)}
    returned = "cudaErrorInvalidValue" if run.mode == "refuse" else "cudaSuccess"
    kernels = 0 if run.mode == "refuse" else 1
    return RunOutput(run.id, run.mode, returned, kernels, 0, outputs, None, {}, second)


@dataclass
class ScriptedDevice:
    """Answers ``execute`` by the script: from a job to an execution."""

    script: Callable[[Job], Execution]
    trips: Availability = WORKS
    name: Literal["gpu", "cpu"] = "gpu"
    tools: tuple[Tool, ...] = TOOLS
    jobs: list[Job] = field(default_factory=list)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those of the device whose name it has."""
        return (CpuDevice if self.name == "cpu" else GpuDevice)().capabilities

    def available(self) -> Availability:
        return Availability(True)

    def info(self) -> DeviceInfo:
        return DeviceInfo("scripted", "gpu", "sm_90", 132, 1 << 30, {"compute-sanitizer": "2026.4.0"})

    def execute(self, job: Job, progress: Progress | None = None) -> Execution:
        self.jobs.append(job)
        return self.script(job)

    def variants(self, architectures: Sequence[str]) -> tuple[ScriptedDevice, ...]:
        return (self,)

    def notes(self) -> tuple[str, ...]:
        return ()

    def tripwire(self, tool: Tool) -> Availability:
        return self.trips


def done(job: Job, **more: Any) -> Execution:
    """Every run ended well, with nothing to say."""
    return Execution(job, {r: RunResult(r, RunStatus.DONE, kernels=1) for r in job.runs}, **more)


@dataclass
class ScriptedSubject(Subject):
    """Native runs leave what ``leaves`` says."""

    device: ScriptedDevice
    leaves: Callable[[Run], RunOutput] = right_output
    asked: list[Run] = field(default_factory=list)

    def execute(self, runs: Iterable[Run]) -> dict[str, Ran]:
        listed = list(runs)
        self.asked += listed
        return {r.id: Ran(r, RunResult(r.id, RunStatus.DONE, kernels=1), self.leaves(r)) for r in listed}


def subject(
    folder: Path,
    script: Callable[[Job], Execution] = done,
    *,
    fixtures: Sequence[str] = ("one", "two"),
    contract: Contract = CONTRACT,
    rows: int = 2,
    trips: Availability = WORKS,
    leaves: Callable[[Run], RunOutput] = right_output,
    plans: Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, int]]] | None = None,
) -> ScriptedSubject:
    """A subject over those fixtures, each with two profiles."""
    cases = {f: {p: build(f, p, rows, contract) for p in ("normal", "other")} for f in fixtures}
    resolved = tuple(
        ResolvedFixture(Fixture("double", f, f"pins {f}", {}), cases[f]["normal"].symbols, {"auto": 5})
        for f in fixtures
    )
    made = ScriptedSubject(
        contract,
        resolved,
        cases,
        folder / "harness",
        ScriptedDevice(script, trips),
        folder / "scratch",
        argument="double",
        bases={r.fixture.name: (r.fixture, cases[r.fixture.name]["normal"]) for r in resolved[:1]},
        leaves=leaves,
    )
    return replace(made, plans=plans) if plans is not None else made

"""A device whose kernels are Python functions: what a check says of an output is tested without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from verify import Buffer, Contract, Global
from verify.check.subject import Ran, Subject
from verify.contract.formats import decode, encode, format_of
from verify.contract.model import Case, Profile
from verify.device.gpu import GpuDevice
from verify.device.interface import RunResult, RunStatus
from verify.fixture.cases import build_case
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import Fixture
from verify.oracle import tracked as t
from verify.wire.output import Intrusion, RunOutput
from verify.wire.run import Run

Kernel = Callable[[Run], np.ndarray]


def _doubled(case: Case) -> dict[str, np.ndarray]:
    return {"y": 2.0 * case.f64("x")}


CONTRACT = Contract(
    name="twice",
    source="twice.cu",
    symbols=("rows", "columns"),
    buffers=(
        Buffer("x", "f32", ("rows", "columns")),
        Buffer("y", "bf16", ("rows", "columns"), role="out"),
    ),
    entry=Global("twice", ("rows",), (32,), ("x", "y")),
    reference=_doubled,
    error_model=lambda case: {"y": t.round_result(t.exact(case.f64("x")) * 2.0, "bf16")},
    profiles=(
        Profile("normal", lambda case, g: {"x": g.standard_normal((3, 5))}, "Wrong arithmetic on values."),
        Profile(
            "exact", lambda case, g: {"x": np.arange(-7, 8).reshape(3, 5)}, "Anything but the very bits."
        ),
    ),
    exact=(("exact", "y"),),
)


def right(run: Run) -> np.ndarray:
    """What a right kernel writes."""
    return encode("bf16", 2.0 * run.case.f64("x"))


def prior_of(run: Run) -> np.ndarray:
    """The output buffer before the launch, as its fill leaves it."""
    kind = "huge" if run.fills.output == "stale" else run.fills.output
    return np.full((3, 5), format_of("bf16").pattern(kind), np.uint16)


@dataclass
class ScriptedSubject(Subject):
    """A subject whose runs end as the test says. statuses: run id -> how it ends; DONE when absent."""

    kernel: Kernel = right
    statuses: Mapping[str, RunStatus] = field(default_factory=dict)
    intrusions: tuple[Intrusion, ...] = ()

    def execute(self, runs: Iterable[Run]) -> dict[str, Ran]:
        """Call the kernel for each run."""
        return {run.id: self._ran_of(run) for run in runs}

    def _ran_of(self, run: Run) -> Ran:
        status = self.statuses.get(run.id, RunStatus.DONE)
        if status is not RunStatus.DONE:
            return Ran(run, RunResult(run.id, status, error="scripted"), None)
        output = RunOutput(
            run=run.id,
            mode=run.mode,
            returned="cudaSuccess",
            kernels=1,
            shared_dirty=132,
            outputs={"y": self.kernel(run)},
            prior={"y": prior_of(run)},
            workspaces={},
            intrusions=self.intrusions,
            intrusion_count=len(self.intrusions),
        )
        return Ran(run, RunResult(run.id, RunStatus.DONE, Path("out"), 1), output)


def subject(kernel: Kernel = right, **changes: Any) -> ScriptedSubject:
    """A subject of one fixture whose kernel is ``kernel``."""
    fixture = Fixture("twice", "small", "A fixture of fifteen elements.", {"rows": 3, "columns": 5})
    resolved = ResolvedFixture(fixture, {"rows": 3, "columns": 5})
    cases = {p.name: build_case(CONTRACT, resolved, p) for p in CONTRACT.profiles}
    return ScriptedSubject(
        CONTRACT,
        (resolved,),
        {"small": cases},
        Path("h"),
        GpuDevice(tools=()),
        Path("s"),
        kernel=kernel,
        **changes,
    )


def values(storage: np.ndarray) -> np.ndarray:
    """Float64 values of a bf16 storage array."""
    return decode("bf16", storage).astype(np.float64)

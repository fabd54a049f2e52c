"""The library pipeline is right on finite dead slots, and NaN in them reaches its output.

Its contract is ``masked``, and whoever else uses it fills dead slots with finite values.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import verify.contracts
from verify.check.judge import judge_output
from verify.check.parity import library_path
from verify.check.subject import Ran, Subject
from verify.contract.discovery import find_contracts, fixture_file
from verify.contract.formats import decode, encode
from verify.contract.model import Case, Contract
from verify.contracts.attention.reference import band, softmax_scale
from verify.device.gpu import GpuDevice
from verify.device.interface import RunResult, RunStatus
from verify.finding.finding import Finding
from verify.fixture.cases import build_cases
from verify.fixture.resolve import resolve_fixtures
from verify.fixture.schema import load_fixtures
from verify.gate.prepare import prepare
from verify.oracle.expectation import expect
from verify.wire.fills import fill_table
from verify.wire.output import RunOutput
from verify.wire.run import Fill, Fills, Run

FIXTURES = ("ring", "unbounded", "ragged")


def contract() -> Contract:
    folder = Path(verify.contracts.__file__).parent / "oracles"
    return find_contracts([str(folder / "decode_pipeline_contract.py")])[0]


def findings_with(subject: Subject, fixture: str, dead: Fill) -> list[Finding]:
    """What the judge says of one run whose dead slots hold ``dead``, and all else finite values."""
    case = subject.cases[fixture]["normal"]
    run = Run(f"{fixture}.dead-{dead}", case, fills=Fills(dead, "stale", "stale", "stale"))
    ran = subject.execute([run])[run.id]
    if "cudaErrorSharedObjectInitFailed" in ran.result.error:
        pytest.skip(f"cuBLASLt is missing: {ran.result.error}")
    assert ran.done, ran.result.error
    assert ran.output is not None
    return judge_output("poison", run, ran.output, expect(case), "")


@dataclass
class Dense(Subject):
    """A subject whose kernel is the pipeline in NumPy: products over every slot, the mask between them."""

    def execute(self, runs: Iterable[Run]) -> dict[str, Ran]:
        return {
            run.id: Ran(run, RunResult(run.id, RunStatus.DONE, kernels=1), self._output(run)) for run in runs
        }

    def _output(self, run: Run) -> RunOutput:
        out = encode("bf16", pipeline(run.case, run.fills.dead))
        return RunOutput(run.id, run.mode, "cudaSuccess", 1, 0, {"out": out}, None, {})


def pipeline(case: Case, dead: Fill) -> np.ndarray:
    """``out`` ``[B, NH*D]`` of two products over the whole allocation, whose dead slots hold a fill."""
    rows, heads, kv_heads, capacity = case["B"], case["NH"], case["NKV"], case["capacity"]
    q = case.f64("q").reshape(rows, kv_heads, heads // kv_heads, case["D"])
    k, v = (filled(case, name, dead) for name in "kv")
    weights = np.zeros((*q.shape[:3], capacity))
    for row in range(rows):
        slots = np.arange(*band(case, row)) % capacity
        if len(slots):
            scores = softmax_scale(case) * (q[row] @ k[row].swapaxes(-1, -2))[..., slots]
            powers = np.exp(scores - scores.max(-1, keepdims=True))
            weights[row][..., slots] = powers / powers.sum(-1, keepdims=True)
    return (weights @ v).reshape(rows, -1)


def filled(case: Case, name: str, dead: Fill) -> np.ndarray:
    """A cache as float64, all slots of it."""
    pattern = np.resize(np.frombuffer(fill_table("bf16", dead), np.uint16), case.arrays[name].shape)
    held = np.where(case.live(name), case.arrays[name], pattern)
    return decode("bf16", held).astype(np.float64)


@pytest.fixture(scope="module")
def simulated() -> Subject:
    own = contract()
    listed = load_fixtures(fixture_file(own), own)
    resolved = resolve_fixtures(listed, own, lambda asked: [{"workspace_bytes": 1 << 20} for _ in asked])
    cases = {r.fixture.name: {c.profile: c for c in build_cases(own, r)} for r in resolved}
    return Dense(own, resolved, cases, Path("h"), GpuDevice(), Path("s"))


@pytest.fixture(scope="module")
def on_gpu() -> Iterable[Subject]:
    device, own = GpuDevice(), contract()
    info = device.info()
    ready = prepare(own, lambda names: names, info.architecture, info.sm_count, lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        yield Subject(
            own, ready.fixtures, ready.cases, ready.build.binary, device, Path(folder),
            environment=library_path(),
        )  # fmt: skip


@pytest.fixture(params=["simulated", pytest.param("on_gpu", marks=pytest.mark.gpu)])
def subject(request: pytest.FixtureRequest) -> Subject:
    """The pipeline in NumPy, which shows what the judge makes of it, and the real one."""
    chosen: Subject = request.getfixturevalue(request.param)
    return chosen


@pytest.mark.parametrize("fixture", FIXTURES)
def test_finite_dead_slots_do_not_reach_the_output(fixture: str, subject: Subject) -> None:
    """Fault: an oracle that is wrong where parity uses it."""
    assert findings_with(subject, fixture, "stale") == []


@pytest.mark.parametrize("fixture", FIXTURES)
def test_nan_in_dead_slots_leaks(fixture: str, subject: Subject) -> None:
    """Fault: a NaN fill that proves nothing, because it is not there or would not be seen."""
    assert {f.kind for f in findings_with(subject, fixture, "nan")} == {"NaN where none belongs"}

"""What a kernel keeps from call to call, and kernels that work in place, on a real device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from verify.contract.default_profiles import DEFAULT_PROFILES
from verify.contract.discovery import find_contracts
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Verdict, overall
from verify.gate.gate import run_gate
from verify.gate.selection import Selection
from verify.report.report import Report

COUNTING = {
    "counting.cu": """\
#include <cuda_runtime.h>

__device__ int calls;

// Doubles in place; from call `limit` on it does so wrongly.
__global__ void counting(float* x, int n, int limit) {
    const int before = threadIdx.x == 0 ? atomicAdd(&calls, 1) : 0;
    const float value = threadIdx.x < n ? x[threadIdx.x] : 0.0f;
    if (threadIdx.x < n) x[threadIdx.x] = 2.0f * value + (before >= limit ? 1.0f : 0.0f);
}

void counting_launch(float* x, int n, int limit, cudaStream_t stream) {
    counting<<<1, 32, 0, stream>>>(x, n, limit);
}
""",
    "counting_contract.py": """\
from verify import Buffer, Contract, Launcher
from verify.oracle import tracked as t

CONTRACT = Contract(
    name="counting",
    source="counting.cu",
    symbols=("n", "limit"),
    buffers=(Buffer("x", "f32", ("n",), "inout", align=4),),
    entry=Launcher("counting_launch", ("x", "n", "limit", "stream"), returns_error=False),
    reference=lambda case: {"x": 2 * case.f64("x")},
    error_model=lambda case: {"x": t.exact(case.f64("x")) * 2.0},
)
""",
}

Verify = Callable[..., Report]


@pytest.fixture
def verify(tmp_path: Path, device_name: str) -> Verify:
    """Run native checks of the counting kernel; each fixture is a name and its ``limit``."""

    def run(checks: tuple[str, ...], keep: Path | None = None, **limits: int) -> Report:
        device = select_device(device_name)
        if isinstance(device, NoDevice):
            pytest.skip(device.reason)
        for name, text in COUNTING.items():
            (tmp_path / name).write_text(text)
        fixtures = [
            f'[[fixture]]\nname = "{name}"\npins = "From which call on it is wrong."\n'
            f"[fixture.symbols]\nn = {20 + i}\nlimit = {limit}\n"
            for i, (name, limit) in enumerate(limits.items())
        ]
        (tmp_path / "counting.toml").write_text('kernel = "counting"\n' + "".join(fixtures))
        contracts = tuple(find_contracts([str(tmp_path)]))
        selection = Selection(contracts, checks=checks, architecture="sm_90", keep=keep)
        return run_gate(selection, device, "", lambda text: None)

    return run


NEVER = 10**9


def test_a_right_kernel_in_place_is_clean(verify: Verify) -> None:
    """Fault: a second call that is given the first one's output for input."""
    report = verify(("compare", "poison", "determinism", "launch"), one=NEVER, two=NEVER)
    assert report.verdict is Verdict.CLEAN, [(f.kind, f.seen) for f in report.findings]


def test_a_result_that_changes_after_many_calls_is_found(verify: Verify) -> None:
    """Fault: a fault that shows in the eightieth call only: no other check calls that often."""
    report = verify(("determinism",), one=80)
    (finding,) = report.findings
    assert finding.kind == "depends on the number of calls"
    assert "call 81 of 300 differs from the first" in finding.seen
    assert finding.repeat.endswith("-k one --check determinism --device " + finding.repeat.split()[-1])


def test_the_repeat_line_of_a_fault_that_needs_earlier_calls_shows_it(verify: Verify, tmp_path: Path) -> None:
    """Fault: a repeat line whose single fixture is clean: there the process has made too few calls."""
    report = verify(("compare",), one=NEVER, two=len(DEFAULT_PROFILES) + 1, three=NEVER)
    assert report.findings
    for finding in report.findings:
        assert "-k" not in finding.repeat and "--check compare" in finding.repeat
        assert "other calls in the same process" in dict(finding.details)["after"]


def test_a_fault_of_one_fixture_alone_keeps_its_own_repeat_line(verify: Verify) -> None:
    """Fault: a repeat line that runs everything where one fixture is enough."""
    report = verify(("compare",), one=NEVER, two=1)
    assert {f.case.split("/")[1] for f in report.findings} == {"two"}
    assert all("-k two --check compare" in f.repeat for f in report.findings)
    assert overall(o for o in report.outcomes if o.fixture == "one") is Verdict.CLEAN

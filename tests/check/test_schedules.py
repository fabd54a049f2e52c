"""Many schedules: a race that one order of blocks in 24 uncovers, and the bookkeeping over the outcomes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from verify.check.sanitize import over_schedules
from verify.cli.app import app
from verify.contract.discovery import find_contracts
from verify.device.cpu import CpuDevice
from verify.finding.finding import Finding, Outcome, Verdict
from verify.gate.gate import run_gate
from verify.gate.selection import Selection
from verify.report.report import Report

SOURCE = """\
#include <cuda_runtime.h>

__device__ unsigned arrived, placed;

// Doubles a row a block. The last of four blocks, if all came in the order 2, 0, 3, 1, reads what another
// warp has written to shared memory without a barrier, where `racy` is 2.
__global__ void rare(const float* x, float* y, int racy) {
    __shared__ float kept[64];
    __shared__ unsigned last;
    const int at = blockIdx.x * 64 + threadIdx.x;
    const float value = x[at];
    y[at] = 2.0f * value;
    if (threadIdx.x == 0) {
        const unsigned order[] = {1, 3, 0, 2};
        const unsigned place = atomicAdd(&arrived, 1u);
        last = atomicAdd(&placed, 256u + (place == order[blockIdx.x]));
        if (last >> 8 == 3) atomicExch(&arrived, 0u);
    }
    __syncthreads();
    if (last >> 8 != 3) return;
    if (threadIdx.x == 0) atomicExch(&placed, 0u);
    if (racy > 1 && (last & 255) == 3) {
        kept[threadIdx.x] = value;
        if (kept[threadIdx.x ^ 32] == -12345.0f) y[at] = 0.0f;
    }
}

void rare_launch(const float* x, float* y, int racy, cudaStream_t stream) {
    rare<<<4, 64, 0, stream>>>(x, y, racy);
}
"""

CONTRACT = """\
from verify import Buffer, Contract, Launcher
from verify.oracle import tracked as t

CONTRACT = Contract(
    name="rare",
    source="rare.cu",
    symbols=("racy",),
    buffers=(
        Buffer("x", "f32", (4, 64), "in", align=4),
        Buffer("y", "f32", (4, 64), "out", align=4),
    ),
    entry=Launcher("rare_launch", ("x", "y", "racy", "stream"), returns_error=False),
    reference=lambda case: {"y": 2 * case.f64("x")},
    error_model=lambda case: {"y": t.exact(case.f64("x")) * 2.0},
)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rare")
    (made / "rare.cu").write_text(SOURCE)
    (made / "rare_contract.py").write_text(CONTRACT)
    (made / "rare.toml").write_text(
        'kernel = "rare"\n'
        + "".join(
            f'[[fixture]]\nname = "{name}"\npins = "A race in one order of blocks."\n'
            f"[fixture.symbols]\nracy = {racy}\n"
            for name, racy in (("right", 1), ("racy", 2))
        )
    )
    return made


def report_of(folder: Path, seeds: int, keep: Path | None = None) -> Report:
    contracts = tuple(find_contracts([str(folder)]))
    selection = Selection(
        contracts, checks=("racecheck", "determinism"), architecture="sm_90", keep=keep, seeds=seeds
    )
    return run_gate(selection, CpuDevice(), "", lambda text: None)


def test_many_schedules_find_what_few_do_not(folder: Path, tmp_path: Path) -> None:
    """Fault: ``--seeds`` tries no more orders than usual, or its finding cannot be shown again."""
    report = report_of(folder, 60, tmp_path)
    verdicts = {(o.check, o.fixture): o.verdict for o in report.outcomes}
    assert verdicts["racecheck", "racy"] is Verdict.FINDINGS
    assert verdicts["racecheck", "right"] is Verdict.CLEAN
    assert verdicts["determinism", "right"] is Verdict.CLEAN
    clean = next(o for o in report.outcomes if (o.check, o.fixture) == ("racecheck", "right"))
    assert clean.measures["schedules"] == 60
    finding = report.findings[0]
    seed = int(dict(finding.details)["schedule"])
    assert finding.repeat.endswith(f"--seeds {seed + 1}")
    subprocess.run([Path(finding.folder) / "build.sh"], check=True, capture_output=True)
    shown = subprocess.run([Path(finding.folder) / "run.sh"], capture_output=True, text=True, check=False)
    assert shown.returncode == 1 and "Race" in shown.stdout, shown.stdout + shown.stderr


def outcome(verdict: Verdict, reason: str = "") -> Outcome:
    findings = (Finding("racecheck", "k", "k/f/p", "Race", "", ""),) if verdict is Verdict.FINDINGS else ()
    return Outcome("racecheck", "k", "f", verdict, findings, reason)


def test_findings_of_a_later_schedule_replace_what_was_clean_or_in_doubt() -> None:
    """Fault: a later schedule's clean outcome hides an earlier finding, or a doubt hides a finding."""
    clean, found = outcome(Verdict.CLEAN), outcome(Verdict.FINDINGS)
    doubt = outcome(Verdict.INCONCLUSIVE, "why")
    for order in ((clean, found, clean), (doubt, found, clean), (found, doubt, clean)):
        (kept,) = over_schedules([one] for one in order)
        assert kept is found
    (kept,) = over_schedules([one] for one in (clean, doubt, clean))
    assert kept is doubt


def test_one_schedule_is_refused() -> None:
    """Fault: ``--seeds 1``, which asks for nothing new, is accepted in silence."""
    result = CliRunner().invoke(app, ["run", "row_softmax", "--seeds", "1"])
    assert result.exit_code == 2

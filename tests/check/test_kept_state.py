"""Launchers and kernels that keep what they may not keep, and an alignment that the contract allows."""

from __future__ import annotations

import pytest

from verify.contract.discovery import find_contracts
from verify.device.cpu import CpuDevice
from verify.gate.gate import run_gate
from verify.gate.selection import Selection
from verify.report.report import Report

SOURCE = """\
#include <cstdint>
#include <map>
#include <cuda_runtime.h>

__device__ float scratch;

__global__ void first(const float* x, float* kept) { *kept = x[0]; }

// y = x + x[0]; with `skewed`, wrong where x lies 8 bytes past a multiple of 16.
__global__ void rest(const float* x, const float* kept, float* y, int n, int skewed) {
    const bool wrong = skewed && reinterpret_cast<std::uintptr_t>(x) % 16 == 8;
    if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + *kept + (wrong ? 1.0f : 0.0f);
}

// fault: 0 none, 1 one scratch for every stream, 2 x[0] is kept by the address of x, 3 skewed.
cudaError_t keeping_launch(const float* x, float* y, float* workspace, int n, int fault,
                           cudaStream_t stream) {
    static std::map<const float*, float*> known;
    float* kept = workspace;
    if (fault == 1 && cudaGetSymbolAddress(reinterpret_cast<void**>(&kept), scratch)) return cudaErrorUnknown;
    bool fresh = true;
    if (fault == 2) {
        float*& mine = known[x];
        fresh = mine == nullptr;
        if (fresh) {
            if (const cudaError_t status = cudaMalloc(&mine, sizeof(float))) return known.erase(x), status;
        }
        kept = mine;
    }
    if (fresh) first<<<1, 1, 0, stream>>>(x, kept);
    if (const cudaError_t status = cudaGetLastError()) return status;
    rest<<<1, 32, 0, stream>>>(x, kept, y, n, fault == 3);
    return cudaGetLastError();
}
"""

CONTRACT = """\
from verify import Buffer, Contract, Launcher
from verify.oracle import tracked as t

CONTRACT = Contract(
    name="keeping",
    source="keeping.cu",
    symbols=("n", "fault"),
    buffers=(
        Buffer("x", "f32", ("n",), "in", align=4),
        Buffer("y", "f32", ("n",), "out", align=4),
        Buffer("workspace", "f32", (1,), "workspace", align=4),
    ),
    entry=Launcher("keeping_launch", ("x", "y", "workspace", "n", "fault - 1", "stream")),
    reference=lambda case: {"y": case.f64("x") + case.f64("x")[0]},
    error_model=lambda case: {"y": t.exact(case.f64("x")) + t.exact(case.f64("x")[:1])},
)
"""

FAULTS = ("right", "one-scratch", "kept-by-address", "skewed")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The gate over all of them, a fixture each."""
    folder = tmp_path_factory.mktemp("keeping")
    (folder / "keeping.cu").write_text(SOURCE)
    (folder / "keeping_contract.py").write_text(CONTRACT)
    fixtures = [
        f'[[fixture]]\nname = "{name}"\npins = "What is kept from one call to another."\n'
        f"[fixture.symbols]\nn = {8 + number}\nfault = {1 + number}\n"
        for number, name in enumerate(FAULTS)
    ]
    (folder / "keeping.toml").write_text('kernel = "keeping"\n' + "".join(fixtures))
    selection = Selection(
        tuple(find_contracts([str(folder)])), checks=("compare", "poison", "launch"), architecture="sm_90"
    )
    return run_gate(selection, CpuDevice(), "", lambda text: None)


def found(report: Report, fixture: str) -> set[tuple[str, str]]:
    return {(f.check, f.kind) for f in report.findings if f.case.split("/")[1] == fixture}


def test_a_right_launcher_is_clean(report: Report) -> None:
    """Catches two streams, or a call before with other data, that disturb a right launcher."""
    assert not found(report, "right")


def test_one_scratch_for_all_streams_is_a_race_between_them(report: Report) -> None:
    """Catches calls on two streams that are only seen if the device happens to run them at once."""
    assert ("launch", "Race between unordered operations") in found(report, "one-scratch")


def test_what_is_kept_by_an_address_is_wrong_for_other_data(report: Report) -> None:
    """Catches a second call that is only tried with the data of the first."""
    assert ("launch", "outside the bound") in found(report, "kept-by-address")


def test_every_alignment_that_the_contract_allows_is_tried(report: Report) -> None:
    """Catches base pointers at 0 and 4 modulo 16 alone, where vector loads have the fault at 8."""
    assert found(report, "skewed")

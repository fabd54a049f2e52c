"""A finding of every kind comes with a folder whose run.sh shows it, and whose end is not 0."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from verify.contract.discovery import find_contracts
from verify.device.cpu import CpuDevice
from verify.finding.finding import Finding
from verify.gate.gate import run_gate
from verify.gate.selection import Selection
from verify.report.report import Report

SOURCE = """\
#include <cuda_runtime.h>

enum { RIGHT, WRONG, DEAD, BEYOND, RACE, BATCH, CALLS, ACCEPTS, SWALLOWS, TRAPS, AGAIN, READS };
__device__ int calls;

// y = 2 x, one block a row; `fault` says what is wrong with it.
__global__ void kinds(const float* x, float* y, float* w, int rows, int columns, int pitch, int fault) {
    __shared__ float held[32];
    const int t = threadIdx.x, r = blockIdx.x;
    if (fault == TRAPS) __trap();
    held[t] = t < columns ? x[r * pitch + t] : 0.0f;
    if (fault == RACE) held[t] = held[(t + 1) % 32] * 0.0f + held[t];
    __syncthreads();
    float value = 2.0f * held[t];
    if (fault == WRONG && t == 3) value += 1.0f;
    if (fault == DEAD && t == 0 && x[r * pitch + columns] > 1e30f) value += 1.0f;
    if (fault == BATCH && rows > 1 && t == 0) value = __int_as_float(__float_as_int(value) + 1);
    if (fault == CALLS && t == 0 && r == 0 && atomicAdd(&calls, 1) > 20) value += 1.0f;
    if (fault == AGAIN && t == 0 && r == 0 && w[0] == 7.0f) value += 1.0f;
    if (fault == READS && t == 0) value += 0.0f * *static_cast<const volatile float*>(x + r * pitch);
    if (t < columns) y[r * pitch + t] = value;
    if (fault == BEYOND && t == 0 && r == rows - 1) y[r * pitch + columns] = 0.0f;
    if (t == 0 && r == 0) w[0] = 7.0f;
}

cudaError_t kinds_launch(const float* x, float* y, float* w, int rows, int columns, int pitch, int fault,
                         cudaStream_t stream) {
    if (rows < 1) {
        if (fault != ACCEPTS) return cudaErrorInvalidValue;
        return cudaSuccess;
    }
    const cudaError_t first = cudaMemsetAsync(w, 0, fault == AGAIN ? 0 : sizeof(float), stream);
    if (first != cudaSuccess && fault != SWALLOWS) return first;
    kinds<<<rows, 32, 0, stream>>>(x, y, w, rows, columns, pitch, fault);
    const cudaError_t error = cudaGetLastError();
    return fault == SWALLOWS ? cudaSuccess : error;
}
"""

CONTRACT = """\
from verify import Buffer, Contract, Launcher, Refusal, Symbol
from verify.oracle import tracked as t

VIEW = {"dtype": "f32", "shape": ("rows", "columns"), "strides": ("pitch", 1), "align": 4}
CONTRACT = Contract(
    name="kinds",
    source="kinds.cu",
    symbols=("rows", "columns", "pitch", Symbol("fault", minimum=0)),
    buffers=(
        Buffer("x", **VIEW),
        Buffer("y", role="out", **VIEW),
        Buffer("w", "f32", (1,), "workspace", align=4),
    ),
    entry=Launcher("kinds_launch", ("x", "y", "w", "rows", "columns", "pitch", "fault", "stream")),
    reference=lambda case: {"y": 2 * case.f64("x")},
    error_model=lambda case: {"y": t.exact(case.f64("x")) * 2.0},
    batch="rows",
    row_reads={"x": 1},
    refusals=(Refusal("no-rows", {"rows": 0}),),
)
"""

KINDS = {
    "right": (0, (), ""),
    "wrong": (1, ("compare",), "outside the bound"),
    "dead": (2, ("poison",), "output depends on dead bytes"),
    "beyond": (3, ("memcheck",), ""),
    "race": (4, ("racecheck",), ""),
    "batch": (5, ("determinism",), "row depends on its batch"),
    "calls": (6, ("determinism",), "depends on the number of calls"),
    "accepts": (7, ("launch",), "bad input accepted"),
    "swallows": (8, ("launch",), "launch error swallowed"),
    "traps": (9, ("compare",), "fault"),
    "again": (10, ("launch",), "outside the bound"),
    "reads": (11, ("traffic",), "row not read as often as promised"),
}


def report_of(folder: Path, name: str, keep: Path) -> Report:
    """The gate over one fault; the contract stays where it is, so that its harness is compiled once."""
    fault, checks, _ = KINDS[name]
    if not (folder / "kinds.cu").is_file():
        (folder / "kinds.cu").write_text(SOURCE)
        (folder / "kinds_contract.py").write_text(CONTRACT)
    (folder / "kinds.toml").write_text(
        f'kernel = "kinds"\n[[fixture]]\nname = "{name}"\npins = "One way of being wrong."\n'
        f"[fixture.symbols]\nrows = 3\ncolumns = 20\npitch = 24\nfault = {fault}\n"
    )
    wanted = checks or ("compare", "poison", "racecheck", "traffic", "determinism", "launch")
    selection = Selection(
        tuple(find_contracts([str(folder)])), checks=wanted, architecture="sm_90", keep=keep
    )
    return run_gate(selection, CpuDevice(), "", lambda text: None)


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernel")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What build.sh made, once: the harness is the same in every folder."""
    return {"scratch": tmp_path_factory.mktemp("built")}


def shown(finding: Finding, built: dict[str, Path]) -> subprocess.CompletedProcess[str]:
    """Build (or take the program that was built) and run the folder of a finding."""
    folder = Path(finding.folder)
    program = built["scratch"] / "kinds_case"
    if program.is_file() and not (folder / "launch_fault_interposer.cpp").is_file():
        shutil.copy(program, folder)
    else:
        subprocess.run([folder / "build.sh"], check=True, capture_output=True)
        shutil.copy(folder / "kinds_case", program)
    return subprocess.run([folder / "run.sh"], capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.parametrize("name", [n for n in KINDS if n != "right"])
def test_the_folder_shows_the_finding(
    name: str, tmp_path: Path, kernel_folder: Path, built: dict[str, Path]
) -> None:
    """Fault: a run.sh that ends with 0, or with an error of its own, for some kind of finding."""
    report = report_of(kernel_folder, name, tmp_path / "kept")
    wanted = KINDS[name][2]
    found = [f for f in report.findings if wanted in f.kind and f.folder]
    assert found, [(f.kind, f.details) for f in report.findings]
    ended = shown(found[0], built)
    assert ended.returncode != 0, ended.stdout + ended.stderr
    for word in ("output of another case", "cannot be opened", "not found", "Traceback", "usage"):
        assert word not in ended.stdout + ended.stderr


def test_a_right_kernel_leaves_no_folder(tmp_path: Path, kernel_folder: Path) -> None:
    """Fault: a kernel of this file that is wrong in every fixture, so that any folder shows something."""
    report = report_of(kernel_folder, "right", tmp_path / "kept")
    assert not report.findings, [(f.kind, f.seen) for f in report.findings]
    assert not (tmp_path / "kept").exists()


def test_two_runs_with_the_same_folder_lose_nothing(tmp_path: Path, kernel_folder: Path) -> None:
    """Fault: a second run that replaces the first one's folder, and a third that piles up the same again."""
    keep = tmp_path / "kept"
    first = [Path(f.folder) for f in report_of(kernel_folder, "accepts", keep).findings]
    (first[0] / "out").mkdir()
    source = (kernel_folder / "kinds.cu").read_text()
    try:
        (kernel_folder / "kinds.cu").write_text(source + "// changed\n")
        second = [Path(f.folder) for f in report_of(kernel_folder, "accepts", keep).findings]
    finally:
        (kernel_folder / "kinds.cu").write_text(source)
    third = [Path(f.folder) for f in report_of(kernel_folder, "accepts", keep).findings]
    assert first == third != second
    assert (first[0] / "kinds.cu").read_text() == source
    assert (second[0] / "kinds.cu").read_text() != source
    assert (first[0] / "out").is_dir()
    assert {p.name for p in keep.iterdir()} == {first[0].name, second[0].name}


def test_a_finding_is_kept_if_its_folder_cannot_be_written(
    tmp_path: Path, kernel_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a run that ends in an error of the writer, so that the finding is never printed."""

    def fails(*given: object) -> None:
        raise ValueError("cannot reshape array of size 3 into shape (0,)")

    for patched, keep in (("write_pack", tmp_path / "kept"), ("_same_files", Path("/dev/null/kept"))):
        with monkeypatch.context() as patch:
            patch.setattr(f"verify.report.reproduction.{patched}", fails)
            findings = report_of(kernel_folder, "accepts", keep).findings
        assert [f.kind for f in findings] == ["bad input accepted"]
        assert not findings[0].folder
        assert dict(findings[0].details)["no folder"]
    assert not list((tmp_path / "kept").iterdir())

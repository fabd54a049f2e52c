"""A contract that does not fit its source: the compiler's words name file and field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from verify.contract.entries import Global, Launcher
from verify.contract.model import Buffer, Contract, Plan
from verify.harness.build import build_harness
from verify.harness.explain import explained
from verify.harness.render import render
from verify.toolchain.compile import BuildError

SOURCE = """\
#include <cuda_runtime.h>
struct Arguments { const float* x; float* y; int n; };
struct Decision { int tile; };
__global__ void add(const float* x, float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }
cudaError_t launch(const float* x, float* y, int n, cudaStream_t stream) {
    add<<<1, 32, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
void silent(const float* x, float* y, int n, cudaStream_t stream) { add<<<1, 32, 0, stream>>>(x, y, n); }
cudaError_t packed(const Arguments* a, cudaStream_t stream) { return launch(a->x, a->y, a->n, stream); }
cudaError_t plan(int n, Decision* result) { result->tile = n; return cudaSuccess; }
"""
ARGUMENTS = ("x", "y", "n", "stream")
FITS = Contract(
    name="fitted",
    source="fitted.cu",
    symbols=("n",),
    buffers=(Buffer("x", "f32", ("n",)), Buffer("y", "f32", ("n",), "out")),
    entry=Launcher("launch", ARGUMENTS),
    reference=lambda case: {},
    error_model=lambda case: {},
)


def packed(**fields: str) -> Launcher:
    return Launcher("packed", fields, struct="Arguments")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"entry": Launcher("lunch", ARGUMENTS)}, "entry: lunch(x, y, n, stream): error: "),
        ({"entry": Launcher("launch", ARGUMENTS[:3])}, "entry: launch(x, y, n): error: too few"),
        ({"entry": Launcher("launch", ("n", "y", "n", "stream"))}, "a value (a symbol or an expression)"),
        (
            {"entry": Launcher("silent", ARGUMENTS)},
            "entry: silent(x, y, n, stream): error: must return cudaError_t",
        ),
        ({"entry": packed(x="x", z="y")}, "entry: packed: args: z: error: "),
        ({"entry": replace(packed(x="x"), struct="Other")}, "entry: packed: struct: Other: error: "),
        ({"entry": Global("odd", (1,), (32,), ("x", "y", "n"))}, "entry: odd(x, y, n): error: "),
        ({"plan": Plan("plan", "Decision", ("tile", "depth"), ("n",))}, "plan: fields: depth: error: "),
        ({"plan": Plan("plan", "Choice", ("tile",), ("n",))}, "plan: plan, result Choice: error: "),
        ({"nvcc_flags": ("--nope",)}, "nvcc_flags: --nope: "),
    ],
)
def test_a_mismatch_names_a_field_of_the_contract(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    """Fault: an error in a line of a file that nobody wrote, which does not say what to change."""
    (tmp_path / "fitted.cu").write_text(SOURCE)
    contract = replace(FITS, directory=tmp_path, **changes)  # type: ignore[arg-type]
    with pytest.raises(BuildError) as caught:
        build_harness(contract, "sm_90", lambda _: None, machine_code=False)
    told = [line for line in str(caught.value).splitlines() if said in line]
    assert told and told[0].startswith("fitted_contract.py: "), caught.value
    assert "harness.cu" not in str(caught.value)


def test_messages_about_the_source_are_unchanged() -> None:
    """Fault: an error of the kernel itself is put down to the contract."""
    words = 'fitted.cu(3): error: expected a ";"'
    assert explained(words, render(FITS), FITS) == words

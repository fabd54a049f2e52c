"""The modes of a run, on a substitute for the GPU's runtime: right kernels pass, faults are reported."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.harness.conftest import Execute
from tests.harness.guarded_kernel import guarded_case
from verify.contract.model import Case
from verify.harness.build import Build
from verify.harness.interposer import build_interposer
from verify.wire.run import FILLS, Fills, Run


def right(case: Case, seen: np.ndarray) -> bool:
    x = case.arrays["x"].view(np.float32).astype(np.float64)
    weight = np.exp(x - x.max(-1, keepdims=True))
    return bool(np.abs(seen.view(np.float32) - weight / weight.sum(-1, keepdims=True)).max() < 1e-6)


def test_every_mode_gives_the_right_output(
    execute: Execute, softmax: Build, softmax_cases: list[Case]
) -> None:
    """Fault: a mode that reads back the wrong buffers, forgets to launch, or leaves inputs out."""
    case, other, *_ = softmax_cases
    runs = [
        *(Run(f"once-{fill}", case, fills=Fills(fill, fill, fill, fill)) for fill in FILLS),
        Run("live-only", case, "live-only"),
        Run("second-call", case, "second-call"),
        Run("repeat", case, "repeat", repeats=3),
        Run("graph", case, "graph", captured=other),
        Run("graph-same", case, "graph"),
        Run("late", case, "late-producer"),
        Run("two", case, "two-streams", repeats=4, captured=other),
        Run("threads", case, "two-threads", repeats=4, captured=other),
    ]
    ended = execute(softmax, runs)
    assert ended.code == 0, ended.stderr
    kernels = {"second-call": 2, "repeat": 3, "two": 8, "threads": 4}
    for run in runs:
        output = ended.outputs[run.id]
        assert right(case, output.outputs["y"]), run.id
        assert output.kernels == kernels.get(run.id, 1), run.id
        assert (output.intrusion_count, output.difference_count) == (0, 0), run.id
        assert (output.prior is None) == (run.mode == "live-only")
        assert output.shared_dirty == (0 if run.mode == "live-only" else 4)
        assert f"@done {run.id}" in ended.markers
    assert right(other, ended.outputs["two"].second["y"])
    assert right(other, ended.outputs["threads"].second["y"])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("lost-stamp", "the device ran nothing"),
        ("reject-launch", "the entry returned cudaErrorInvalidConfiguration"),
    ],
)
def test_a_kernel_that_did_not_run_is_an_error(
    execute: Execute, softmax: Build, softmax_cases: list[Case], fault: str, said: str
) -> None:
    """Fault: stale output counts as a result: no @done, no output file."""
    ended = execute(softmax, [Run("one", softmax_cases[0])], fault)
    assert any(m.startswith("@error one ") and said in m for m in ended.markers), ended.markers
    assert "@done one" not in ended.markers
    assert not ended.outputs


def test_a_lost_context_ends_the_process_and_leaves_the_rest_outstanding(
    execute: Execute, softmax: Build, softmax_cases: list[Case]
) -> None:
    """Fault: runs that are charged with the fault of the one before."""
    ended = execute(softmax, [Run("one", softmax_cases[0]), Run("two", softmax_cases[0])], "sticky")
    assert ended.code == 4
    assert any(m.startswith("@error one cudaErrorIllegalAddress") for m in ended.markers)
    assert "@begin two" not in ended.markers


def test_a_case_without_the_memory_says_how_much_it_needs(
    execute: Execute, softmax: Build, softmax_cases: list[Case]
) -> None:
    """Fault: an allocation failure that looks like the kernel's."""
    ended = execute(softmax, [Run("one", softmax_cases[0])], "little-memory")
    needed = 2 * (4 * 1024 + 1000) * 4 + (64 << 20)
    assert any(m.startswith(f"@error one no memory: needs {needed} bytes") for m in ended.markers)


@pytest.mark.parametrize(
    ("fault", "fill", "buffer", "offset"), [("write-input", "nan", "x", 0), ("write-before", "inf", "y", -1)]
)
def test_a_write_outside_the_promise_is_an_intrusion(
    execute: Execute,
    softmax: Build,
    softmax_cases: list[Case],
    fault: str,
    fill: str,
    buffer: str,
    offset: int,
) -> None:
    """Fault: a write that no output shows: into an input, and just before a buffer."""
    run = Run("one", softmax_cases[0], fills=Fills(dead=fill, output=fill))  # type: ignore[arg-type]
    (intrusion,) = execute(softmax, [run], fault).outputs["one"].intrusions
    assert (intrusion.buffer, intrusion.offset, intrusion.count) == (buffer, offset, 1)


@pytest.mark.parametrize("mode", ["repeat", "two-streams", "two-threads"])
def test_a_result_that_depends_on_earlier_calls_differs(
    execute: Execute, softmax: Build, softmax_cases: list[Case], mode: str
) -> None:
    """Fault: state that survives a call, or is shared by two streams."""
    ended = execute(softmax, [Run("one", softmax_cases[0], mode, repeats=3)], "shared-state")  # type: ignore[arg-type]
    assert ended.outputs["one"].difference_count > 0


@pytest.mark.parametrize(
    ("mode", "calls"), [("repeat", [1, 2]), ("many-calls", [1, 2]), ("two-streams", [0, 1, 2, 1, 2])]
)
def test_differing_outputs_are_kept_if_drift_is_allowed(
    execute: Execute, softmax: Build, softmax_cases: list[Case], mode: str, calls: list[int]
) -> None:
    """Fault: drift that is judged by which bytes differ, or by one of the calls alone."""
    run = Run("one", softmax_cases[0], mode, repeats=3, keep_differing=True)  # type: ignore[arg-type]
    output = execute(softmax, [run], "shared-state").outputs["one"]
    assert sorted(d.repeat for d in output.differing) == sorted(calls)
    for differing in output.differing:
        assert (differing.first["y"] != differing.other["y"]).any()
    others = [d for d in output.differing if d.second]
    assert bool(others) == (mode == "two-streams")


def test_a_refusal_reports_the_returned_error_and_checks_every_buffer(
    execute: Execute, guarded: Build
) -> None:
    """Fault: a launcher that launches, or answers success, on bad input."""
    case = guarded_case()
    runs = [
        Run("null", case, "refuse", null=("y",)),
        Run("misaligned", case, "refuse", misalign=(("y", 4),)),
        Run("small", case, "refuse", shrink=(("workspace", 1),)),
        Run("accepted", case, "refuse"),
        Run("impossible", replace(guarded_case(), symbols={**case.symbols, "n": -5}), "refuse"),
    ]
    ended = execute(guarded, runs)
    assert ended.code == 0, ended.stderr
    for name in ("null", "misaligned", "small", "impossible"):
        output = ended.outputs[name]
        assert (output.returned, output.kernels, output.intrusion_count) == ("cudaErrorInvalidValue", 0, 0), (
            name
        )
        assert f"@refused {name} cudaErrorInvalidValue" in ended.markers
    accepted = ended.outputs["accepted"]
    assert (accepted.returned, accepted.kernels) == ("cudaSuccess", 1)
    assert {i.buffer for i in accepted.intrusions} == {"y"}


def test_intermediates_and_struct_arguments_arrive(execute: Execute, guarded: Build) -> None:
    """Fault: a scalar in the wrong field, and a workspace that is not read back."""
    output = execute(guarded, [Run("one", guarded_case(scale=3.0))]).outputs["one"]
    assert np.array_equal(output.outputs["y"].view(np.float32), 3 * np.arange(100, dtype=np.float32))
    assert len(output.workspaces["workspace"]) == 32


def test_a_value_that_its_parameter_cannot_hold_is_refused(execute: Execute, guarded: Build) -> None:
    """Fault: a length that is wrapped to 32 bits on its way into the launcher."""
    case = replace(guarded_case(), symbols={**guarded_case().symbols, "n": (1 << 32) + 100})
    ended = execute(guarded, [Run("one", case, "refuse")])
    assert any("4294967396 does not fit its 32-bit parameter" in m for m in ended.markers), ended.markers


def sweep(execute: Execute, build: Build, case: Case) -> list[tuple[str, str]]:
    """(call that failed, the launcher's answer) of the first pass."""
    ended = execute(build, [Run("one", case)], preload=build_interposer())
    assert "@done one" in ended.markers
    line = re.compile(r"@fault one pass=1 call=\d+ calls=\d+ failed=(\S+) returned=(\S+)")
    return [(m[1], m[2]) for marker in ended.markers if (m := line.match(marker))]


def test_each_runtime_call_fails_once_and_is_reported(execute: Execute, guarded: Build) -> None:
    """Fault: an interposer that misses a call, or makes a right launcher look wrong."""
    assert sweep(execute, guarded, guarded_case()) == [
        ("cudaFuncSetAttribute", "cudaErrorInvalidValue"),
        ("__cudaLaunchKernel", "cudaErrorLaunchOutOfResources"),
        ("cudaGetLastError", "cudaErrorOther"),
        ("-", "cudaSuccess"),
    ]


def test_a_swallowed_error_shows(execute: Execute, guarded: Build) -> None:
    """Fault: the sweep cannot distinguish a launcher that drops an error from one that reports it."""
    answers = dict(sweep(execute, guarded, guarded_case(swallow=1)))
    assert answers["cudaFuncSetAttribute"] == "cudaSuccess"
    assert answers["__cudaLaunchKernel"] == "cudaErrorLaunchOutOfResources"

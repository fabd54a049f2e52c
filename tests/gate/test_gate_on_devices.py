"""The gate on real devices: a case that ruins its process costs that case only, and right code is clean."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.signals import take_interrupts
from verify.check.specs import usual_checks
from verify.contract.discovery import find_contracts
from verify.device import session
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Verdict, overall
from verify.gate.gate import run_gate
from verify.gate.selection import Selection
from verify.report.report import Report
from verify.system.process_group import descendants

EXAMPLE = Path(__file__).parents[2] / "examples" / "row_softmax" / "row_softmax.cu"

FRAGILE = {
    "fragile.cu": """\
#include <cuda_runtime.h>

__global__ void fragile(const float* x, float* y, int columns) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (columns == 2) __trap();
    if (columns == 3) {
        while (*static_cast<const volatile float*>(x) == *static_cast<const volatile float*>(x)) {
        }
    }
    if (columns == 5) y[1ull << 40] = 0.0f;
    if (c < columns) y[c] = 2.0f * x[c];
}
""",
    "fragile_contract.py": """\
from verify import Buffer, Contract, Global
from verify.oracle import tracked as t

CONTRACT = Contract(
    name="fragile",
    source="fragile.cu",
    symbols=("columns",),
    buffers=(Buffer("x", "f32", ("columns",)), Buffer("y", "f32", ("columns",), role="out")),
    entry=Global("fragile", grid=(1,), block=(32,), args=("x", "y", "columns")),
    reference=lambda case: {"y": 2 * case.f64("x")},
    error_model=lambda case: {"y": t.exact(case.f64("x")) * 2.0},
)
""",
    "fragile.toml": 'kernel = "fragile"\n'
    + "".join(
        f'\n[[fixture]]\nname = "{name}"\npins = "How one launch ends."\n[fixture.symbols]\ncolumns = {n}\n'
        for name, n in {"one": 1, "trap": 2, "endless": 3, "four": 4, "far": 5, "six": 6}.items()
    ),
}

OVER_READING = {
    "mirror.cu": """\
#include <cuda_runtime.h>

__global__ void mirror(const float* x, float* y, int columns, int pitch) {
    __shared__ float row[64];
    const int read = blockIdx.x + 1 < gridDim.x ? pitch : columns;  // nothing lies behind the last row
    row[threadIdx.x] = threadIdx.x < read ? x[blockIdx.x * pitch + threadIdx.x] : 0.0f;
    __syncthreads();
    if (threadIdx.x < columns) y[blockIdx.x * pitch + threadIdx.x] = 2.0f * row[columns - 1 - threadIdx.x];
}
""",
    "mirror_contract.py": """\
from verify import Buffer, Contract, Global
from verify.oracle import tracked as t

VIEW = {"dtype": "f32", "shape": ("rows", "columns"), "strides": ("pitch", 1), "align": 4}
CONTRACT = Contract(
    name="mirror",
    source="mirror.cu",
    symbols=("rows", "columns", "pitch"),
    buffers=(Buffer("x", **VIEW), Buffer("y", role="out", **VIEW)),
    entry=Global("mirror", grid=("rows",), block=(64,), args=("x", "y", "columns", "pitch")),
    reference=lambda case: {"y": 2 * case.f64("x")[:, ::-1]},
    error_model=lambda case: {"y": t.exact(case.f64("x")[:, ::-1]) * 2.0},
    overread="RULE",
)
""",
    "mirror.toml": 'kernel = "mirror"\n\n[[fixture]]\nname = "padded"\npins = "What lies between the rows."\n'
    "[fixture.symbols]\nrows = 3\ncolumns = 33\npitch = 40\n",
}


COUNTING = """\
#include <cuda_runtime.h>

__device__ int calls;

__global__ void fragile(const float* x, float* y, int columns) {
    const int c = threadIdx.x;
    const int before = calls;
    __syncthreads();
    if (c == 0) calls = before + 1;
    const bool far = before > 0 && columns == 3;
    if (c < columns) y[far ? c + (1 << 20) : c] = 2.0f * x[c];
}
"""


def gate(source: Path, device_name: str, *checks: str, words: str | None = None) -> Report:
    device = select_device(device_name)
    if isinstance(device, NoDevice):
        pytest.skip(device.reason)
    contracts = find_contracts([str(source)])
    selection = Selection(contracts, words, checks=checks or usual_checks(device))
    return run_gate(selection, device, "", lambda _: None)


def test_a_case_that_crashes_its_process_costs_only_that_case(
    device_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a trap, hang or illegal address takes its neighbours' verdict with it, or is no finding."""
    monkeypatch.setenv("VERIFY_RUN_SECONDS", "6")
    for name, text in FRAGILE.items():
        (tmp_path / name).write_text(text)
    report = gate(tmp_path / "fragile.cu", device_name, "compare")
    verdicts = {o.fixture: o.verdict for kernel in report.kernels for o in kernel.outcomes}
    ruined = dict.fromkeys(("trap", "endless", "far"), Verdict.FINDINGS)
    assert verdicts == {**ruined, **dict.fromkeys(("one", "four", "six"), Verdict.CLEAN)}


@pytest.mark.parametrize(("rule", "verdict"), [("masked", Verdict.CLEAN), ("strict", Verdict.FINDINGS)])
def test_reading_dead_bytes_is_judged_by_the_contracts_rule(
    device_name: str, tmp_path: Path, rule: str, verdict: Verdict
) -> None:
    """Fault: reading padding is flagged though the rule allows it, or passes though it does not.

    The CPU device's initcheck follows values to their use, and these are dropped: memcheck has the rule.
    """
    for name, text in OVER_READING.items():
        (tmp_path / name).write_text(text.replace("RULE", rule))
    report = gate(tmp_path / "mirror.cu", device_name, "compare", "poison", "memcheck", "initcheck")
    verdicts = {o.check: o.verdict for kernel in report.kernels for o in kernel.outcomes}
    read_based = verdict if device_name == "gpu" else Verdict.CLEAN
    clean = dict.fromkeys(("compare", "poison"), Verdict.CLEAN)
    assert verdicts == clean | {"memcheck": verdict, "initcheck": read_based}


def test_a_kernel_that_counts_its_calls_is_reported_where_it_shows(device_name: str, tmp_path: Path) -> None:
    """Fault: what only a later call does wrong leaves every fixture unsure, and names no case."""
    for name, text in FRAGILE.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "fragile.cu").write_text(COUNTING)
    report = gate(tmp_path / "fragile.cu", device_name, "memcheck")
    by_architecture = [k.outcomes for k in report.kernels]
    for outcomes in by_architecture:
        found = {o.fixture: [f.case for f in o.findings] for o in outcomes if o.verdict is not Verdict.CLEAN}
        assert found == {"endless": ["fragile/endless/normal"]}


def write_endless(folder: Path) -> None:
    """The fragile kernel, whose loop the CPU device cannot see to stall: no poll of what nobody changes."""
    polls = "*static_cast<const volatile float*>(x) == *static_cast<const volatile float*>(x)"
    for name, text in FRAGILE.items():
        changed = text.replace(polls, "(*static_cast<volatile float*>(y) += 1.0f) != -1.0f")
        (folder / name).write_text(changed)


def test_a_hanging_kernel_costs_one_wait(
    device_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: every check, profile and fill of a fixture waits as long for the same endless loop."""
    monkeypatch.setenv("VERIFY_RUN_SECONDS", "4")
    write_endless(tmp_path)
    report = gate(tmp_path / "fragile.cu", device_name, "compare", "poison", "determinism", words="endless")
    outcomes = {o.check: o for o in report.kernels[0].outcomes}
    assert [f.kind for f in outcomes["compare"].findings] == ["hang"]
    for check in ("poison", "determinism"):
        assert not [f for f in outcomes[check].findings if f.where != outcomes["compare"].findings[0].where]
    assert outcomes["determinism"].verdict is Verdict.NOT_RUN
    assert outcomes["determinism"].reason.startswith("skipped, since endless.normal")


def test_an_endless_kernel_is_abandoned_after_two_fixtures(
    device_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a gate over many fixtures of an endless kernel takes hours; or skipped fixtures look clean."""
    monkeypatch.setenv("VERIFY_RUN_SECONDS", "2")
    write_endless(tmp_path)
    source = tmp_path / "fragile.cu"
    source.write_text(source.read_text().replace("if (columns == 3)", "if (columns > 0)"))
    gate(source, device_name, "compare", words="one")  # compiles it
    killed: list[bool] = []
    follow = session._follow

    def counted(*arguments: Any) -> bool:
        killed.append(follow(*arguments))
        return killed[-1]

    monkeypatch.setattr(session, "_follow", counted)
    report = gate(source, device_name, words="not trap")
    assert sum(killed) <= 10 * len(report.kernels)
    assert report.verdict is Verdict.FINDINGS
    assert not [o for o in report.outcomes if o.verdict is Verdict.CLEAN]
    hung = [o.fixture for o in report.kernels[0].outcomes if o.check == "compare" and o.findings]
    assert hung == ["one", "endless"]
    reasons = {o.reason for o in report.kernels[0].outcomes if o.check == "compare" and not o.findings}
    assert len(reasons) == 1 and "one.normal.nan and endless.normal.nan had no end" in reasons.pop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_ended_gate_leaves_no_kernel_running(tmp_path: Path, number: signal.Signals) -> None:
    """Fault: an endless kernel keeps running after its gate was stopped, or Ctrl-C waits for it."""
    if isinstance(select_device("cpu"), NoDevice):
        pytest.skip("no CPU device")
    write_endless(tmp_path)
    words = ("run", "fragile.cu", "--device", "cpu", "--arch", "sm_90", "--check", "compare", "-k", "endless")
    with (tmp_path / "progress").open("w") as progress:
        command = [sys.executable, "-m", "verify", *words]
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        environment = {**os.environ, "TMPDIR": str(scratch)}
        gate = subprocess.Popen(
            command, cwd=tmp_path, stderr=progress, env=environment, preexec_fn=take_interrupts
        )
    try:
        deadline = time.monotonic() + 120
        while not (running := [p for p in descendants(gate.pid) if _is_harness(p)]):
            assert gate.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        gate.send_signal(number)
        assert gate.wait(5) == (128 + number if number != signal.SIGKILL else -number)
        if number == signal.SIGINT:
            assert (tmp_path / "progress").read_text().splitlines()[-1] == "verify: interrupted"
        while any(_is_harness(p) for p in running):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert number == signal.SIGKILL or not list(scratch.iterdir())
    finally:
        gate.kill()


def _is_harness(pid: int) -> bool:
    try:
        return b"/harness\0run" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_kernel_without_a_launcher_is_proven(device_name: str) -> None:
    """Fault: a right kernel of a user is flagged, or a check of it does not run on this device."""
    report = gate(EXAMPLE, device_name)
    assert overall([o for kernel in report.kernels for o in kernel.outcomes]) is Verdict.CLEAN

"""Kernels that have a process each: the same report, the same blame, and nothing left behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.signals import take_interrupts
from verify.contract.discovery import find_contracts
from verify.device.cpu import CpuDevice
from verify.finding.finding import Verdict
from verify.gate.blame import BlamedError
from verify.gate.gate import run_gate
from verify.gate.selection import Selection, SelectionError, narrowed
from verify.gate.side_by_side import run_kernels
from verify.system.process_group import descendants

EXAMPLE = Path(__file__).parents[2] / "examples" / "row_softmax"

BROKEN = """
import dataclasses


def broken(case):
    raise KeyError("oops")


CONTRACT = dataclasses.replace(CONTRACT, reference=broken)
"""

DYING = """
import os
import sys

if "verify.gate.side_by_side" in sys.orig_argv:
    os._exit(9)
"""


def two_kernels(folder: Path, behind_the_second: str = "") -> Selection:
    """The example twice. behind_the_second: lines at the end of the second one's contract."""
    for name in ("first", "second"):
        shutil.copytree(EXAMPLE, folder / name)
    contract = folder / "second" / "row_softmax_contract.py"
    contract.write_text(contract.read_text() + behind_the_second)
    contracts = find_contracts([str(folder / name / "row_softmax.cu") for name in ("first", "second")])
    return Selection(contracts, "one-column", checks=("compare", "memcheck"))


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a machine of one core takes the same way."""
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})


def test_parallel_reports_equal_the_report_of_one_process(tmp_path: Path) -> None:
    """Fault: outcomes, rungs or the order of the kernels get lost between processes."""
    selection = two_kernels(tmp_path)
    said: list[str] = []
    apart = run_kernels(selection, CpuDevice(), "", said.append)
    alone = run_gate(selection, CpuDevice(), "", lambda _: None)
    assert apart.verdict is Verdict.CLEAN and len(apart.kernels) == 4  # two kernels, two architectures
    assert [replace(k, outcomes=(), seconds=0.0) for k in apart.kernels] == [
        replace(k, outcomes=(), seconds=0.0) for k in alone.kernels
    ]
    assert [(o.check, o.fixture, o.verdict) for o in apart.outcomes] == [
        (o.check, o.fixture, o.verdict) for o in alone.outcomes
    ]
    assert (apart.notes, apart.checks, apart.device) == (alone.notes, alone.checks, apart.device)
    assert any("building the harness" in line for line in said)


def test_kernels_without_a_selected_fixture_are_skipped(tmp_path: Path) -> None:
    """Fault: a word that only one kernel's fixtures have ends the run, after the others were built."""
    selection = two_kernels(tmp_path)
    fixtures = tmp_path / "second" / "row_softmax.toml"
    fixtures.write_text(fixtures.read_text().replace("one-column", "single-column"))
    assert [c.directory.name for c in narrowed(selection).contracts] == ["first"]
    with pytest.raises(SelectionError, match="selects none of"):
        narrowed(replace(selection, expression="nothere"))


def test_findings_are_converted(tmp_path: Path) -> None:
    """Fault: a kernel in a process of its own is clean whatever it found."""
    selection = two_kernels(tmp_path)
    kernel = tmp_path / "second" / "row_softmax.cu"
    kernel.write_text(kernel.read_text().replace("expf(", "1.5f + expf(", 1))
    report = run_kernels(selection, CpuDevice(), "", lambda _: None)
    first, second = report.kernels[:2], report.kernels[2:]
    assert {o.verdict for k in first for o in k.outcomes} == {Verdict.CLEAN}
    assert any(o.verdict is Verdict.FINDINGS for k in second for o in k.outcomes)


def test_an_error_names_its_place_in_the_contract(tmp_path: Path) -> None:
    """Fault: what a contract raises in a worker is called a defect of the suite: its frames are gone."""
    selection = two_kernels(tmp_path, BROKEN)
    contract = tmp_path / "second" / "row_softmax_contract.py"
    with pytest.raises(BlamedError) as caught:
        run_kernels(selection, CpuDevice(), "", lambda _: None)
    message, code = caught.value.args
    assert message.startswith(f"{contract}:") and message.endswith("in broken: KeyError: oops") and code == 2


def test_a_crashed_worker_is_reported(tmp_path: Path) -> None:
    """Fault: a process that the system killed for its memory is waited for, or its kernel counts as clean."""
    selection = two_kernels(tmp_path, DYING)
    with pytest.raises(BlamedError, match="its process ended with code 9"):
        run_kernels(selection, CpuDevice(), "", lambda _: None)


@pytest.mark.parametrize(
    ("asked", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_requested_stop_leaves_no_process(tmp_path: Path, asked: signal.Signals, code: int) -> None:
    """Fault: workers, which lead sessions of their own, go on when the command is interrupted."""
    gate = subprocess.Popen(
        [sys.executable, "-m", "verify", "run", "--device", "cpu"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        preexec_fn=take_interrupts,
    )  # fmt: skip
    deadline = time.monotonic() + 600  # the kernels may have to be compiled first
    while not (kernels := [p for p in descendants(gate.pid) if b"/harness\0run" in _words(p)]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    below = [*kernels, *descendants(gate.pid)]
    gate.send_signal(asked)
    assert gate.wait(60) == code
    deadline = time.monotonic() + 60
    while left := [pid for pid in below if _words(pid)]:
        assert time.monotonic() < deadline, [_words(pid) for pid in left]
        time.sleep(0.05)


def _words(pid: int) -> bytes:
    """The command line of a process, empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

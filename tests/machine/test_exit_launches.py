"""Launches from exit handlers and static destructors are run and checked like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.check.program import ProgramReport, run_program
from verify.device.interface import TOOLS
from verify.device.program import ProgramOptions, compile_program

SOURCE = Path(__file__).parent / "exit_launches.cu"


def run(folder: Path, *arguments: str) -> ProgramReport:
    program = compile_program(SOURCE, "sm_90", ["-std=c++17"])
    options = ProgramOptions(TOOLS, launch_timeout=60, log_file=folder / "report.txt")
    return run_program([str(program), *arguments], options)


def test_launches_behind_main_are_right(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Fault: a device whose own variables are destroyed before the program's last launch, so that it dies in
    it."""
    done = run(tmp_path)
    assert done.report is not None, done.reason
    assert done.report.findings == (), (tmp_path / "report.txt").read_text()
    assert done.exit_code == 0
    said = capfd.readouterr().out
    assert "exit handler sees 11\n" in said and "static object sees 111\n" in said


def test_a_fault_in_the_last_of_them_is_found(tmp_path: Path) -> None:
    """Fault: a report that is closed before the program's static objects are destroyed."""
    done = run(tmp_path, "wrong")
    assert done.report is not None, done.reason
    assert "Invalid __global__ read of size 4 bytes" in {finding.kind for finding in done.report.findings}
    assert done.exit_code == 1

"""Tensor maps that a kernel changes itself, on the CPU device."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.check.program import ProgramReport, run_program
from verify.device.interface import TOOLS
from verify.device.program import ProgramOptions, compile_program

SOURCE = Path(__file__).parent / "tensor_map_replace.cu"


def run(argument: str, folder: Path, seed: int) -> ProgramReport:
    program = compile_program(SOURCE, "sm_90a", ["-std=c++17"])
    options = ProgramOptions(TOOLS, seed=seed, launch_timeout=60, log_file=folder / "report.txt")
    return run_program([str(program), argument], options)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_map_replaced_and_fenced_is_used(seed: int, tmp_path: Path) -> None:
    """Fault: a replaced address or size that the copy does not follow; a false alarm of any check."""
    done = run("0", tmp_path, seed)
    assert done.report is not None, done.reason
    assert done.report.findings == (), (tmp_path / "report.txt").read_text()
    assert done.exit_code == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_a_changed_map_without_its_fence_is_found(seed: int, tmp_path: Path) -> None:
    """Fault: a copy with a map from before tensormap.replace, which the copy engine may still hold, is not
    reported."""
    done = run("1", tmp_path, seed)
    assert done.report is not None, done.reason
    (finding,) = done.report.findings
    assert finding.kind == "Invalid bulk copy"
    assert "fence.proxy.tensormap::generic.acquire" in finding.message

"""A pipeline of tensor copies runs clean, and each of five faults planted in it is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.check.program import ProgramReport, run_program
from verify.device.interface import TOOLS
from verify.device.program import ProgramOptions, compile_program

SOURCE = Path(__file__).parent / "tensor_pipeline.cu"
FAULTS = ("none", "phase", "stages", "bytes", "proxy_fence", "swizzle")
WRONG_RESULT = 4


def run(fault: str, folder: Path, seed: int = 0, tools: tuple[str, ...] = TOOLS) -> ProgramReport:
    program = compile_program(SOURCE, "sm_90", ["-std=c++17"])
    options = ProgramOptions(tools, seed=seed, launch_timeout=60, log_file=folder / "report.txt")
    return run_program([str(program), str(FAULTS.index(fault))], options)


def lines(mark: str) -> set[int]:
    text = SOURCE.read_text().splitlines()
    return {number for number, line in enumerate(text, 1) if f"// @{mark}" in line}


@pytest.mark.parametrize("seed", [0, 1, 20])
def test_the_right_pipeline_is_clean(seed: int, tmp_path: Path) -> None:
    """Fault: a false alarm of any check, or a copy that puts its bytes elsewhere than the swizzle says."""
    done = run("none", tmp_path, seed)
    assert done.report is not None, done.reason
    assert done.report.findings == (), (tmp_path / "report.txt").read_text()
    assert done.exit_code == 0


@pytest.mark.parametrize("seed", [0, 1, 20])
@pytest.mark.parametrize(
    ("fault", "check", "kind", "marks"),
    [
        # The consumers are a phase ahead: what they read is refilled under them, or not there yet.
        ("phase", "racecheck", "Race on __shared__ memory", {"refill", "use"}),
        # The producer goes round once more than stages are free.
        ("stages", "racecheck", "Race on __shared__ memory", {"refill"}),
        ("bytes", "synccheck", "Deadlock", set()),
        ("proxy_fence", "racecheck", "Missing proxy fence on __shared__ memory", {"write", "store"}),
    ],
)
def test_a_planted_fault_is_found(
    fault: str, check: str, kind: str, marks: set[str], seed: int, tmp_path: Path
) -> None:
    """Fault: a pipeline fault that a check misses, or pins on another line."""
    done = run(fault, tmp_path, seed)
    assert done.report is not None, done.reason
    fitting = [
        {place.line for site in finding.sites for place in site.source}
        for finding in done.report.findings
        if finding.check == check and not finding.warning and finding.kind.startswith(kind)
    ]
    text = (tmp_path / "report.txt").read_text()
    assert any(all(lines(mark) & named for mark in marks) for named in fitting), text


def test_bytes_that_never_arrive_are_counted(tmp_path: Path) -> None:
    """Fault: a deadlock report does not say that its mbarrier expects 16 bytes more than the
    copies transfer."""
    done = run("bytes", tmp_path, tools=("synccheck",))
    assert done.report is not None, done.reason
    (finding,) = done.report.findings
    assert "expects 8208 bytes in this phase, of which 8192 have arrived" in finding.message


def test_a_wrong_swizzle_gives_a_wrong_result(tmp_path: Path) -> None:
    """Fault: rows are placed as a kernel with another swizzle would read them."""
    assert run("swizzle", tmp_path).program_code == WRONG_RESULT

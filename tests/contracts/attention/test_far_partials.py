"""Split partials more than 2^31 elements into their workspace: no fixture holds a batch that large."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.check.program import ProgramReport, run_program
from verify.device.program import ProgramOptions, compile_program
from verify.system.resources import resource_folder

SOURCE = Path(__file__).parent / "far_partials.cu"
KERNEL = resource_folder("cuda") / "flash_decode.cu"


def run(folder: Path, old: str = "", new: str = "") -> ProgramReport:
    """The program under memcheck, with another text in the kernel."""
    kernel = KERNEL.read_text()
    assert old in kernel
    (folder / SOURCE.name).write_text(SOURCE.read_text())
    (folder / KERNEL.name).write_text(kernel.replace(old, new, 1) if old else kernel)
    program = compile_program(folder / SOURCE.name, "sm_90", ["-std=c++17"])
    return run_program([str(program)], ProgramOptions(("memcheck",), log_file=folder / "report.txt"))


def test_the_last_row_of_a_large_batch_is_right(tmp_path: Path) -> None:
    """Fault: a partial whose offset does not fit 32 bits."""
    done = run(tmp_path)
    assert (done.program_code, done.exit_code) == (0, 0), (tmp_path / "report.txt").read_text()


@pytest.mark.parametrize(
    "wide",
    ["const long long partial = state *", "const long long first_partial = static_cast<long long>(row) *"],
)
def test_a_narrow_offset_is_found(tmp_path: Path, wide: str) -> None:
    """The twins: the kernel that writes partials, or the one that merges them, has an index of 32 bits."""
    done = run(tmp_path, wide, wide.replace("long long", "int"))
    assert done.report is not None, done.reason
    assert any(finding.kind.startswith("Invalid __global__") for finding in done.report.findings)

"""Rows of the FP8 matvec past 2^31: its scales have no pitch that a fixture could widen."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.check.program import ProgramReport, run_program
from verify.device.program import ProgramOptions, compile_program
from verify.system.resources import resource_folder

SOURCE = Path(__file__).parent / "far_rows.cu"
KERNEL = resource_folder("cuda") / "fp8_matvec.cu"
MEMORY = 80 << 30
"""Bytes of device memory that are pretended: of 50 GB that are allocated a few pages are touched."""


def run(folder: Path, old: str = "", new: str = "") -> ProgramReport:
    """The program under memcheck, with another text in the kernel."""
    kernel = KERNEL.read_text()
    assert old in kernel
    (folder / SOURCE.name).write_text(SOURCE.read_text())
    (folder / KERNEL.name).write_text(kernel.replace(old, new, 1) if old else kernel)
    program = compile_program(folder / SOURCE.name, "sm_90", ["-std=c++17"])
    options = ProgramOptions(("memcheck",), log_file=folder / "report.txt", memory=MEMORY)
    return run_program([str(program)], options)


def test_the_last_rows_of_a_tall_matrix_are_right(tmp_path: Path) -> None:
    """Fault: a scale, a weight or a result whose index does not fit 32 bits."""
    done = run(tmp_path)
    assert (done.program_code, done.exit_code) == (0, 0), (tmp_path / "report.txt").read_text()


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("args.scales + first_row + row", "args.scales + int(first_row + row)"),
        ("const int64_t index = column", "const int32_t index = column"),
        ("const int64_t first_row = static_cast<int64_t>(", "const int first_row = static_cast<int>("),
    ],
)
def test_a_narrow_index_is_found(tmp_path: Path, wide: str, narrow: str) -> None:
    """The twins: an index of a scale, of a result, or of a block's rows that is kept in 32 bits."""
    done = run(tmp_path, wide, narrow)
    assert done.report is not None, done.reason
    assert done.program_code in (1, 5), done.reason  # wrong rows, or an address that is nobody's

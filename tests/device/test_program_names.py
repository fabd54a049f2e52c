"""Names of programs and files reach the CPU device as names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from verify.check.program import run_program
from verify.device.interface import TOOLS
from verify.device.program import ProgramOptions
from verify.device.sanitizer.tripwire import build_tripwire


@pytest.mark.parametrize("name", ["a\ntools=none", "a\nkernel_name=none\n", "a\\ntools=none", "plain"])
def test_no_name_is_an_option(tmp_path: Path, name: str) -> None:
    """Fault: a line break in a program's or a log file's name ends its line, and what follows is an option:
    nothing is checked, or only a kernel that there is none of."""
    faulty = tmp_path / name
    shutil.copy(build_tripwire("memcheck", "sm_90"), faulty)
    log = tmp_path / f"{name}.log"
    pack = ["run", "--pack", str(tmp_path / "none"), "--out", str(tmp_path)]
    done = run_program([str(faulty), *pack], ProgramOptions(log_file=log), stdout=subprocess.DEVNULL)
    assert done.report is not None and done.exit_code == 1, done.reason
    assert done.report.tools == TOOLS and done.report.program == str(faulty)
    assert "memcheck.cu" in log.read_text()

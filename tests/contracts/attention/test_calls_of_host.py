"""What the header of flash_decode promises to a host: devices, threads, and memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from verify.check.program import run_program
from verify.device.interface import TOOLS
from verify.device.program import ProgramOptions, compile_program
from verify.system.resources import resource_folder
from verify.toolchain.toolchain import find_toolchain

SOURCE = Path(__file__).parent / "calls_of_host.cu"
KERNEL = resource_folder("cuda") / "flash_decode.cu"


def built(folder: Path, old: str = "", new: str = "") -> Path:
    """The program, with another text in the kernel."""
    kernel = KERNEL.read_text()
    assert old in kernel
    (folder / "calls_of_host.cu").write_text(SOURCE.read_text())
    (folder / "flash_decode.cu").write_text(kernel.replace(old, new, 1) if old else kernel)
    return compile_program(folder / "calls_of_host.cu", "sm_90", ["-std=c++17"])


@pytest.mark.parametrize("mode", ["devices", "threads", "memory"])
def test_on_the_cpu_device(mode: str, tmp_path: Path) -> None:
    """Fault: a launcher that allows its shared memory on one device only, shares a static, or
    keeps memory."""
    options = ProgramOptions(TOOLS, log_file=tmp_path / "report.txt")
    done = run_program([str(built(tmp_path)), mode], options)
    assert (done.program_code, done.exit_code) == (0, 0), (tmp_path / "report.txt").read_text()


def test_a_launcher_that_queries_once_is_found(tmp_path: Path) -> None:
    """The twin: an attribute set on the first device is assumed for all."""
    asks = "error = cudaFuncSetAttribute(attend_split<D>"
    program = built(tmp_path, asks, f"static int asked = 0;\n  if (asked++ == 0) {asks}")
    done = run_program([str(program), "devices"], ProgramOptions((), log_file=tmp_path / "report.txt"))
    assert done.program_code == 1


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["devices", "threads", "memory"])
def test_on_a_gpu(mode: str, tmp_path: Path) -> None:
    """Fault: the same on real shared memory, driver and threads; one GPU stands for two if necessary."""
    program = built(tmp_path)
    environment = {**os.environ, **find_toolchain().run_environment()}
    done = subprocess.run(
        [program, mode], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout
    if mode == "devices" and "pretended" in done.stdout:
        pytest.skip("a second real device needs two GPUs; one stood for two")

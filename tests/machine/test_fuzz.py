"""Damaged PTX: whatever the text, the reader ends in a module or in one line.

``tests/machine/driver/fuzz.cpp`` makes the damage; longer runs are started by hand, with other seeds.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from verify.toolchain.machine_build import machine_program
from verify.toolchain.toolchain import find_toolchain

HERE = Path(__file__).parent
PROGRAMS = ("double_buffer_right", "spin_lock_right", "barrier_pipeline_right", "tile_reduction_right")
SECONDS = 4


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """PTX of a few programs of known truth."""
    tools = find_toolchain()
    folder = tmp_path_factory.mktemp("corpus")
    for name in PROGRAMS:
        command = (
            str(tools.nvcc),
            "-ccbin",
            str(tools.gxx),
            "-std=c++17",
            "-arch=sm_90",
            "-ptx",
            "-lineinfo",
        )
        source = HERE / "programs" / f"{name}.cu"
        subprocess.run([*command, str(source)], cwd=folder, env=tools.environment(), check=True)
    return [str(path) for path in sorted(folder.glob("*.ptx"))]


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_ptx_ends_in_one_line(seed: int, corpus: list[str], tmp_path: Path) -> None:
    """Fault: a crash, an endless loop or a message of several lines for arbitrary text."""
    program = machine_program(HERE / "driver" / "fuzz.cpp")
    command = [str(program), str(SECONDS), str(seed), str(tmp_path / "current.ptx"), *corpus]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (
        f"{done.stdout}{done.stderr}\n{(tmp_path / 'current.ptx').read_text()[:4000]}"
    )
    tried, refused = (int(word) for word in done.stdout.split() if word.isdigit())
    assert tried > refused > 0

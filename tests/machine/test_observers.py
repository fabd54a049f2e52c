"""The checks of the CPU device without the device: played events in, findings out (``observers/*.cpp``)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from verify.toolchain.machine_build import machine_program

SOURCES = sorted((Path(__file__).parent / "observers").glob("*.cpp"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_checks_on_played_events(source: Path) -> None:
    """Each function in the file is named after the fault that it would catch."""
    done = subprocess.run([str(machine_program(source))], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok  " in done.stdout

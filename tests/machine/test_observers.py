"""The checks of the CPU device without the device: played events in, findings out.

A C++ file below tests/ that has an ``EVENT_TEST`` is found by that, and its tests register themselves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from verify.toolchain.machine_build import machine_program

EVENT_TEST = re.compile(r"^EVENT_TEST\((\w+)\)", re.MULTILINE)
SOURCES = sorted(
    file for file in Path(__file__).parent.parent.rglob("*.cpp") if EVENT_TEST.search(file.read_text())
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_checks_on_played_events(source: Path) -> None:
    """Fault: a test of the observers fails or is not run; each is named after the fault that it catches."""
    done = subprocess.run([str(machine_program(source))], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.findall(r"^ok   (\w+)$", done.stdout, re.MULTILINE)
    assert ran == EVENT_TEST.findall(source.read_text())

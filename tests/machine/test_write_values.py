"""Racing stores of the same value are a warning, of different values an error, in every width and memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verify.check.program import run_program
from verify.device.program import ProgramOptions, compile_program

SOURCE = Path(__file__).parent / "write_values.cu"
TYPES = 12
KERNELS = TYPES * (3 + 2) + 3
"""Of each kind: three writers of global memory, two of shared; two with a volatile store; an overlap."""


@pytest.mark.parametrize("seed", [0, 1])
def test_values_of_racing_stores_are_compared_whole(seed: int) -> None:
    """Fault: a race that loses data called harmless: values that agree in one byte, or with memory
    by chance."""
    program = compile_program(SOURCE, "sm_90")
    done = run_program([str(program)], ProgramOptions(("racecheck",), seed=seed, launch_timeout=60))
    assert done.report is not None, done.reason
    levels: dict[str, set[bool]] = {}
    for finding in done.report.findings:
        kernel = re.sub(r"^void ", "", finding.sites[0].kernel)
        levels.setdefault(kernel, set()).add(finding.warning)
    equal = {kernel: level for kernel, level in levels.items() if kernel.startswith("equal")}
    differ = {kernel: level for kernel, level in levels.items() if kernel.startswith("differ")}
    assert {kernel for kernel, level in equal.items() if level != {True}} == set()
    assert {kernel for kernel, level in differ.items() if level != {False}} == set()
    assert len(equal) == len(differ) == KERNELS

"""The table of docs/records/hardware.md: barriers that threads do not reach, on the CPU device."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from verify.check.program import run_program
from verify.device.program import ProgramOptions

PROGRAM = Path(__file__).parent / "programs" / "barrier_ways.cu"
REPORTED = {
    "skip": True,
    "early_return": False,
    "store_then_return": True,
    "loop": True,
    "guarded": True,
    "inside": False,
}


@pytest.mark.parametrize("n", [64, 45])
@pytest.mark.parametrize(("number", "way"), list(enumerate(REPORTED)), ids=list(REPORTED))
def test_each_way_past_a_barrier_is_judged_as_documented(number: int, way: str, n: int) -> None:
    """Fault: threads that pass a barrier by are not seen, or an early return is called a fault."""
    done = run_program(
        [str(PROGRAM), str(number), str(n)], ProgramOptions(("synccheck",)), stderr=subprocess.DEVNULL
    )
    assert done.report is not None and done.report.launches == 1
    found = {finding.kind for finding in done.report.findings}
    assert found == ({"Divergent thread(s) in block at a barrier"} if REPORTED[way] else set())

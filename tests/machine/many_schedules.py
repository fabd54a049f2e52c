"""Every right program of the tests under many schedules, with all tools; whatever is not clean is printed.

    python -m tests.machine.many_schedules [SEEDS]

Not part of the test run: 200 seeds take about an hour of one core.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.machine.known_programs import names, run
from verify.device.interface import TOOLS


def main(seeds: int) -> int:
    """The number of runs that were not clean."""
    right = [name for name in names() if name.endswith("_right")]
    began, alarms = time.monotonic(), 0
    for seed in range(1, seeds + 1):
        for program in right:
            with tempfile.TemporaryDirectory() as folder:
                done = run(program, TOOLS, Path(folder), seed=seed)
            if done.report is None or done.report.findings or done.exit_code != 0:
                alarms += 1
                kinds = sorted({f.kind for f in done.report.findings}) if done.report else []
                print(f"{program} under seed {seed}: {done.reason or kinds}", flush=True)
        seconds = time.monotonic() - began
        print(f"seed {seed}: {seed * len(right)} runs, {alarms} not clean, {seconds:.0f} s", flush=True)
    return alarms


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 200) else 0)

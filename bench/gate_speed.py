"""Measures the gate against the naive approach: one build and one process for each fixture and tool.

    python bench/gate_speed.py [KERNEL] [--device gpu|cpu] [--sample N]

Runs the gate cold (empty build cache) and warm, then the naive approach on the first N fixtures, scaled to
all of them: for each fixture and each of {native, memcheck, initcheck, racecheck, synccheck} a build of a
single-case program and one process under the tool. Prints both times and the ratios, all from this one run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from verify.check.matrix import runs_for
from verify.contract.discovery import find_contracts
from verify.device.interface import TOOLS
from verify.device.sanitizer.program import Sanitizer, find_sanitizer
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Finding
from verify.gate.prepare import prepare
from verify.report.reproduction import write_reproduction

WAYS = ("compare", *TOOLS)


def gate_seconds(kernel: str, device: str, cache: Path) -> tuple[float, int]:
    """Wall-clock seconds of one ``verify run`` in a separate process, and its exit code."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "verify", "run", kernel, "--device", device, "--quiet"],
        env={**os.environ, "VERIFY_CACHE": str(cache)},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return time.monotonic() - started, done.returncode


def naive_seconds(kernel: str, sample: int, folder: Path) -> tuple[float, int, int]:
    """Seconds of the naive approach on the first fixtures, their number, and the number of all fixtures."""
    device = select_device("gpu")
    if isinstance(device, NoDevice):
        raise SystemExit(f"the naive way runs natively and under compute-sanitizer: {device.reason}")
    info = device.info()
    (contract,) = find_contracts([kernel])
    ready = prepare(contract, lambda names: names, info.architecture, info.sm_count, lambda text: None)
    sanitizer = find_sanitizer()
    if not isinstance(sanitizer, Sanitizer):
        raise SystemExit(f"the naive way needs compute-sanitizer: {sanitizer.reason}")
    environment = {**ready.build.toolchain.run_environment(), "SANITIZER": str(sanitizer.path)}
    environment["NVCC"] = str(ready.build.toolchain.nvcc)
    chosen = list(ready.cases.items())[:sample]
    spent = 0.0
    for fixture, cases in chosen:
        for way in WAYS:
            runs = runs_for(way, cases)
            finding = Finding(way, contract.name, runs[0].case.id, "timing", "-", "-")
            target = folder / f"{fixture}-{way}"
            write_reproduction(target, ready.build, runs, finding, {})
            started = time.monotonic()
            for step in ("build.sh", "run.sh"):
                subprocess.run([target / step], env=environment, capture_output=True, check=True)
            spent += time.monotonic() - started
    return spent, len(chosen), len(ready.cases)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", nargs="?", default="flash_decode")
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    parser.add_argument("--sample", type=int, default=2, help="fixtures that the naive way is timed on")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gate-speed-") as scratch:
        cache = Path(scratch) / "cache"
        cold, cold_code = gate_seconds(options.kernel, options.device, cache)
        warm, warm_code = gate_seconds(options.kernel, options.device, cache)
        print(f"gate cold {cold:8.1f} s  (exit {cold_code})")
        print(f"gate warm {warm:8.1f} s  (exit {warm_code})", flush=True)
        if options.device == "cpu":
            return
        spent, done, fixtures = naive_seconds(options.kernel, options.sample, Path(scratch))
    naive = spent * fixtures / done
    timed = f"{done} of {fixtures} fixtures timed: {spent:.1f} s"
    print(f"naive     {naive:8.1f} s  ({len(WAYS)} builds and processes a fixture; {timed})")
    print(f"naive / cold = {naive / cold:.1f}   naive / warm = {naive / warm:.1f}")


if __name__ == "__main__":
    main()

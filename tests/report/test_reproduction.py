"""The reproduction folder: a program of one source that repeats a finding without the suite."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.harness.guarded_kernel import guarded_case
from verify.check.showing import Showing
from verify.check.specs import spec_of
from verify.device.interface import TOOLS, DeviceInfo
from verify.finding.finding import Finding
from verify.harness.build import Build
from verify.report.reproduction import write_reproduction
from verify.wire.run import Run

GPU = DeviceInfo("a GPU", "gpu", "sm_90", 132, 0)
CPU = DeviceInfo("CPU device sm_80", "cpu", "sm_80", 108, 0)
ON_CPU = "python -m verify sanitize --device cpu --arch sm_80"


def finding(check: str = "compare", where: str = "", **details: str) -> Finding:
    case = guarded_case().id
    return Finding(
        check, "guarded", case, "kind", "seen", "promised", where=where, details=tuple(details.items())
    )


def test_the_folder_builds_runs_and_judges_by_itself(
    guarded: Build,
    fake_runtime: Path,
    tmp_path: Path,
) -> None:
    """Fault: a missing header, an input of another case, or a judge that passes everything."""
    case = guarded_case()
    folder = tmp_path / "folder"
    run = Run("one", case)
    write_reproduction(folder, guarded, Showing((run,), judged=(run,)), finding(), GPU)
    assert "seen: seen" in (folder / "README").read_text()
    subprocess.run([folder / "build.sh"], check=True, capture_output=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(fake_runtime)}
    clean = subprocess.run([folder / "run.sh"], env=environment, capture_output=True, text=True, check=False)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert "every element is within its bound" in clean.stdout

    output = folder / "out" / "one.out"
    held = bytearray(output.read_bytes())
    first = held.index(b"\npayload\n") + len(b"\npayload\n")
    held[first + 4 * 7 + 1] ^= 1
    output.write_bytes(held)
    judged = subprocess.run(
        [folder / "guarded_case", "judge", "--expected", folder / "pack" / "expected", output],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 1
    assert "1 of 100 elements of y are outside their bounds, the first is promised element 7" in judged.stdout


@pytest.mark.parametrize(
    ("device", "check", "begun"),
    [
        (CPU, "racecheck", f"{ON_CPU} --tool racecheck -- ./guarded_case"),
        (CPU, "compare", f"{ON_CPU} --tool none -- ./guarded_case"),
        (GPU, "racecheck", "compute-sanitizer --tool racecheck"),
    ],
)
def test_a_finding_is_reproduced_on_the_device_that_found_it(
    device: DeviceInfo, check: str, begun: str, guarded: Build, tmp_path: Path
) -> None:
    """Fault: what the CPU device found needs a GPU and compute-sanitizer to be seen again."""
    case = guarded_case()
    folder = tmp_path / "folder"
    run = Run("one", case)
    tool = next((t for t in TOOLS if t == check), None)
    write_reproduction(folder, guarded, Showing((run,), tool=tool), finding(check), device)
    for name in ("python", "compute-sanitizer"):
        fake = tmp_path / name
        fake.write_text(f'#!/bin/sh\necho {name} "$@"\n')
        fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHON": "python"}
    said = subprocess.run([folder / "run.sh"], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.startswith(begun)
    assert "run --pack pack/manifest.pack --out out" in said.stdout


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (finding(), ["made.counting.nan"]),
        (finding("determinism"), ["again"]),
        (finding("determinism", seed="2"), ["one"]),
        (finding("determinism", mode="many-calls"), ["calls"]),
        (finding("launch", mode="graph"), ["graph"]),
        (finding("launch", "refusal null"), ["made.refuse-null"]),
        (finding("launch", "pass 1, runtime call 2"), ["once"]),
        (finding("initcheck"), ["made.counting.live-only"]),
    ],
)
def test_a_folder_has_the_runs_that_showed_the_finding(given: Finding, chosen: list[str]) -> None:
    """Fault: a folder that runs clean because it repeats another way of calling."""
    case = guarded_case()
    executed = [
        Run("one", case),
        Run("again", case, "repeat", repeats=3),
        Run("graph", case, "graph"),
        Run("calls", case, "many-calls", repeats=100),
        Run("made.refuse-null", guarded_case(), "refuse", null=("y",)),
    ]
    shown = spec_of(given.check).shows(given, case, {run.id: run for run in executed}, {})
    assert [run.id for run in shown.runs] == chosen

"""What the harness's tests share: built harnesses, and the runtime that stands in for a GPU's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.guarded_kernel import CONTRACT as GUARDED
from verify.contract.discovery import fixture_file, load_contract
from verify.contract.model import Case
from verify.fixture.cases import build_cases
from verify.fixture.resolve import resolve_fixtures
from verify.fixture.schema import load_fixtures
from verify.harness.build import Build, build_harness
from verify.toolchain.cache import cached, digest
from verify.wire.output import RunOutput, read_output
from verify.wire.pack import write_pack
from verify.wire.run import Run

HERE = Path(__file__).parent
SOFTMAX = HERE.parents[1] / "examples" / "row_softmax" / "row_softmax_contract.py"


@dataclass(frozen=True)
class Ended:
    """How a harness process ended: its markers, standard error, exit code, and the outputs that it wrote."""

    markers: list[str]
    stderr: str
    code: int
    outputs: dict[str, RunOutput]


Execute = Callable[..., Ended]


@pytest.fixture(scope="session")
def fake_runtime() -> Path:
    """The folder of a libcudart.so.13 that runs on the host."""
    sources = [HERE / "fake_cudart.cpp", HERE / "fake_cudart.map"]

    def build(folder: Path) -> None:
        options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13"]
        script = f"-Wl,--version-script={sources[1]}"
        library = folder / "libcudart.so.13"
        subprocess.run(["g++", *options, script, "-o", str(library), str(sources[0])], check=True)

    return cached("fake-runtime", digest(s.read_bytes() for s in sources), build)[0]


@pytest.fixture(scope="session")
def softmax() -> Build:
    return build_harness(load_contract(SOFTMAX), "sm_90")


@pytest.fixture(scope="session")
def guarded() -> Build:
    return build_harness(GUARDED, "sm_90")


@pytest.fixture(scope="session")
def softmax_cases() -> list[Case]:
    """The cases of the padded fixture: five rows of 1000 columns, 1024 apart."""
    contract = load_contract(SOFTMAX)
    resolved = resolve_fixtures(load_fixtures(fixture_file(contract), contract), contract, None)
    return list(build_cases(contract, next(r for r in resolved if r.fixture.name == "padded-rows")))


@pytest.fixture
def execute(fake_runtime: Path, tmp_path: Path) -> Execute:
    """Runs a harness over a pack on the fake runtime, with the faults that ``FAKE_CUDART`` takes."""

    def run(build: Build, runs: Sequence[Run], faults: str = "", preload: Path | None = None) -> Ended:
        out = tmp_path / "out"
        out.mkdir()
        manifest = write_pack(tmp_path / "pack", runs)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(fake_runtime), "FAKE_CUDART": faults}
        if preload is not None:
            environment["LD_PRELOAD"] = str(preload)
        done = subprocess.run(
            [build.binary, "run", "--pack", manifest, "--out", out],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        written = {
            r.id: read_output(out / f"{r.id}.out", r.case) for r in runs if (out / f"{r.id}.out").exists()
        }
        return Ended(done.stdout.splitlines(), done.stderr, done.returncode, written)

    return run

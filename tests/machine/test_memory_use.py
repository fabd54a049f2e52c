"""The CPU device's memory follows what a program touches, not what it allocates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from verify.device.interface import TOOLS
from verify.device.program import compile_program

MEGABYTES = 96
# Allocates 16 GB and writes the first bytes of it.
PROGRAM = """\
#include <cstdio>
#include <cstdlib>
__global__ void touch(unsigned* memory, size_t words) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step) memory[i] = i;
}
int main(int, char** words) {
  const size_t megabytes = std::atoi(words[1]);
  unsigned* memory;
  if (cudaMalloc(&memory, size_t{16} << 30) != cudaSuccess) return 2;
  touch<<<8, 256>>>(memory, megabytes << 18);
  return cudaDeviceSynchronize();
}
"""
# Prints the largest resident set of a run, in kilobytes.
MEASURE = """\
import resource, sys
from verify.check.program import run_program
from verify.device.program import ProgramOptions
result = run_program(sys.argv[2:], ProgramOptions(tuple(sys.argv[1].split())))
assert result.exit_code == 0, result.reason
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("touch") / "touch.cu"
    source.write_text(PROGRAM)
    return compile_program(source, "sm_90")


def megabytes(program: Path, tools: tuple[str, ...], touched: int) -> float:
    command = [sys.executable, "-c", MEASURE, " ".join(tools), str(program), str(touched)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1]) / 1024


@pytest.mark.parametrize(("tools", "most"), [((), 2.0), (TOOLS, 9.0)])
def test_memory_follows_what_is_touched(program: Path, tools: tuple[str, ...], most: float) -> None:
    """Fault: a machine that backs all that is allocated, or keeps copies: at most twice the bytes, plus the
    shadow of the checks (7.2 bytes a byte when this was written, most of it racecheck's)."""
    grown = megabytes(program, tools, MEGABYTES) - megabytes(program, tools, 1)
    assert grown < most * MEGABYTES

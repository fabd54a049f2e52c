"""The text of a finding: its remedy fixes it, names are readable, one fault is reported once, in threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine.known_programs import run
from verify.check.program import run_program
from verify.device.interface import TOOLS
from verify.device.machine_report import MachineFinding
from verify.device.program import ProgramOptions, compile_program

SOURCE = Path(__file__).parent / "race_messages.cu"
KERNELS = (
    "across_warps",
    "across_lanes",
    "tree",
    "two_faults",
    "counted",
    "own_copy",
    "constant_store",
    "failing_assert",
)


def findings(
    kernel: str, tmp_path: Path, seed: int = 0, tools: tuple[str, ...] = ("racecheck",)
) -> tuple[MachineFinding, ...]:
    program = compile_program(SOURCE, "sm_90")
    options = ProgramOptions(tools, seed=seed, launch_timeout=60, log_file=tmp_path / "report.txt")
    done = run_program([str(program), str(KERNELS.index(kernel))], options)
    assert done.report is not None, done.reason
    return done.report.findings


@pytest.mark.parametrize("seed", range(4))
def test_remedy_reaches_as_far_as_the_race(seed: int, tmp_path: Path) -> None:
    """Fault: the remedy for a race across warps is __syncwarp(), from the first pair found."""
    (finding,) = findings("across_warps", tmp_path, seed)
    assert "__syncthreads()" in finding.remedy
    assert "another warp" in finding.message
    (finding,) = findings("across_lanes", tmp_path, seed)
    assert "__syncwarp()" in finding.remedy and "__syncthreads()" not in finding.remedy


def test_remedy_of_a_programmatic_launch_is_the_wait_in_the_kernel(tmp_path: Path) -> None:
    """Fault: the remedy advises events and streams, which are useless for launches on the same stream."""
    done = run("dependent_launch_faulty", ("racecheck",), tmp_path)
    assert done.report is not None
    (finding,) = done.report.findings
    assert "cudaGridDependencySynchronize() in kernel" in finding.remedy
    assert "consume(int const*, int*)" in finding.remedy
    assert "event" not in finding.remedy and "stream" not in finding.remedy


def test_remedy_of_nodes_of_a_graph_is_an_edge_or_an_event(tmp_path: Path) -> None:
    """Fault: kernels of one graph are taken for a programmatic launch, for they run on the same stream."""
    done = run("graph_fork_faulty", ("racecheck",), tmp_path)
    assert done.report is not None
    (finding,) = done.report.findings
    assert "cudaGraphAddDependencies" in finding.remedy and "cudaStreamWaitEvent" in finding.remedy
    assert "programmatic" not in finding.message
    assert "cudaGridDependencySynchronize" not in finding.remedy


def test_remedy_of_a_flag_without_a_fence_is_the_fence(tmp_path: Path) -> None:
    """Fault: a kernel that signals the host by a flag is advised to synchronize streams only."""
    done = run("mapped_flag_faulty", ("racecheck",), tmp_path)
    assert done.report is not None
    (finding,) = done.report.findings
    assert "__threadfence_system()" in finding.remedy


def test_a_trap_of_grid_sync_names_the_cooperative_launch(tmp_path: Path) -> None:
    """Fault: grid.sync() in an ordinary launch succeeds, or is reported as a trap without its reason."""
    done = run("grid_sync_ordinary_faulty", ("racecheck",), tmp_path)
    assert done.report is not None
    messages = [finding.message for finding in done.report.findings if finding.check == "launch"]
    assert any("cudaLaunchCooperativeKernel" in message for message in messages), messages


@pytest.mark.parametrize("seed", range(4))
def test_one_reduction_without_barriers_is_one_finding(seed: int, tmp_path: Path) -> None:
    """Fault: each pair of lines is reported separately, lines are missing, or two faults are merged."""
    (finding,) = findings("tree", tmp_path, seed)
    assert "also between lines" in finding.message
    assert "another warp" in finding.message
    assert len(findings("two_faults", tmp_path, seed)) == 2


def test_threads_are_counted_not_bytes(tmp_path: Path) -> None:
    """Fault: a store of 8 bytes that counts as two or eight."""
    (finding,) = findings("counted", tmp_path)
    assert finding.count == 63


def test_a_race_of_a_thread_with_its_own_copy_is_named(tmp_path: Path) -> None:
    """Fault: 'another lane' is reported if the copy and the access are of one thread."""
    (finding,) = findings("own_copy", tmp_path)
    assert "of the same thread" in finding.message
    assert finding.sites[0].thread == finding.sites[1].thread


@pytest.mark.parametrize("kernel", ["constant_store", "failing_assert"])
def test_a_kernel_that_trapped_is_reported_once(kernel: str, tmp_path: Path) -> None:
    """Fault: the same fault is reported again for every later call, with mangled names or on
    several lines."""
    (finding,) = findings(kernel, tmp_path, tools=TOOLS)
    assert finding.sites[0].kernel.startswith(f"{kernel}(")
    text = (tmp_path / "report.txt").read_text()
    assert all(line.startswith("=========") for line in text.splitlines())
    assert "_Z" not in text

"""The GPU device end to end, with a stand-in for compute-sanitizer that leaves recorded logs."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from verify.device import gpu
from verify.device.cuda_probe import Gpu, Probe, ask_driver, probe
from verify.device.gpu import GpuDevice
from verify.device.gpu_pool import GpuPool
from verify.device.interface import Execution, Job, RunStatus, Tool
from verify.device.sanitizer.program import Missing, Sanitizer

LOGS = Path(__file__).parent / "logs" / "2026.4.0"
CARD = Gpu(0, "GPU-0", "NVIDIA H200", "sm_90", 132, 140 << 30)

HARNESS = """#!{python}
import os, sys
words = sys.argv[1:]
out = words[words.index("--out") + 1]
runs = [words[i + 1] for i, word in enumerate(words) if word == "--only"]
print("visible", os.environ.get("CUDA_VISIBLE_DEVICES"), "regions", "--no-regions" not in words)
for run in runs:
    print("@begin", run, flush=True)
    if run == "dies": os.abort()
    open(os.path.join(out, run + ".out"), "w").close()
    print("@launched", run, "kernels=" + ("0" if run == "idle" else "2"))
    print("@done", run, flush=True)
"""

SANITIZER = """#!{python}
import os, shutil, subprocess, sys
words = sys.argv[1:]
log, xml = words[words.index("--log-file") + 1], words[words.index("--save") + 1]
name = os.environ["RECORDING"]
program = words[words.index("--xml") + 1:]
code = subprocess.run(program).returncode
for source, target in ((name + ".txt", log), (name + ".xml", xml)):
    if os.path.exists(source): shutil.copy(source, target)
sys.exit(int(os.environ["CODE"]) or (code and 1))
"""


def script(path: Path, text: str) -> Path:
    path.write_text(text.replace("{python}", sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sanitizer:
    """A machine with one card and compute-sanitizer 2026.4."""
    sanitizer = Sanitizer(script(tmp_path / "compute-sanitizer", SANITIZER), (2026, 4, 0, 0))
    monkeypatch.setattr(gpu, "_probe_once", lambda: Probe((CARD,), "580.95.05", "13.0"))
    monkeypatch.setattr(gpu, "_pool_once", lambda: GpuPool((CARD,), tmp_path))
    monkeypatch.setattr(gpu, "find_sanitizer", lambda: sanitizer)
    return sanitizer


def run(tmp_path: Path, tool: Tool | None, recording: str = "right", code: int = 0, *runs: str) -> Execution:
    environment = {"RECORDING": str(LOGS / (tool or "memcheck") / recording), "CODE": str(code)}
    harness = script(tmp_path / "harness", HARNESS)
    wanted = runs or ("a", "b")
    return GpuDevice().execute(
        Job(harness, tmp_path / "m", wanted, tmp_path / "out", tool, 10, environment=environment)
    )


@pytest.mark.usefixtures("machine")
def test_a_native_run_gives_outputs_without_doubt(tmp_path: Path) -> None:
    """Fault: outputs or launch counts of native runs are lost."""
    execution = run(tmp_path, None)
    assert [r.status for r in execution.results.values()] == [RunStatus.DONE] * 2
    assert (execution.doubt, execution.records) == ("", ())
    assert execution.results["a"].kernels == 2


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("tool", ["memcheck", "initcheck", "racecheck", "synccheck"])
def test_a_silent_tool_leaves_no_doubt_and_its_summary(tmp_path: Path, tool: Tool) -> None:
    """Fault: the verdict clean can never be reached."""
    execution = run(tmp_path, tool)
    assert (execution.doubt, execution.records) == ("", ())
    assert "SUMMARY: 0" in execution.summary
    assert execution.log is not None
    assert execution.log.is_file()
    assert execution.command[1:3] == ("--tool", tool)


@pytest.mark.usefixtures("machine")
def test_records_come_with_the_error_exit_code(tmp_path: Path) -> None:
    """Fault: a tool's records do not reach the execution."""
    execution = run(tmp_path, "memcheck", "two_kernels", 86)
    assert [r.function for r in execution.records] == ["misaligned_write", "shared_out_of_bounds"]
    assert execution.doubt == ""


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("recording", "code", "runs", "says"),
    [
        ("absent", 0, ("a",), "the tool wrote no log"),
        ("right", 86, ("a",), "reported nothing but ended with exit code 86"),
        ("right", 0, ("a", "idle"), "launched no kernel in idle"),
        ("exit_code", 3, ("a",), "Target application returned an error"),
    ],
)
def test_a_contradiction_in_the_proof_is_a_doubt(
    tmp_path: Path, recording: str, code: int, runs: tuple[str, ...], says: str
) -> None:
    """Fault: a missing log, an exit code or a launch that never happened passes for clean."""
    assert says in run(tmp_path, "memcheck", recording, code, *runs).doubt


@pytest.mark.usefixtures("machine")
def test_a_crash_under_a_tool_is_charged_to_its_run_and_the_rest_continues(tmp_path: Path) -> None:
    """Fault: under a tool, one crash costs the runs behind it."""
    execution = run(tmp_path, "racecheck", "right", 0, "a", "dies", "b")
    assert [r.status for r in execution.results.values()] == [
        RunStatus.DONE,
        RunStatus.FAULT,
        RunStatus.DONE,
    ]
    assert execution.doubt != ""


def test_an_older_tool_leaves_a_doubt(
    tmp_path: Path, machine: Sanitizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a release that misses uninitialised shared memory gives clean verdicts."""
    older = Sanitizer(machine.path, (2025, 3, 1, 0))
    monkeypatch.setattr(gpu, "find_sanitizer", lambda: older)
    execution = run(tmp_path, "initcheck")
    assert "2025.3.1 is older than 2026.4" in execution.doubt
    assert "--initcheck-address-space" not in execution.command
    assert any("older than 2026.4" in note for note in GpuDevice().notes())


def test_a_missing_tool_is_not_run(
    tmp_path: Path, machine: Sanitizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: without the tool the program runs natively and looks clean."""
    monkeypatch.setattr(gpu, "find_sanitizer", lambda: Missing("install it"))
    execution = run(tmp_path, "memcheck")
    assert {(r.status, r.error) for r in execution.results.values()} == {(RunStatus.NOT_RUN, "install it")}
    assert "install it" in GpuDevice().notes()


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("tool", ["memcheck", "initcheck", "racecheck", "synccheck"])
def test_live_regions_are_registered_for_memcheck_only(tmp_path: Path, tool: Tool) -> None:
    """Fault: initcheck takes every new region for unwritten memory; or memcheck does not know the band."""
    assert ("--no-regions" in run(tmp_path, tool).command) == (tool != "memcheck")


def test_one_gpu_is_left_as_it_is_and_one_of_several_is_named(
    tmp_path: Path, machine: Sanitizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: all work goes to the first GPU, or a container's own choice of one is overridden."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    job = Job(tmp_path, tmp_path, ["a"], tmp_path)
    assert "CUDA_VISIBLE_DEVICES" not in GpuDevice()._environment(job, CARD)
    other = Gpu(1, "GPU-1", "NVIDIA H200", "sm_90", 132, 140 << 30)
    monkeypatch.setattr(gpu, "_probe_once", lambda: Probe((CARD, other), "580.95.05", "13.0"))
    assert GpuDevice()._environment(job, other)["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert GpuDevice().info().name == "NVIDIA H200 (one of 2)"


@pytest.mark.usefixtures("machine")
def test_facts_of_the_device() -> None:
    """Fault: a report that does not name driver and tool."""
    info = GpuDevice().info()
    assert (info.architecture, info.sm_count) == ("sm_90", 132)
    assert info.versions == {"driver": "580.95.05", "cuda": "13.0", "compute-sanitizer": "2026.4.0"}


def test_no_driver_is_one_line_and_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a machine without a GPU raises, or counts as one with."""
    monkeypatch.setattr(gpu, "_probe_once", lambda: Probe(reason="no NVIDIA driver"))
    answer = GpuDevice().available()
    assert (answer.ok, answer.reason) == (False, "no NVIDIA driver")
    with pytest.raises(RuntimeError, match="no NVIDIA driver"):
        GpuDevice().info()


def test_the_probe_runs_in_a_separate_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fault: the probe's answer differs from the driver's, or a foreign working directory breaks it."""
    monkeypatch.chdir(tmp_path)
    assert probe().reason == ask_driver().reason
    assert [g.uuid for g in probe().gpus] == [g.uuid for g in ask_driver().gpus]


def test_a_probe_that_hangs_is_a_reason() -> None:
    """Fault: a hung driver hangs the suite."""
    assert "did not answer" in probe(timeout=0.001).reason

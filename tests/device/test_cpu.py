"""The CPU device: reports become records, refusals are not faults, and a clean run needs proof of work."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from verify.device import cpu
from verify.device.cpu import CpuDevice
from verify.device.interface import Execution, Job, RunStatus, Tool
from verify.finding.finding import SourceLine
from verify.toolchain.machine_sources import MachineBuildError

HARNESS = """#!{python}
import json, os, sys
words = sys.argv[1:]
out = words[words.index("--out") + 1]
runs = [words[i + 1] for i, word in enumerate(words) if word == "--only"]
told = dict(line.split("=", 1) for line in os.environ["VERIFY_MACHINE"].splitlines())
report = json.loads(os.environ["REPORT"])
for run in runs:
    print("@begin", run, flush=True)
    if report.get("refused"):
        print("@error", run, "cudaErrorInvalidDeviceFunction", flush=True)
        continue
    open(os.path.join(out, run + ".out"), "w").close()
    print("@launched", run, "kernels=2")
    print("@done", run, flush=True)
report |= {"tools": told["tools"].split(","), "seed": int(told["seed"]), "architecture": told["arch"]}
report["program"] = os.environ["VERIFY_KEEP_SHARED"]
if "absent" not in report:
    with open(told["json"].replace("%p", str(os.getpid())), "w") as file: json.dump(report, file)
"""

RACE = {
    "check": "racecheck",
    "level": "error",
    "kind": "race",
    "message": "two blocks write it.",
    "remedy": "Add a fence.",
    "address": "partial + 128",
    "count": 4,
    "sites": [
        {
            "kernel": "merge",
            "source": [{"file": "k.cu", "line": line, "function": "merge"}],
            "ptx_line": 3,
            "ptx": "st.global",
            "block": [block, 0, 0],
            "thread": [0, 0, 0],
        }
        for line, block in ((10, 0), (20, 1))
    ],
}


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpu, "machine_library", lambda progress: tmp_path / "libcudart.so.13")
    monkeypatch.setattr(cpu, "read_program", lambda path: None)


def run(
    tmp_path: Path, tool: Tool | None = "racecheck", options: dict[str, str] | None = None, **report: Any
) -> Execution:
    harness = tmp_path / "harness"
    harness.write_text(HARNESS.replace("{python}", sys.executable))
    harness.chmod(harness.stat().st_mode | stat.S_IXUSR)
    said = {"refused": "", "findings": [], "notes": [], "work": {"kernels": 9}, "traffic": [], **report}
    job = Job(
        harness,
        tmp_path / "m",
        ("a", "b"),
        tmp_path / "out",
        tool,
        10,
        options or {},
        {"REPORT": json.dumps(said)},
    )
    return CpuDevice().execute(job)


def written(execution: Execution) -> dict[str, Any]:
    assert execution.log is not None
    (file,) = execution.log.glob("*.json")
    loaded: dict[str, Any] = json.loads(file.read_text())
    return loaded


def test_a_silent_report_with_work_leaves_no_doubt(tmp_path: Path) -> None:
    """Fault: the verdict clean can never be reached."""
    execution = run(tmp_path)
    assert (execution.doubt, execution.records) == ("", ())
    assert [r.status for r in execution.results.values()] == [RunStatus.DONE] * 2
    assert execution.summary.startswith("9 kernels")


def test_a_finding_becomes_a_record_with_both_places(tmp_path: Path) -> None:
    """Fault: a race without its second access, line or address."""
    (record,) = run(tmp_path, findings=[RACE]).records
    assert (record.tool, record.kind, record.function) == ("racecheck", "race", "merge")
    assert record.source == SourceLine("k.cu", 10)
    assert record.address == "partial + 128"
    assert (record.thread, record.block) == ("(0,0,0)", "(0,0,0)")
    assert "k.cu:20" in record.accesses[0]
    assert "Add a fence." in record.message


def test_tools_seed_and_architecture_reach_the_machine(tmp_path: Path) -> None:
    """Fault: a requested check is not run, or all schedules are the same."""
    said = written(run(tmp_path, "memcheck", {"seed": "7", "tools": "racecheck,synccheck"}))
    assert said["tools"] == ["memcheck", "racecheck", "synccheck"]
    assert (said["seed"], said["architecture"]) == (7, "sm_90")
    assert said["program"] == "1"  # shared memory is not dirtied: the machine sees the read itself


def test_without_a_tool_the_machine_only_runs(tmp_path: Path) -> None:
    """Fault: native runs execute checks that were not requested."""
    assert written(run(tmp_path, None))["tools"] == ["none"]


def test_less_work_than_the_markers_say_is_a_doubt(tmp_path: Path) -> None:
    """Fault: kernels that the machine never ran count as checked."""
    assert "ran 3 kernels, the harness launched 4" in run(tmp_path, work={"kernels": 3}).doubt


def test_no_report_is_a_doubt(tmp_path: Path) -> None:
    """Fault: a process without a report passes for a silent one."""
    assert "left no report" in run(tmp_path, absent=1).doubt


def test_a_refusal_is_not_run_and_no_fault_of_the_kernel(tmp_path: Path) -> None:
    """Fault: an opcode that the machine does not know is blamed on the kernel."""
    execution = run(tmp_path, refused="kernel k line 3: no opcode wgmma")
    assert {(r.status, r.error) for r in execution.results.values()} == {
        (RunStatus.NOT_RUN, "kernel k line 3: no opcode wgmma")
    }
    assert execution.doubt == "kernel k line 3: no opcode wgmma"


def test_a_machine_that_does_not_build_is_not_run_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: a compiler's pages of text where a reason belongs, or an exception."""

    def fails(progress: object) -> Path:
        raise MachineBuildError("the CPU device does not compile\nhundreds of lines")

    monkeypatch.setattr(cpu, "machine_library", fails)
    execution = run(tmp_path)
    assert {r.error for r in execution.results.values()} == {"the CPU device does not compile"}
    assert {r.status for r in execution.results.values()} == {RunStatus.NOT_RUN}


def test_facts_do_not_depend_on_the_machine() -> None:
    """Fault: split counts, and so results, change with the number of cores."""
    assert CpuDevice("sm_80").info().sm_count == 108
    assert CpuDevice("sm_90").info().sm_count == 132
    assert CpuDevice().info().memory_bytes > 0
    assert "not the machine code" in CpuDevice().notes()[0]


def test_an_unknown_architecture_is_not_available() -> None:
    """Fault: a typing error is found after minutes of work."""
    answer = CpuDevice("sm_75").available()
    assert not answer.ok
    assert "sm_80, sm_90, sm_90a" in answer.reason

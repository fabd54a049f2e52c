"""Tripwires: a tool is trusted only if it reports every fault planted for it, on the marked line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from verify.device.gpu import GpuDevice
from verify.device.interface import TOOLS, Availability, DeviceInfo, Execution, Job, Tool, ToolRecord
from verify.device.sanitizer import tripwire
from verify.device.sanitizer.tripwire import FOLDER, TRIPWIRES, Tripwires, marked_line, try_tool
from verify.finding.finding import SourceLine


class Scripted(GpuDevice):
    """A device whose tools report what the script says."""

    def __init__(self, script: Callable[[Job], Execution]) -> None:
        super().__init__()
        self.script = script
        self.jobs: list[Job] = []

    def info(self) -> DeviceInfo:
        return DeviceInfo("scripted", "gpu", "sm_90", 132, 1 << 30)

    def execute(self, job: Job, progress: object = None) -> Execution:
        self.jobs.append(job)
        return self.script(job)


@pytest.fixture(autouse=True)
def built(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("gpu") is None:
        monkeypatch.setattr(tripwire, "build_tripwire", lambda name, architecture: Path(name))


def reports(job: Job, line: int | None = None, file: str | None = None) -> Execution:
    """The planted fault, or one at another place."""
    name = job.binary.name
    place = SourceLine(file or f"/src/tripwires/{name}.cu", line or marked_line(name))
    return Execution(job, {}, (ToolRecord(job.tool or "", "kind", "message", source=place),))


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_that_reports_all_its_tripwires_is_trusted(tool: Tool) -> None:
    """Fault: no tool is ever trusted, or a tripwire of the tool is not run."""
    device = Scripted(reports)
    assert try_tool(device, tool) == Availability(True, "")
    assert sorted(job.binary.name for job in device.jobs) == sorted(TRIPWIRES[tool])
    assert {job.tool for job in device.jobs} == {tool}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_silent_tool_is_not_trusted(tool: Tool) -> None:
    """Fault: a tool that reports nothing is trusted."""
    answer = try_tool(Scripted(lambda job: Execution(job, {})), tool)
    assert not answer.ok
    assert f"{tool} does not report the fault planted in line" in answer.reason


def test_one_missed_tripwire_is_enough() -> None:
    """Fault: initcheck without shared memory is trusted because it checks global memory."""

    def blind(job: Job) -> Execution:
        return Execution(job, {}) if job.binary.name == "initcheck_shared" else reports(job)

    answer = try_tool(Scripted(blind), "initcheck")
    assert not answer.ok
    assert "initcheck_shared.cu" in answer.reason


@pytest.mark.parametrize("where", [{"line": 1}, {"file": "/src/other.cu"}])
def test_a_record_of_another_place_is_not_the_planted_fault(where: dict[str, object]) -> None:
    """Fault: any noise counts as the report of the tripwire."""
    assert not try_tool(Scripted(lambda job: reports(job, **where)), "synccheck").ok  # type: ignore[arg-type]


def test_a_tool_that_does_not_start_says_why() -> None:
    """Fault: "does not report" when the tool was never there."""
    answer = try_tool(Scripted(lambda job: Execution(job, {}, doubt="no compute-sanitizer")), "memcheck")
    assert "could not be tried: no compute-sanitizer" in answer.reason


def test_a_tool_is_tried_once() -> None:
    """Fault: every check pays for the tripwires again."""
    device, tripwires = Scripted(reports), Tripwires()
    assert tripwires.tried(device, "synccheck") is tripwires.tried(device, "synccheck")
    assert len(device.jobs) == 1


def test_every_tripwire_has_one_marked_line_and_belongs_to_a_tool() -> None:
    """Fault: a tripwire is never run, or its fault is not marked."""
    files = {path.stem for path in FOLDER.glob("*.cu")}
    assert files == {name for names in TRIPWIRES.values() for name in names}
    for name in files:
        text = (FOLDER / f"{name}.cu").read_text()
        assert text.count("// fault\n") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("tool", TOOLS)
def test_the_tool_of_this_machine_reports_its_tripwires(tool: Tool) -> None:
    """Fault: the flags, or the reading of the log, do not fit the tool that is installed."""
    assert try_tool(GpuDevice(), tool) == Availability(True, "")

"""Tripwires: small programs, each with a planted fault that a tool must be able to report.

If a tool does not report the marked line on this machine and device, its clean verdicts cannot be trusted.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from verify.device.interface import Availability, Device, Job, Tool
from verify.harness.commands import architecture_flags
from verify.toolchain.cache import cached, digest
from verify.toolchain.compile import BuildError, Command, compile_folder, run_compiler
from verify.toolchain.toolchain import Toolchain, ToolchainError, find_toolchain

FOLDER = Path(__file__).with_name("tripwires")
SHARED = FOLDER / "tripwire.cuh"
MARK = "// fault"
RUN = "tripwire"

TRIPWIRES: Mapping[Tool, tuple[str, ...]] = {
    "memcheck": ("memcheck", "memcheck_region"),
    "initcheck": ("initcheck", "initcheck_shared"),
    "racecheck": ("racecheck", "racecheck_async"),
    "synccheck": ("synccheck",),
}


@dataclass
class Tripwires:
    """The results of one device's tripwires, each tool tried once."""

    _known: dict[Tool, Availability] = field(default_factory=dict)
    _locks: dict[Tool, threading.Lock] = field(
        default_factory=lambda: {tool: threading.Lock() for tool in TRIPWIRES}
    )

    def tried(self, device: Device, tool: Tool) -> Availability:
        """Whether the tool reports each of its tripwires on the device, and if not, which it misses."""
        with self._locks[tool]:
            if tool not in self._known:
                self._known[tool] = try_tool(device, tool)
            return self._known[tool]


def try_tool(device: Device, tool: Tool) -> Availability:
    """Build and run the tool's tripwires on the device, concurrently."""
    architecture = device.info().architecture
    with ThreadPoolExecutor(len(TRIPWIRES[tool])) as pool:
        problems = pool.map(lambda name: _problem(device, tool, name, architecture), TRIPWIRES[tool])
        missed = [problem for problem in problems if problem]
    return Availability(not missed, "; ".join(missed))


def build_tripwire(name: str, architecture: str) -> Path:
    """The compiled tripwire, cached. Raises ToolchainError with the compiler's output."""
    source = FOLDER / f"{name}.cu"
    toolchain = find_toolchain()
    toolchain.require_build()
    command = _command(toolchain, source, architecture)
    key = digest([source.read_bytes(), SHARED.read_bytes(), *map(str, command), toolchain.identity])

    def build(entry: Path) -> None:
        with compile_folder() as folder:
            try:
                run_compiler(command, folder, toolchain, source.name)
            except BuildError as error:
                raise ToolchainError(str(error)) from None
            shutil.copy(folder / name, entry / name)

    entry, _ = cached("tripwire", key, build)
    return entry / name


def marked_line(name: str) -> int:
    """The line of a tripwire's source that must be reported."""
    lines = (FOLDER / f"{name}.cu").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(MARK))


def _command(toolchain: Toolchain, source: Path, architecture: str) -> Command:
    assert toolchain.nvcc is not None and toolchain.gxx is not None
    flags = ("-std=c++17", "-O3", "-lineinfo", "--no-compress", "-ccbin", toolchain.gxx)
    code = architecture_flags([architecture])
    places = ("-I", FOLDER, *toolchain.include_flags(), "-o", source.stem)
    return (toolchain.nvcc, *flags, *code, *places, source, *toolchain.link_flags(), "-ldl")


def _problem(device: Device, tool: Tool, name: str, architecture: str) -> str:
    """Why this tripwire does not count as reported, or empty."""
    try:
        binary = build_tripwire(name, architecture)
    except ToolchainError as error:
        return str(error)
    line = marked_line(name)
    with tempfile.TemporaryDirectory(prefix="verify-tripwire-") as scratch:
        job = Job(binary, Path(scratch) / "none", (RUN,), Path(scratch) / "out", tool, timeout=60.0)
        execution = device.execute(job)
    # A race has two locations; which of them a tool names first depends on the schedule.
    spelled = re.compile(rf"{re.escape(name)}\.cu:{line}\b")
    if any(spelled.search(f"{r.source} {' '.join(r.accesses)}") for r in execution.records):
        return ""
    if not execution.records and execution.doubt:
        return f"the tripwire {name} could not be tried: {execution.doubt}"
    return f"{tool} does not report the fault planted in line {line} of the tripwire {name}.cu"

"""Runs any CUDA program on the CPU device.

The program is started unchanged, with the suite's ``libcudart.so.13`` before the real one on its loader's
path; the report comes back as one JSON file a process. What the program prints stays the program's. Used by
the device interface, and by :mod:`verify.check.program`, which judges what comes back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from verify.device.elf import ProgramFile, read_program
from verify.device.fat_binary import images, unpack
from verify.device.interface import TOOLS
from verify.device.machine_report import MachineReport, merge_reports, read_report
from verify.device.program_log import begin_log
from verify.device.watched_program import NoProgramError, ProgramEnd, run_watched
from verify.system.exit_code import ExitCode
from verify.system.progress import Progress
from verify.toolchain.cache import cached, digest
from verify.toolchain.compile import (
    Command,
    compile_folder,
    plain_source,
    preprocessed,
    run_compiler,
)
from verify.toolchain.machine_build import LIBRARY, machine_library
from verify.toolchain.toolchain import Toolchain, find_toolchain

ARCHITECTURES = ("sm_80", "sm_90")


@dataclass(frozen=True)
class ProgramOptions:
    """What to check and how. Names follow compute-sanitizer's where they mean the same.

    tools: of memcheck, initcheck, racecheck, synccheck; empty only runs the program. seed: of every schedule
    choice. strict: warnings count as findings. print_limit: findings as text, 0 for all. launch_timeout:
    seconds for one kernel, 0 for none. kernel_name: report only kernels whose name contains it.
    threads: cores of the machine, 0 for all; they never change a result. memory: bytes of device memory, 0
    for what the architecture has. log_file: the text report goes there instead of to standard error. checks:
    settings of single checks (``row_bytes``). report_api_errors: runtime calls that fail are findings.
    timing: a file that gets one line a launch, for measuring the machine.
    """

    tools: tuple[str, ...] = TOOLS
    architecture: str = "sm_90"
    seed: int = 0
    strict: bool = False
    print_limit: int = 100
    launch_timeout: int = 0
    kernel_name: str = ""
    threads: int = 0
    memory: int = 0
    log_file: Path | None = None
    error_exitcode: int = ExitCode.FINDINGS
    report_api_errors: bool = True
    checks: Mapping[str, str] = field(default_factory=dict)
    timing: Path | None = None


class RefusedError(Exception):
    """The program cannot run on the CPU device; one line that says what mends it."""


@dataclass(frozen=True)
class ProgramRun:
    """What a program left behind.

    report: of all its processes, None when there is none. cut_off: a process used the runtime and ended
    before it could write its report.
    """

    end: ProgramEnd
    report: MachineReport | None
    cut_off: bool


class AskedToEndError(Exception):
    """A signal ends verify while the program runs, so nobody waits for what the program left."""


def run_on_machine(
    argv: Sequence[str],
    name: str,
    options: ProgramOptions,
    environment: Mapping[str, str],
    stdout: int | None = None,
    stderr: int | None = None,
    progress: Progress | None = None,
) -> ProgramRun:
    """Run a program with its arguments on the machine. name: what its log calls it.

    Raises NoProgramError, LogError, RefusedError, MachineBuildError, FatBinaryError or AskedToEndError.
    """
    program = _located(argv[0], environment)
    facts = read_program(program)
    if facts is not None:
        check_program(facts, options.architecture)
    library = machine_library(progress)
    with tempfile.TemporaryDirectory(prefix="verify-") as folder:
        prepared = machine_environment(library, options, Path(folder), environment, facts, argv[0])
        if options.log_file is not None:
            begin_log(options.log_file, name)
        command = (str(program.absolute()), *argv[1:])
        end = run_watched(command, argv[0], prepared, Path(folder), stdout, stderr)
        if not Path(folder).is_dir():
            raise AskedToEndError("verify was asked to end")
        report = merge_reports([read_report(file) for file in sorted(Path(folder).glob("*.json"))])
        return ProgramRun(end, report, any(Path(folder).glob("*.partial")))


def machine_environment(
    library: Path,
    options: ProgramOptions,
    folder: Path,
    base: Mapping[str, str],
    facts: ProgramFile | None,
    name: str,
) -> dict[str, str]:
    """The environment that makes a program run on the CPU device.

    folder: where each of its processes leaves its report, ``PID.json``. The library lies first on
    LD_LIBRARY_PATH; a program with DT_RPATH, which comes before that, gets it preloaded as well.
    """
    unpacked = unpack(facts.fat_binaries) if facts is not None else None
    lines = {
        "program": name,
        "arch": options.architecture,
        "tools": ",".join(options.tools) or "none",
        "seed": options.seed,
        "strict": int(options.strict),
        "print_limit": options.print_limit,
        "launch_timeout": options.launch_timeout,
        "kernel_name": options.kernel_name,
        "threads": options.threads,
        "memory": options.memory,
        "api_errors": int(options.report_api_errors and bool(options.tools)),
        "log_file": options.log_file.absolute() if options.log_file else "",
        "unpacked": unpacked or "",
        "timing": options.timing or "",
        "json": folder / "%p.json",
        **{f"check.{key}": value for key, value in options.checks.items()},
    }
    told = {key: str(value).replace("\\", "\\\\").replace("\n", "\\n") for key, value in lines.items()}
    text = "\n".join(f"{key}={value}" for key, value in told.items() if value)
    paths = [str(library.parent), *filter(None, [base.get("LD_LIBRARY_PATH", "")])]
    result = {
        **base,
        "VERIFY_MACHINE": text,
        "LD_LIBRARY_PATH": os.pathsep.join(paths),
        "NVTX_INJECTION64_PATH": str(library),
    }
    if facts is not None and facts.has_rpath:
        result["LD_PRELOAD"] = " ".join(filter(None, [str(library), base.get("LD_PRELOAD", "")]))
    return result


def check_program(facts: ProgramFile, architecture: str) -> None:
    """Raises RefusedError, with the flags that mend it, for a program that the CPU device cannot serve."""
    number = int(architecture.removeprefix("sm_"))
    ptx_flags = f"-gencode arch=compute_{number},code=compute_{number}"
    if not facts.fat_binaries:
        return  # a program without device code of its own may still load some
    if facts.runtime is None:
        raise RefusedError(
            "the program carries its own copy of the CUDA runtime (nvcc's default), which cannot be "
            "replaced: build with -cudart shared"
        )
    if facts.runtime != LIBRARY:
        raise RefusedError(f"the program asks for {facts.runtime}; the CPU device takes CUDA 13 ({LIBRARY})")
    found = images(facts.fat_binaries)
    ptx = sorted({image.architecture for image in found if image.ptx})
    if not ptx and facts.relocatable:
        raise RefusedError(
            "the program holds relocatable device code, linked to machine code without PTX: build without "
            f"-rdc=true (-dc) and with {ptx_flags}"
        )
    if not ptx:
        raise RefusedError(f"the program holds machine code only, no PTX: build with {ptx_flags}")
    if ptx[0] > number:
        names = ", ".join(f"compute_{one}" for one in ptx)
        raise RefusedError(
            f"the program has PTX for {names} only, which {architecture} cannot run: build with {ptx_flags}"
        )
    if all(image.compression == "lz4" for image in found if image.ptx):
        raise RefusedError(
            "the program's PTX is compressed with --compress-mode=speed: build with --no-compress"
        )


def compile_program(
    source: Path,
    architecture: str,
    flags: Sequence[str] = (),
    progress: Progress | None = None,
    toolchain: Toolchain | None = None,
) -> Path:
    """The binary of one ``.cu`` file, with PTX and machine code of ``architecture``, kept in the cache.

    Raises BuildError with nvcc's words, NoProgramError when there is no such file, ToolchainError without a
    compiler.
    """
    if not source.is_file():
        raise NoProgramError(f"{source}: there is no such file")
    tools = toolchain or find_toolchain()
    tools.require_build()
    assert tools.nvcc is not None and tools.gxx is not None
    number = architecture.removeprefix("sm_")
    ptx = f"arch=compute_{number},code=compute_{number}"
    # Machine code too: ptxas says how many registers a kernel takes, and refuses what no GPU would run.
    both = f"arch=compute_{number},code=[compute_{number},sm_{number}]"

    compiler = (tools.nvcc, "-std=c++17", "-lineinfo", "--no-compress", "-ccbin", tools.gxx)
    places = (*flags, "-I", source.absolute().parent, *tools.include_flags())
    with compile_folder() as folder:
        named = plain_source(source.absolute(), folder)
        read = (*compiler, "-gencode", ptx, *places, named)
        texts = preprocessed([read], folder, tools, source.name)
        command: Command = (
            *(*compiler, "-gencode", both, *places, named),
            *("-o", "program", *tools.link_flags()),
        )

        def build(entry: Path) -> None:
            if progress is not None:
                progress(f"{source.name}: compiling for {architecture}")
            run_compiler(command, folder, tools, source.name)
            shutil.copy(folder / "program", entry / "program")

        entry, _ = cached("program", digest([*texts, *map(str, command), tools.identity]), build)
    return entry / "program"


def _located(name: str, environment: Mapping[str, str]) -> Path:
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        reason = "is not executable" if Path(name).exists() else "there is no such program"
        raise NoProgramError(f"{name}: {reason}")
    return Path(found)

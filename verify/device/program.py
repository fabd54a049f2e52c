"""Runs any CUDA program on the CPU device.

The program is started unchanged, with the suite's ``libcudart.so.13`` before the real one on the loader's
path; each process writes its report as a JSON file. The program's output is not touched. Used by the device
interface, and by :mod:`verify.check.program`, which judges the reports.
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
from verify.device.interface import PROGRAM_TOOLS
from verify.device.machine_report import MachineReport, merge_reports, read_report
from verify.device.program_log import begin_log
from verify.device.watched_program import NoProgramError, ProgramEnd, run_watched
from verify.system.exit_code import ExitCode
from verify.system.progress import Progress
from verify.toolchain.cache import cached, digest
from verify.toolchain.compile import (
    BuildError,
    Command,
    compile_folder,
    plain_source,
    preprocessed,
    run_compiler,
)
from verify.toolchain.machine_build import LIBRARY, machine_library
from verify.toolchain.toolchain import Toolchain, find_toolchain

ARCHITECTURES = ("sm_80", "sm_90", "sm_90a")
"""What the CPU device can be; sm_90a is sm_90 for code that is compiled for it alone (``setmaxnreg``)."""


@dataclass(frozen=True)
class ProgramOptions:
    """What to check and how, with compute-sanitizer's names where the meaning is the same.

    tools: of memcheck, initcheck, racecheck, synccheck; if empty, the program only runs. seed: of every
    schedule choice. strict: warnings count as findings. print_limit: number of findings printed, 0 for all.
    launch_timeout: seconds for one kernel, 0 for no limit. kernel_name: report only kernels whose name
    contains it. threads: host cores to use, 0 for all; they never change a result. memory: bytes of device
    memory, 0 for the architecture's. log_file: the text report goes there instead of to standard error.
    checks: settings of individual checks (``row_bytes``). report_api_errors: failed runtime calls are
    findings. timing: a file that gets one line per launch, to measure the machine.
    """

    tools: tuple[str, ...] = PROGRAM_TOOLS
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
    """The program cannot run on the CPU device; one line that says how to fix it."""


@dataclass(frozen=True)
class ProgramRun:
    """The result of running a program.

    report: of all its processes, None if there is none. cut_off: a process used the runtime but ended before
    it could write its report.
    """

    end: ProgramEnd
    report: MachineReport | None
    cut_off: bool


class AskedToEndError(Exception):
    """A signal is terminating verify while the program runs, so its results are not needed."""


def run_on_machine(
    argv: Sequence[str],
    name: str,
    options: ProgramOptions,
    environment: Mapping[str, str],
    stdout: int | None = None,
    stderr: int | None = None,
    progress: Progress | None = None,
) -> ProgramRun:
    """Run a program with its arguments on the machine. name: its name in the log.

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
            raise AskedToEndError("verify was asked to stop")
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

    folder: where each of its processes writes its report, ``PID.json``. The library's folder comes first on
    LD_LIBRARY_PATH; for a program with DT_RPATH, which takes precedence, the library is also preloaded.
    """
    unpacked = unpack(facts.fat_binaries) if facts is not None else None
    lines = {
        "program": name,
        "arch": options.architecture.removesuffix("a"),
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
    escaped = {key: str(value).replace("\\", "\\\\").replace("\n", "\\n") for key, value in lines.items()}
    text = "\n".join(f"{key}={value}" for key, value in escaped.items() if value)
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
    """Raise RefusedError, with the flags that fix it, for a program that the CPU device cannot run."""
    name = architecture.removeprefix("sm_")
    number = int(name.removesuffix("a"))
    ptx_flags = f"-gencode arch=compute_{name},code=compute_{name}"
    if not facts.fat_binaries:
        return  # a program without device code of its own may still load modules
    if facts.runtime is None:
        raise RefusedError(
            "the program carries its own copy of the CUDA runtime (nvcc's default), which cannot be "
            "replaced: build with -cudart shared"
        )
    if facts.runtime != LIBRARY:
        raise RefusedError(f"the program needs {facts.runtime}; the CPU device supports CUDA 13 ({LIBRARY})")
    found = images(facts.fat_binaries)
    ptx = sorted({image.architecture for image in found if image.ptx})
    if not ptx and facts.relocatable:
        raise RefusedError(
            "the program has relocatable device code, linked to machine code without PTX: build without "
            f"-rdc=true (-dc) and with {ptx_flags}"
        )
    if not ptx:
        raise RefusedError(f"the program has only machine code, no PTX: build with {ptx_flags}")
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
    """Compile one ``.cu`` file to PTX and machine code of ``architecture``; the binary is cached.

    Raises BuildError with nvcc's output, NoProgramError if the file does not exist, ToolchainError if there
    is no compiler.
    """
    if not source.is_file():
        raise NoProgramError(f"{source}: no such file")
    tools = toolchain or find_toolchain()
    tools.require_build()
    assert tools.nvcc is not None and tools.gxx is not None
    number = architecture.removeprefix("sm_")
    ptx = f"arch=compute_{number},code=compute_{number}"
    # Machine code too: ptxas determines a kernel's registers, and rejects what no GPU could run.
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
            try:
                run_compiler(command, folder, tools, source.name)
            except BuildError as error:
                if architecture != "sm_90" or "not supported on .target 'sm_90'" not in str(error):
                    raise
                raise BuildError(f"{error}\nsm_90a supports more instructions: give --arch sm_90a") from None
            shutil.copy(folder / "program", entry / "program")

        entry, _ = cached("program", digest([*texts, *map(str, command), tools.identity]), build)
    return entry / "program"


def _located(name: str, environment: Mapping[str, str]) -> Path:
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        reason = "is not executable" if Path(name).exists() else "no such program"
        raise NoProgramError(f"{name}: {reason}")
    return Path(found)

"""Runs any CUDA program on the CPU device and says what the checks found.

The program is started unchanged, with the suite's ``libcudart.so.13`` before the real one on its loader's
path; the report comes back as one JSON file a process. What the program prints stays the program's. Used by
``verify sanitize --device cpu -- ./program``, by the device interface, and on its own as
``python -m verify.device.program``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from verify.device.elf import ProgramFile, read_program
from verify.device.fat_binary import FatBinaryError, images, unpack
from verify.device.interface import TOOLS
from verify.device.machine_report import MachineReport, merge_reports, read_report
from verify.device.program_log import LogError, begin_log
from verify.device.watched_program import NoProgramError, ProgramEnd, run_watched, signal_name
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
from verify.toolchain.machine_build import LIBRARY, MachineBuildError, machine_library
from verify.toolchain.toolchain import Toolchain, ToolchainError, find_toolchain

ARCHITECTURES = ("sm_80", "sm_90")
CUT_SHORT = "cut short"


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


@dataclass(frozen=True)
class ProgramReport:
    """How a program ended and what was found in it.

    exit_code: what the command should end with. program_code: the program's own status, negative for a
    signal. reason: why there is no verdict, one line, empty when there is one. report: None when the program
    left none. tools: what was to be checked. notes: what the reader must know besides.
    """

    command: tuple[str, ...]
    exit_code: int
    program_code: int | None
    reason: str = ""
    report: MachineReport | None = None
    tools: tuple[str, ...] = TOOLS
    notes: tuple[str, ...] = ()


class RefusedError(Exception):
    """The program cannot run on the CPU device; one line that says what mends it."""


def run_program(
    command: Sequence[str],
    options: ProgramOptions | None = None,
    *,
    nvcc_flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    progress: Progress | None = None,
) -> ProgramReport:
    """Run a program, or compile and run a ``.cu`` file, with its arguments.

    nvcc_flags: for a ``.cu`` only. environment: the program's, by default this process's. stdout, stderr: as
    subprocess takes them. Exit code: ``error_exitcode`` with findings, 3 when nothing was verified, else the
    program's own (128 + n for signal n).
    """
    chosen = options or ProgramOptions()
    argv, named = tuple(command), command[0]
    base = dict(os.environ if environment is None else environment)
    try:
        if argv[0].endswith(".cu"):
            argv = (str(compile_program(Path(argv[0]), chosen.architecture, nvcc_flags, progress)), *argv[1:])
        program = _located(argv[0], base)
        facts = read_program(program)
        if facts is not None:
            check_program(facts, chosen.architecture)
        library = machine_library(progress)
        with tempfile.TemporaryDirectory(prefix="verify-") as folder:
            prepared = machine_environment(library, chosen, Path(folder), base, facts, argv[0])
            if chosen.log_file is not None:
                begin_log(chosen.log_file, named)
            command = (str(program.absolute()), *argv[1:])
            end = run_watched(command, argv[0], prepared, Path(folder), stdout, stderr)
            if not Path(folder).is_dir():  # a signal ends verify, and this thread is not there yet
                return ProgramReport(argv, ExitCode.NOT_VERIFIED, None, "verify was asked to end")
            report = merge_reports([read_report(file) for file in sorted(Path(folder).glob("*.json"))])
            cut_off = any(Path(folder).glob("*.partial"))
    except (NoProgramError, LogError) as error:
        return ProgramReport(argv, ExitCode.USAGE, None, str(error))
    except (RefusedError, MachineBuildError, BuildError, ToolchainError, FatBinaryError) as error:
        return ProgramReport(argv, ExitCode.NOT_VERIFIED, None, str(error))
    judged = replace(_judged(argv, end, report, chosen, cut_off), notes=end.notes)
    # A program that takes an interrupt as a wish, and ends well, is judged as any other.
    if end.interrupts and end.code < 0 and not (report is not None and report.errors):
        return replace(judged, exit_code=128 + signal.SIGINT, reason="interrupted")
    return judged


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
        "summary": 0,
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


def _judged(
    argv: tuple[str, ...],
    end: ProgramEnd,
    report: MachineReport | None,
    options: ProgramOptions,
    cut_off: bool = False,
) -> ProgramReport:
    """The verdict. cut_off: a process used the runtime and ended before it could write its report."""
    code = end.code
    own = code if code >= 0 else 128 - code
    if not options.tools:
        # Nothing was to be checked, so nothing is found: the program is what counts.
        refusal = report.refusal if report is not None else ""
        ends_with = ExitCode.NOT_VERIFIED if refusal else own
        return ProgramReport(argv, ends_with, code, refusal, report, options.tools)
    reason = _not_verified(end, report, options, cut_off)
    if report is not None and report.refusal:
        return ProgramReport(argv, ExitCode.NOT_VERIFIED, code, reason, report, options.tools)
    if report is not None and (report.errors or (options.strict and report.warnings)):
        return ProgramReport(argv, options.error_exitcode, code, reason, report, options.tools)
    # A program that was ended, and one that failed, keep the status that says so.
    if not reason or (own and reason.startswith(CUT_SHORT)):
        return ProgramReport(argv, own, code, reason, report, options.tools)
    return ProgramReport(argv, ExitCode.NOT_VERIFIED, code, reason, report, options.tools)


def _not_verified(
    end: ProgramEnd, report: MachineReport | None, options: ProgramOptions, cut_off: bool
) -> str:
    """Why the findings, or their absence, are not the whole truth; empty when they are."""
    if report is not None and report.refusal:
        return report.refusal
    if end.escaped:
        return end.escaped
    if report is None:
        if end.code < 0:
            return f"the program died before its report ({signal_name(-end.code)})"
        if cut_off:
            return "the program ended by _exit, or was killed, before its report"
        return "the program never used the CUDA runtime"
    if report.cut_short or end.code < 0:
        return f"{CUT_SHORT} by {report.cut_short or signal_name(-end.code)}"
    if cut_off:
        return "a process of the program ended by _exit, by exec, or was killed, before its report"
    if report.launches == 0:
        return "no kernel ran, so nothing was verified"
    if options.kernel_name and report.named_launches == 0:
        ran = ", ".join(report.other_kernels)
        return f"--kernel-name {options.kernel_name}: no kernel that ran has this in its name ({ran})"
    if report.log_lost:
        return f"--log-file {options.log_file}: {report.log_lost}"
    return ""


def split_nvcc_flags(text: str) -> tuple[str, ...]:
    """Flags as a shell would split them."""
    return tuple(shlex.split(text))


def with_tools(options: ProgramOptions, names: Sequence[str]) -> ProgramOptions:
    """Options with the tools that ``--tool`` named: ``all``, ``none``, or some. Raises ValueError."""
    for name in names:
        if name not in (*TOOLS, "all", "none", "traffic"):
            raise ValueError(f"--tool {name}: is not one of {', '.join(TOOLS)}, all, none")
    tools = TOOLS if "all" in names or not names else tuple(t for t in (*TOOLS, "traffic") if t in names)
    return replace(options, tools=tools)


if __name__ == "__main__":
    from verify.cli.program import main

    sys.exit(main())

"""Judges any CUDA program on the CPU device: the exit code is the verdict on the checks' reports.

Used by ``verify sanitize --device cpu -- ./program``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from verify.device.fat_binary import FatBinaryError
from verify.device.interface import PROGRAM_TOOLS
from verify.device.machine_report import MachineReport
from verify.device.program import (
    AskedToEndError,
    ProgramOptions,
    ProgramRun,
    RefusedError,
    compile_program,
    run_on_machine,
)
from verify.device.program_log import LogError
from verify.device.watched_program import NoProgramError, signal_name
from verify.system.exit_code import ExitCode
from verify.system.progress import Progress
from verify.toolchain.compile import BuildError
from verify.toolchain.machine_sources import MachineBuildError
from verify.toolchain.toolchain import ToolchainError

CUT_SHORT = "cut short"


@dataclass(frozen=True)
class ProgramReport:
    """How a program ended, and the findings in it.

    exit_code: for the command to exit with. program_code: the program's own status, negative for a signal.
    reason: one line that says why there is no verdict, empty if there is one. report: None if the program
    wrote none. tools: the requested checks. notes: further lines for the reader.
    """

    command: tuple[str, ...]
    exit_code: int
    program_code: int | None
    reason: str = ""
    report: MachineReport | None = None
    tools: tuple[str, ...] = PROGRAM_TOOLS
    notes: tuple[str, ...] = ()


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

    nvcc_flags: only for a ``.cu`` file. environment: the program's, by default this process's. stdout,
    stderr: as for subprocess. Exit code: ``error_exitcode`` with findings, 3 if nothing was verified, else
    the program's own (128 + n for signal n).
    """
    chosen = options or ProgramOptions()
    argv, base = tuple(command), dict(os.environ if environment is None else environment)
    try:
        if argv[0].endswith(".cu"):
            argv = (str(compile_program(Path(argv[0]), chosen.architecture, nvcc_flags, progress)), *argv[1:])
        done = run_on_machine(argv, command[0], chosen, base, stdout, stderr, progress)
    except (NoProgramError, LogError) as error:
        return ProgramReport(argv, ExitCode.USAGE, None, str(error))
    except (
        AskedToEndError,
        RefusedError,
        MachineBuildError,
        BuildError,
        ToolchainError,
        FatBinaryError,
    ) as error:
        return ProgramReport(argv, ExitCode.NOT_VERIFIED, None, str(error))
    judged = replace(_judged(argv, done, chosen), notes=done.end.notes)
    # A program that handles the interrupt and exits normally is judged like any other.
    if done.end.interrupts and done.end.code < 0 and not (done.report is not None and done.report.errors):
        return replace(judged, exit_code=128 + signal.SIGINT, reason="interrupted")
    return judged


def _judged(argv: tuple[str, ...], done: ProgramRun, options: ProgramOptions) -> ProgramReport:
    """The verdict."""
    code, report = done.end.code, done.report
    own = code if code >= 0 else 128 - code
    if not options.tools:
        # No check was requested, so only the program's own status counts.
        refusal = report.refusal if report is not None else ""
        ends_with = ExitCode.NOT_VERIFIED if refusal else own
        return ProgramReport(argv, ends_with, code, refusal, report, options.tools)
    reason = _not_verified(done, options)
    if report is not None and report.refusal:
        return ProgramReport(argv, ExitCode.NOT_VERIFIED, code, reason, report, options.tools)
    if report is not None and (report.errors or (options.strict and report.warnings)):
        return ProgramReport(argv, options.error_exitcode, code, reason, report, options.tools)
    # A program that was killed, or that failed, keeps the status that shows it.
    if not reason or (own and reason.startswith(CUT_SHORT)):
        return ProgramReport(argv, own, code, reason, report, options.tools)
    return ProgramReport(argv, ExitCode.NOT_VERIFIED, code, reason, report, options.tools)


def _not_verified(done: ProgramRun, options: ProgramOptions) -> str:
    """Why the findings, or their absence, may be incomplete; empty if they are complete."""
    end, report, cut_off = done.end, done.report, done.cut_off
    if report is not None and report.refusal:
        return report.refusal
    if end.escaped:
        return end.escaped
    if report is None:
        if end.code < 0:
            return f"the program crashed before its report ({signal_name(-end.code)})"
        if cut_off:
            return "the program called _exit, or was killed, before its report"
        return "the program never used the CUDA runtime"
    if report.cut_short or end.code < 0:
        return f"{CUT_SHORT} by {report.cut_short or signal_name(-end.code)}"
    if cut_off:
        return "a process of the program called _exit or exec, or was killed, before its report"
    if report.launches == 0:
        return "no kernel ran, so nothing was verified"
    if options.kernel_name and report.named_launches == 0:
        ran = ", ".join(report.other_kernels)
        return f"--kernel-name {options.kernel_name}: no kernel that ran matches this name ({ran})"
    if report.log_lost:
        return f"--log-file {options.log_file}: {report.log_lost}"
    return ""

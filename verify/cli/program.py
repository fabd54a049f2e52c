"""The command line for any program: ``verify sanitize [options] -- ./program arguments``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from verify.check.program import ProgramReport, run_program
from verify.device.interface import MACHINE_CHECKS, PROGRAM_TOOLS
from verify.device.program import ARCHITECTURES, ProgramOptions
from verify.device.program_log import BAR, LogError, end_log, unwritable
from verify.system.exit_code import ExitCode
from verify.system.printable import printable

_EPILOG = (
    "Exit codes: 0 clean, --error-exitcode (1) with findings, 2 usage, 3 when nothing could be verified, "
    "and the program's own otherwise."
)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 up, is {text!r}")
    return int(text)


def _exit_code(text: str) -> int:
    if not text.isdecimal() or int(text) > 255:
        raise argparse.ArgumentTypeError(f"must be an exit code from 0 to 255, is {text!r}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The options, each with the sentence that ``--help`` prints."""
    result = argparse.ArgumentParser(
        prog="verify sanitize",
        usage="%(prog)s [options] -- PROGRAM|FILE.cu [ARGUMENT]...",
        description="Run a CUDA program on the CPU device, every access checked. A .cu is compiled first.",
        epilog=_EPILOG,
    )
    add = result.add_argument
    add("--tool", action="append", metavar="|".join((*PROGRAM_TOOLS, "all", "none")), help="(repeatable)")
    add("--device", choices=("cpu",), default="cpu", help="under compute-sanitizer, call it directly")
    add("--arch", choices=ARCHITECTURES, default="sm_90", help="the architecture of the CPU device")
    add("--seed", type=_count, default=0, help="of every schedule choice; the report includes it")
    add("--strict", action="store_true", help="warnings count as findings")
    add("--log-file", type=Path, metavar="FILE", help="the report goes there, not to standard error")
    add("--print-limit", type=_count, default=100, metavar="N", help="print at most N findings, 0 for all")
    add(
        "--error-exitcode",
        type=_exit_code,
        default=ExitCode.FINDINGS,
        metavar="N",
        help="exit code with findings",
    )
    add("--kernel-name", default="", metavar="TEXT", help="report only kernels whose name contains TEXT")
    add("--launch-timeout", type=_count, default=0, metavar="SECONDS", help="for one kernel, 0 for none")
    add(
        "--report-api-errors",
        choices=("explicit", "no"),
        default="explicit",
        help="are failed calls findings?",
    )
    add("--threads", type=_count, default=0, metavar="N", help="cores to use, 0 for all")
    add("--nvcc-flags", default="", metavar="FLAGS", help="for compiling a .cu file")
    add("--json", type=Path, metavar="FILE", help="write the report as JSON too")
    add("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    read = parser()
    given = read.parse_args(arguments)
    command = given.program[1:] if given.program[:1] == ["--"] else given.program
    if not command:
        read.error("name a program after --")
    options = ProgramOptions(
        architecture=given.arch,
        seed=given.seed,
        strict=given.strict,
        print_limit=given.print_limit,
        launch_timeout=given.launch_timeout,
        kernel_name=given.kernel_name,
        threads=given.threads,
        log_file=given.log_file,
        error_exitcode=given.error_exitcode,
        report_api_errors=given.report_api_errors != "no",
    )
    try:
        options = with_tools(options, given.tool or ["all"])
    except ValueError as error:
        read.error(str(error))
    for name, file in (("--log-file", given.log_file), ("--json", given.json)):
        if file is not None and (problem := unwritable(file)):
            read.error(f"{name} {file}: {problem}")
    result = run_program(command, options, nvcc_flags=split_nvcc_flags(given.nvcc_flags))
    return conclude(result, given.json, given.log_file)


def conclude(result: ProgramReport, json_file: Path | None = None, log_file: Path | None = None) -> int:
    """Write the last line of the report and the JSON file, and return the exit code."""
    code = result.exit_code
    line = f"\n{BAR}".join([*(f"Note: {printable(note)}" for note in result.notes), summary(result)])
    try:
        if log_file is not None and result.program_code is not None:
            end_log(log_file, line)
        if json_file is not None and result.report is not None:
            json_file.write_text(result.report.text)
    except (LogError, OSError) as error:
        problem = f"--json {json_file}: {error.strerror}" if isinstance(error, OSError) else str(error)
        print(f"{BAR}{printable(problem)}", file=sys.stderr)
        code = code or ExitCode.NOT_VERIFIED
    if log_file is None or result.reason:
        print(f"{BAR}{line}", file=sys.stderr)
    return code


def summary(result: ProgramReport) -> str:
    """The summary line of the log; it counts errors if there is a verdict, or if there are any."""
    report, reason = result.report, printable(result.reason)
    if report is not None and result.tools and (report.errors or not reason):
        counted = [_counted(report.errors, "error"), _counted(report.warnings, "warning")]
        found = ", ".join(counted if report.warnings else counted[:1])
        return f"ERROR SUMMARY: {found}" + (f", and not verified: {reason}" if reason else "")
    if not reason:
        return "NOT CHECKED: --tool none only runs the program"
    if report is not None and report.launches and not report.refusal:
        return f"NOT VERIFIED: {reason}; nothing was found before that"
    return f"NOTHING VERIFIED: {reason}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def split_nvcc_flags(text: str) -> tuple[str, ...]:
    """Flags as a shell would split them."""
    return tuple(shlex.split(text))


def with_tools(options: ProgramOptions, names: Sequence[str]) -> ProgramOptions:
    """Options with the tools that ``--tool`` named: ``all``, ``none``, or some. Raises ValueError."""
    for name in names:
        if name not in (*MACHINE_CHECKS, "all", "none"):
            raise ValueError(f"--tool {name}: is not one of {', '.join(PROGRAM_TOOLS)}, all, none")
    if "none" in names and set(names) != {"none"}:
        raise ValueError("--tool none: only runs the program, so no other --tool can be given with it")
    every = "all" in names or not names
    tools = PROGRAM_TOOLS if every else tuple(check for check in MACHINE_CHECKS if check in names)
    return replace(options, tools=tools)

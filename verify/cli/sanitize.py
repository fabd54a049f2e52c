"""``verify sanitize``: the checking tools on the suite's kernels, or on any program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from verify.cli import options
from verify.cli.console import fail, finish, out, progress_line
from verify.device.interface import TOOLS
from verify.device.select import NoDevice, select_device
from verify.gate.selection import Selection
from verify.gate.side_by_side import run_kernels
from verify.report.report import as_json
from verify.report.terminal import print_report

_NAMES = (*TOOLS, "all")


def sanitize(
    kernels: options.Kernels = None,
    tool: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="|".join(_NAMES), help="Which tool (repeatable).", show_default=False),
    ] = None,
    expression: options.Expression = None,
    device: options.DeviceChoice = "auto",
    strict: options.Strict = False,
    arch: options.Architecture = None,
    seeds: options.Seeds = None,
    as_json_text: options.Json = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    findings: options.KeepFolder = Path("verify-findings"),
) -> None:
    """Run memcheck, initcheck, racecheck or synccheck on kernels.

    [bold]verify sanitize --tool racecheck flash_decode -k wrap[/] runs one tool on three fixtures.

    Any other program, or a .cu file with a main, runs on the CPU device:
    [bold]verify sanitize --tool racecheck -- ./program arguments[/]. The options of this form are listed by
    [bold]verify sanitize --help --[/].
    """
    requested = tool or ["all"]
    for name in requested:
        if name not in _NAMES:
            fail(f"--tool {name}: is not one of {', '.join(_NAMES)}")
    options.require_folder(findings)
    tools = tuple(t for t in TOOLS if "all" in requested or t in requested)
    choice = select_device(device)
    chosen = None if isinstance(choice, NoDevice) else choice
    missing = choice.reason if isinstance(choice, NoDevice) else ""
    selection = Selection(
        options.contracts(kernels),
        options.one_expression(expression),
        (),
        tools,
        strict,
        arch,
        findings,
        seeds=options.schedules(seeds, chosen),
    )
    with progress_line(quiet) as progress:
        report = run_kernels(selection, chosen, missing, progress)
    if as_json_text:
        out.print_json(json.dumps(as_json(report)))
    else:
        print_report(report, out, verbose)
    finish(report.exit_code)

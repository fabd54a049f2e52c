"""``verify run``: the whole gate."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from verify.check.specs import usual_checks
from verify.cli import options
from verify.cli.console import fail, finish, out, progress_line
from verify.device.select import NoDevice, select_device
from verify.gate.selection import Selection, select_checks
from verify.gate.side_by_side import run_kernels
from verify.report.report import as_json
from verify.report.terminal import print_report
from verify.system.exit_code import ExitCode


def run(
    kernels: options.Kernels = None,
    expression: options.Expression = None,
    device: options.DeviceChoice = "auto",
    check: options.Checks = None,
    strict: options.Strict = False,
    arch: options.Architecture = None,
    seeds: options.Seeds = None,
    as_json_text: options.Json = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    ladder: Annotated[
        bool,
        typer.Option("--ladder", help="Climb the whole oracle ladder, including op parity and token parity."),
    ] = False,
    findings: options.KeepFolder = Path("verify-findings"),
    allow_not_run: Annotated[
        bool,
        typer.Option("--allow-not-run", help="Exit 0 if all that ran is clean, though not all ran."),
    ] = False,
) -> None:
    """Prove kernels on their fixtures: a table, the findings, one verdict.

    [bold]verify run[/] proves every kernel of the suite, [bold]verify run flash_decode -k wrap[/] three
    fixtures of one, [bold]verify run mine/kernel.cu[/] your own, with its contract beside it.
    """
    began = time.monotonic()  # includes the build of the CPU device
    options.require_folder(findings)
    contracts = options.contracts(kernels)
    choice = select_device(device)
    missing = choice.reason if isinstance(choice, NoDevice) else ""
    chosen = None if isinstance(choice, NoDevice) else choice
    checks = select_checks(check or (), usual_checks(chosen))
    selection = Selection(
        contracts,
        options.one_expression(expression),
        (),
        checks,
        strict,
        arch,
        findings,
        ladder,
        options.schedules(seeds, chosen),
    )
    with progress_line(quiet) as progress:
        report = run_kernels(selection, chosen, missing, progress)
    report = replace(report, seconds=time.monotonic() - began)
    if as_json_text:
        out.print_json(json.dumps(as_json(report)))
    else:
        print_report(report, out, verbose)
    if allow_not_run and report.exit_code == ExitCode.NOT_VERIFIED and report.only_not_run:
        finish(ExitCode.CLEAN)
    if not contracts:
        fail("nothing to verify")
    finish(report.exit_code)

"""``verify mutate``: plants faults and counts those that the checks report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from verify.cli import options
from verify.cli.console import fail, finish, out, progress_line
from verify.contract.discovery import source_file
from verify.device.select import NoDevice, select_device
from verify.mutation.campaign import Options, UncleanError, run_campaign, usual_jobs
from verify.mutation.edit import diff
from verify.mutation.journal import Journal
from verify.mutation.kill_matrix import KillMatrix, Score
from verify.mutation.mutant import Fate, Mutant
from verify.mutation.page import page
from verify.mutation.wanted import mutants_wanted
from verify.system.exit_code import ExitCode


def mutate(
    kernels: options.Kernels = None,
    catalogue: Annotated[bool, typer.Option("--catalogue", help="Only mutants of the catalogue.")] = False,
    operators: Annotated[bool, typer.Option("--operators", help="Only mutants of the operators.")] = False,
    expression: Annotated[
        list[str] | None,
        typer.Option(
            "-k",
            metavar="EXPR",
            help="Mutants to run: a name, or words of kernel, name and kind joined by and, or, not.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            "--sample", metavar="N", min=0, help="At most N mutants, spread over kinds and operators."
        ),
    ] = 0,
    device: options.DeviceChoice = "auto",
    arch: options.Architecture = None,
    every: Annotated[
        bool,
        typer.Option("--all-killers", help="Run all checks on each mutant, not only until one reports it."),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=0, help="Processes. 0: one a core.")] = 0,
    results: Annotated[
        Path,
        typer.Option(
            "--results", metavar="DIR", help="Where results are saved, so that a campaign can continue."
        ),
    ] = Path("verify-mutants"),
    only_list: Annotated[bool, typer.Option("--list", help="List the mutants and run none.")] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="FILE",
            help="Write the kill matrix to this file, as Markdown.",
            show_default=False,
        ),
    ] = None,
    as_json_text: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Plant faults in kernels, one at a time, and count those that a full run reports: the kill matrix.

    [bold]verify mutate mine/kernel.cu[/] runs the operators' mutants of your kernel, and those of a catalogue
    in [bold]mutants/[/] beside it. Results are saved as they come; an interrupted campaign continues.
    """
    contracts = options.contracts(kernels)
    both = catalogue == operators
    chosen = mutants_wanted(
        contracts, both or catalogue, both or operators, options.one_expression(expression), sample
    )
    if only_list:
        _print_list(chosen, as_json_text)
        finish(ExitCode.CLEAN)
    selected = select_device(device)
    if isinstance(selected, NoDevice):
        fail(f"no device: {selected.reason}", ExitCode.NOT_VERIFIED)
    try:
        journal = Journal(results)
    except OSError as error:
        fail(f"--results {results}: {error.strerror}")
    asked = Options(arch, every, jobs or usual_jobs())
    with progress_line(quiet) as progress:
        try:
            campaign = run_campaign(contracts, chosen, selected, asked, journal, progress)
        except UncleanError as error:
            fail(str(error), ExitCode.NOT_VERIFIED)
    matrix = KillMatrix(campaign, selected.name, every)
    sources = {c.name: source_file(c).read_text(encoding="utf-8") for c in contracts}
    if markdown is not None:
        markdown.write_text(
            page(matrix, sources, _command(kernels, catalogue, operators, every)), encoding="utf-8"
        )
    if as_json_text:
        out.print_json(json.dumps(matrix.as_json()))
    else:
        _print_matrix(matrix, sources)
    finish(matrix.exit_code)


def _command(kernels: list[str] | None, catalogue: bool, operators: bool, every: bool) -> str:
    flags = [("--catalogue", catalogue), ("--operators", operators), ("--all-killers", every)]
    return " ".join(["verify mutate", *(kernels or []), *(flag for flag, given in flags if given)])


def _print_list(mutants: list[Mutant], as_json_text: bool) -> None:
    if as_json_text:
        rows = [
            {"kernel": m.kernel, "mutant": m.name, "kind": str(m.kind), "line": m.line, "fault": m.fault}
            for m in mutants
        ]
        out.print_json(json.dumps(rows))
        return
    for mutant in mutants:
        out.print(f"{mutant.kernel}:{mutant.line}  {mutant.name}  [{mutant.kind}]  {mutant.fault}")


def _print_matrix(matrix: KillMatrix, sources: Mapping[str, str]) -> None:
    _scores("kind", matrix.by_kind)
    table = _table("check", "first", *(("all", "only") if matrix.every else ()), "expected")
    for row in matrix.by_check:
        more = (str(row.every), str(row.alone)) if matrix.every else ()
        table.add_row(row.check, str(row.first), *more, str(row.expected))
    out.print(table)
    _scores("rule of comparison", matrix.by_rule)
    if len(matrix.by_kernel) > 1:
        _scores("kernel", matrix.by_kernel)
    for fate in (Fate.UNDECIDED, Fate.TIMED_OUT, Fate.EXPLAINED, Fate.NOT_VISIBLE, Fate.NOT_COMPILED):
        for mutant, result in matrix.of(fate):
            out.print(f"{fate}: {mutant.kernel} {mutant.name}: {result.reason or mutant.fault}")
    for mutant, _ in matrix.of(Fate.EQUIVALENT):
        out.print(f"equivalent: {mutant.kernel} {mutant.name}: the same device code and host code")
    for mutant, result in matrix.weak:
        out.print(f"killed, but not by {', '.join(result.silent)}: {mutant.kernel} {mutant.name}")
    for mutant, _ in matrix.of(Fate.SURVIVED):
        out.print(f"survived: {mutant.kernel} {mutant.name}: {mutant.fault}", style="bold red")
        out.print(diff(sources[mutant.kernel], mutant.source, f"{mutant.kernel}.cu"))
    ends = ", ".join(f"{count} {fate}" for fate, count in matrix.fates.items())
    out.print(f"of {len(matrix.campaign.results)} mutants: {ends}")
    known = f", {matrix.campaign.known} of them known before" if matrix.campaign.known else ""
    out.print(f"{matrix.total} faults killed on {matrix.device} in {matrix.campaign.seconds:.0f} s{known}")


def _table(*columns: str) -> Table:
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _scores(name: str, scores: list[Score]) -> None:
    if scores:
        table = _table(name, "killed", "of")
        for score in scores:
            table.add_row(score.name, str(score.killed), str(score.of))
        out.print(table)

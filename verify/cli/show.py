"""``verify show``: one fixture, with a drawing of its live band."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from verify.cli import options
from verify.cli.console import out, progress_line
from verify.contract.discovery import find_contracts, fixture_file
from verify.contract.model import Case, Contract
from verify.fixture.cases import build_cases
from verify.fixture.schema import load_fixtures
from verify.gate.prepare import PLANNED_MULTIPROCESSORS, prepare
from verify.gate.selection import SelectionError, some_of
from verify.oracle.visibility import REQUIRED, weakest_position
from verify.report.band import LEGEND, draw


def show(
    fixture: Annotated[str, typer.Argument(help="A fixture's name, or kernel/fixture.")],
    kernels: Annotated[
        list[str] | None, typer.Option("--kernel", help="Search this kernel or contract file.")
    ] = None,
    arch: options.Architecture = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Draw a fixture's band: live and dead slots, the wrap, split and tile edges; and print the plan."""
    wanted_kernel, _, name = fixture.rpartition("/")
    contract = _contract_with(name, kernels or ([wanted_kernel] if wanted_kernel else []))
    with progress_line(quiet) as progress:
        ready = prepare(
            contract, lambda _: (name,), arch or contract.architectures[-1], PLANNED_MULTIPROCESSORS, progress
        )
    resolved = ready.fixtures[0]
    case = next(iter(build_cases(contract, resolved)))
    if as_json:
        plain = {"kernel": contract.name, "fixture": name, "symbols": case.symbols, "plan": case.plan}
        out.print_json(json.dumps(plain, default=list))
        return
    out.print(Text.assemble((f"{contract.name}/{name}", "bold"), f": {resolved.fixture.pins}"))
    out.print("symbols  " + _named(case.symbols), highlight=False)
    if case.plan:
        out.print("plan     " + _named(case.plan), highlight=False)
    out.print("buffers  " + _buffers(case), highlight=False)
    if resolved.fixture.edge:
        out.print(f"edge     {resolved.fixture.edge}  (holds)", markup=False, highlight=False)
    for line in draw(case):
        out.print(line, markup=False, highlight=False)
    out.print(LEGEND, style="dim", markup=False, highlight=False)
    out.print(f"weakest  {_weakest(build_cases(contract, resolved))}", markup=False, highlight=False)


def _contract_with(name: str, kernels: list[str]) -> Contract:
    known: list[str] = []
    for contract in find_contracts(kernels, [Path.cwd()]):
        names = [f.name for f in load_fixtures(fixture_file(contract), contract)]
        if name in names:
            return contract
        known += [f"{contract.name}/{n}" for n in names]
    raise SelectionError(f"{name}: no such fixture (known: {some_of(known, name)})")


def _weakest(cases: tuple[Case, ...]) -> str:
    """The position at which a dropped or an added read would be least visible."""
    weakest = weakest_position(cases)
    if weakest is None:
        return "visibility is not available: the contract defines no effects"
    moved = (
        "changes a quantity that is compared bit for bit"
        if weakest.visibility == float("inf")
        else f"changes a quantity by {weakest.visibility:.3g} bounds ({REQUIRED:g} needed)"
    )
    where = f"row {weakest.row}, head {weakest.head}, position {weakest.position} {weakest.kind}"
    return f"{where}: {moved}, in profile {weakest.profile}"


def _named(values: object) -> str:
    assert isinstance(values, dict)
    return "  ".join(f"{k}={list(v) if isinstance(v, tuple) else v}" for k, v in values.items())


def _buffers(case: Case) -> str:
    parts = []
    for buffer in case.contract.buffers:
        extents = "x".join(map(str, case.shape(buffer)))
        what = f"{case.dtype(buffer)}[{extents}] {buffer.role}" if case.given(buffer.name) else "null"
        parts.append(f"{buffer.name} {what}")
    return ", ".join(parts)

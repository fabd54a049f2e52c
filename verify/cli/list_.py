"""``verify list``: kernels and fixtures, or the matrix of checks."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from verify.check.matrix import matrix
from verify.cli import options
from verify.cli.console import out
from verify.contract.discovery import fixture_file, source_file
from verify.contract.model import Contract
from verify.fixture.cases import profiles_of
from verify.fixture.schema import load_fixtures


def list_kernels(
    kernels: options.Kernels = None,
    show_matrix: Annotated[
        bool, typer.Option("--matrix", help="Which profile and fill runs under which check, and why.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List kernels with their fixtures and the fault that each pins; needs no compiler and no device."""
    if show_matrix:
        _print_matrix(options.contracts(kernels), as_json)
        return
    described = [_describe(c) for c in options.contracts(kernels)]
    if as_json:
        out.print_json(json.dumps(described))
        return
    for kernel in described:
        table = Table(
            title=f"{kernel['kernel']}  ({kernel['source']})",
            title_justify="left",
            pad_edge=False,
            box=SIMPLE_HEAD,
        )
        table.add_column("fixture", no_wrap=True)
        table.add_column("pins")
        for fixture in kernel["fixtures"]:
            table.add_row(fixture["name"], fixture["pins"])
        out.print(table)


def _describe(contract: Contract) -> dict[str, Any]:
    fixtures = load_fixtures(fixture_file(contract), contract)
    return {
        "kernel": contract.name,
        "source": source_file(contract).name,
        "symbols": {s.name: s.doc for s in contract.declared_symbols},
        "profiles": {p.name: p.pins for p in profiles_of(contract)},
        "fixtures": [{"name": f.name, "pins": f.pins} for f in fixtures],
    }


def _print_matrix(contracts: tuple[Contract, ...], as_json: bool) -> None:
    rows = matrix()
    profiles = {
        c.name: {p.name: {"pins": p.pins, "control path": p.control_path or i == 0}
                 for i, p in enumerate(profiles_of(c))}
        for c in contracts
    }  # fmt: skip
    if as_json:
        plain = {n: {"profiles": r.profiles, "fills": r.fills, "mode": r.mode, "reason": r.reason}
                 for n, r in rows.items()}  # fmt: skip
        out.print_json(json.dumps({"checks": plain, "profiles": profiles}))
        return
    table = Table(title="checks", title_justify="left", pad_edge=False, box=SIMPLE_HEAD)
    for column in ("check", "profiles", "fills", "mode", "why"):
        table.add_column(column)
    for name, row in rows.items():
        table.add_row(name, row.profiles, ", ".join(row.fills) or "none", row.mode, row.reason)
    out.print(table)
    for kernel, named in profiles.items():
        table = Table(title=f"profiles of {kernel}", title_justify="left", pad_edge=False, box=SIMPLE_HEAD)
        for column in ("profile", "under the tools", "pins"):
            table.add_column(column)
        for name, profile in named.items():
            table.add_row(name, "yes" if profile["control path"] else "", str(profile["pins"]))
        out.print(table)

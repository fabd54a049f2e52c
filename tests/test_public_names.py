"""What others build upon stays: exported names, entry points, commands, exit codes, the keys of JSON."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

import verify
from verify.cli.app import app
from verify.finding.finding import Finding, Outcome, Verdict
from verify.report.report import KernelReport, Report, as_json
from verify.system.exit_code import ExitCode

ROOT = Path(__file__).parents[1]


def test_the_exported_names_are_the_contract_api() -> None:
    """Fault: a name goes missing, or one is exported that is not part of the API."""
    assert verify.__all__ == [
        "Buffer", "Contract", "DtypeChoice", "Global", "Hypothesis", "Intermediate", "KernelOracle",
        "Launcher", "Plan", "Prediction", "Profile", "Refusal", "Symbol",
    ]  # fmt: skip
    for name in verify.__all__:
        assert getattr(verify, name).__name__ == name


def test_entry_points_name_what_is_there() -> None:
    """Fault: an installed command or plugin names a module that was moved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"verify": "verify.__main__:main"}
    assert callable(import_module("verify.__main__").main)
    assert project["entry-points"]["pytest11"] == {"verify.testing.plugin": "verify.testing.plugin"}
    assert callable(import_module("verify.testing.plugin").pytest_addoption)


def test_the_documented_path_of_tracked_arithmetic_stays() -> None:
    """Fault: every user's contract fails at its second import."""
    assert (
        "from verify.oracle import tracked as t"
        in (ROOT / "docs" / "tutorial" / "first_kernel.md").read_text()
    )
    tracked = import_module("verify.oracle.tracked")
    documented = "exact sqrt rsqrt exp exp2 log maximum where total dot round_result Tracked"
    for name in documented.split():
        assert callable(getattr(tracked, name)), name


def test_exit_codes_are_those_of_the_manual() -> None:
    """Fault: a CI job that acts on a code reads another verdict."""
    assert {code.name: int(code) for code in ExitCode} == {
        "CLEAN": 0,
        "FINDINGS": 1,
        "USAGE": 2,
        "NOT_VERIFIED": 3,
    }
    assert "Exit codes: 0 clean, 1 findings, 2 usage, 3 inconclusive or not run." in " ".join(
        (ROOT / "README.md").read_text().split()
    )


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (
            "run",
            "-k --device --check --strict --arch --json --verbose -v --quiet -q --ladder --findings "
            "--allow-not-run",
        ),
        ("sanitize", "--tool -k --device --strict --arch --json --verbose -v --quiet -q --findings"),
        ("tokens", "--device --arch --json --quiet -q"),
        ("list", "--matrix --json"),
        ("show", "--kernel --arch --json --quiet -q"),
        ("doctor", "--json --tripwires"),
        ("clean", ""),
    ],
)
def test_commands_keep_their_options(command: str, options: str) -> None:
    """Fault: a CI job that was written for this version calls an option that is gone."""
    group: Any = typer.main.get_command(app)
    there = [word for parameter in group.commands[command].params for word in parameter.opts]
    assert set(options.split()) <= set(there)


def test_json_schema_1_keeps_its_keys() -> None:
    """Fault: a reader of the JSON finds a key gone, and the schema's number is the same."""
    finding = Finding("compare", "k", "k/f/p", "outside bound", "seen", "promised")
    outcome = Outcome("compare", "k", "f", Verdict.FINDINGS, (finding,))
    kernel = KernelReport("k", "k.cu", "sm_90", {"f": "pins"}, (outcome,), {}, 1.0)
    plain = as_json(Report((kernel,), None, ("compare",), (), 1.0))
    assert plain["schema"] == 1 and plain["exit_code"] == 1
    one = plain["kernels"][0]
    for value, keys in (
        (plain, "schema verdict exit_code seconds device checks notes kernels"),
        (one, "kernel source architecture seconds ladder instantiations fixtures outcomes"),
        (one["fixtures"][0], "name pins"),
        (one["outcomes"][0], "check kernel fixture verdict reason measures findings suppressed"),
        (
            one["outcomes"][0]["findings"][0],
            "check kernel case kind seen promised severity source function where repeat folder details",
        ),
    ):
        assert set(keys.split()) <= set(value)

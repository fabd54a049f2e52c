"""The lists of the reference are those of the code: options, checks, findings, exit codes, variables."""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from verify.check.specs import SPECS
from verify.check.suppress import _OPTIONAL, _REQUIRED
from verify.cli import program
from verify.cli.app import app
from verify.finding.finding import Finding, Outcome, Severity, SourceLine, Verdict
from verify.finding.kind import FaultKind
from verify.fixture.schema import _FIXTURE_KEYS
from verify.report.report import KernelReport, Report, as_json
from verify.system.exit_code import ExitCode
from verify.testing import plugin

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
COMMANDS = (REFERENCE / "commands.md").read_text()
FINDINGS = (REFERENCE / "findings.md").read_text()


def section(page: str, heading: str) -> str:
    """The text below a heading, up to the next one of its level."""
    level = heading.partition(" ")[0]
    (text,) = re.findall(rf"^{re.escape(heading)}$\n(.*?)(?=^{level} |\Z)", page, re.MULTILINE | re.DOTALL)
    return str(text)


def rows(text: str) -> list[list[str]]:
    """The cells of every table row of a text, headers and rules left out."""
    lines = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in text.splitlines() if line.startswith("| ")]
    headers = {
        text.splitlines()[i - 1][2:-2] for i, line in enumerate(text.splitlines()) if line.startswith("|--")
    }
    return [cells for cells in lines if " | ".join(cells) not in headers]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


GROUP: Any = typer.main.get_command(app)
OPTIONS = {
    (option, name)
    for name, command in GROUP.commands.items()
    for parameter in command.params
    for option in (*parameter.opts, *parameter.secondary_opts)
    if option.startswith("-")
}


def test_every_command_is_listed() -> None:
    """Fault: a command that the manual does not have, or one that is gone."""
    table = rows(COMMANDS.split("\n## ")[0])
    assert {words(cells[0])[0].split()[1] for cells in table} == set(GROUP.commands)


def test_every_option_is_listed_with_its_commands() -> None:
    """Fault: an option that the manual does not have, or gives to a command that refuses it."""
    listed = {
        (word.split()[0], command)
        for option, commands, _ in rows(section(COMMANDS, "## Options"))
        for word in words(option)
        for command in commands.split(", ")
    }
    assert listed == OPTIONS


def test_every_option_of_a_program_is_listed() -> None:
    """Fault: the same, of `verify sanitize -- program`."""
    table = rows(section(COMMANDS, "## Options of `verify sanitize -- program`"))
    listed = {words(cells[0])[0].split()[0] for cells in table}
    actions = program.parser()._actions
    assert listed == {a.option_strings[-1] for a in actions if a.option_strings} - {"--help"}
    meanings = {words(cells[0])[0].split()[0]: cells[1] for cells in table}
    for action in actions:
        stated = re.findall(
            r"\(default `?([^`)]+)`?\)", meanings.get("".join(action.option_strings[-1:]), "")
        )
        if stated and action.default is not argparse.SUPPRESS:
            assert stated[0] == str(
                int(action.default) if isinstance(action.default, int) else action.default
            )


def test_every_option_of_pytest_is_listed(pytestconfig: pytest.Config) -> None:
    """Fault: the same, of the pytest plugin."""
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    (group,) = [g for g in parser._groups if g.name == "verify"]
    listed = [words(cells[0])[0].split()[0] for cells in rows(section(COMMANDS, "## Options of pytest"))]
    assert listed == [option.names()[0] for option in group.options]


def test_exit_codes_are_listed() -> None:
    """Fault: a CI job acts on a code that means something else."""
    listed = {cells[0] for cells in rows(section(COMMANDS, "## Exit codes"))}
    assert {str(int(code)) for code in ExitCode} == {code for code in listed if len(code) == 1}
    assert "129, 130, 143" in listed


def test_every_variable_of_the_environment_is_listed() -> None:
    """Fault: a variable that only the source knows, or one that nothing reads any more."""
    text = section(COMMANDS, "## Environment")
    sources = [*(ROOT / "verify").rglob("*.py"), *(ROOT / "ci").glob("*"), *(ROOT / "machine").rglob("*.cpp")]
    sources += (ROOT / "harness_templates").glob("*.cuh")
    used = set()
    for file in (file for file in sources if file.is_file()):
        used |= set(re.findall(r"""["{$](VERIFY_[A-Z_]+)(?=["=:}])""", file.read_text()))
    assert set(re.findall(r"`(VERIFY_[A-Z_]+)`", text)) == used


def test_the_keys_of_json_are_listed() -> None:
    """Fault: a key that a reader cannot look up, or one that is gone."""
    finding = Finding("compare", "k", "k/f/p", "hang", "seen", "promised", source=SourceLine("k.cu", 1))
    outcome = Outcome("compare", "k", "f", Verdict.FINDINGS, (finding,))
    kernel = KernelReport("k", "k.cu", "sm_90", {"f": "pins"}, (outcome,), {}, 1.0)
    report = as_json(Report((kernel,), None, ("compare",), (), 1.0))
    objects = {
        "report": report,
        "one of `kernels`": report["kernels"][0],
        "one of `fixtures`": report["kernels"][0]["fixtures"][0],
        "one of `outcomes`": report["kernels"][0]["outcomes"][0],
        "one of `findings`": report["kernels"][0]["outcomes"][0]["findings"][0],
    }
    table = {name: words(keys) for name, keys in rows(section(COMMANDS, "## JSON"))}
    assert [key for key in table["one of `findings`"] if key not in ("file", "line")] == list(
        objects["one of `findings`"]
    )
    for name, value in objects.items():
        assert [key for key in table[name] if key not in ("file", "line")] == list(value), name
    text = section(COMMANDS, "## JSON")
    assert {str(v) for v in (*Verdict, *Severity)} <= set(re.findall(r"`([^`]*)`", text))


def test_every_check_has_its_section() -> None:
    """Fault: a check without an explanation, or an explanation of one that is gone."""
    page = (REFERENCE / "checks.md").read_text()
    listed = [name for line in re.findall(r"^## (.*)$", page, re.MULTILINE) for name in line.split(", ")]
    assert listed == [spec.name for spec in SPECS]
    proved = section((ROOT / "README.md").read_text(), "## What it proves")
    assert [cells[0] for cells in rows(proved)] == listed


def test_every_kind_of_fault_is_explained() -> None:
    """Fault: a finding without an explanation, or an explanation of one that no check reports."""
    own = FINDINGS.split("## Findings of the tools")[0]
    listed = [cells[0].removesuffix(" ORACLE") for cells in rows(own)]
    assert sorted(listed) == sorted(kind.value for kind in FaultKind)
    assert all(cells[1] and cells[2] for cells in rows(own))


def tool_kinds() -> list[str]:
    """The kinds of the tools' findings as the page spells them."""
    return [kind for cells in rows(section(FINDINGS, "## Findings of the tools")) for kind in words(cells[0])]


def pattern_of(kind: str) -> re.Pattern[str]:
    return re.compile(re.escape(kind).replace(re.escape("..."), ".*"))


def test_every_finding_of_the_cpu_device_is_explained() -> None:
    """Fault: the CPU device reports what the page does not have. Programs of known truth say what it reports,
    and its sources what no program shows."""
    patterns = [pattern_of(kind) for kind in tool_kinds()]
    truth = ROOT / "tests" / "machine" / "programs" / "expectations.toml"
    reported: set[str] = set()
    for expected in tomllib.loads(truth.read_text()).values():
        kinds = expected.get("kind", [])
        reported |= {kinds} if isinstance(kinds, str) else set(kinds)
    for file in (ROOT / "machine").rglob("*.cpp"):
        text = file.read_text()
        reported |= set(re.findall(r'return \{"(?:memcheck|synccheck|launch)", "([^"]+)"', text))
        reported |= set(re.findall(r'\bf(?:inding)?\.kind = (?:\w+ \? )?"([^"]+)"', text))
    assert len(reported) > 40
    ours = {"Fault"}  # of a fault that has no words of its own
    listed = tool_kinds()
    missing = [kind for kind in reported - ours if not any(p.match(kind) for p in patterns)]
    # A program's expectation may be the beginning of a kind, and so may a literal of the sources.
    missing = [kind for kind in missing if not any(whole.startswith(kind) for whole in listed)]
    assert not [kind for kind in missing if not any(p.match(f"{kind} read") for p in patterns)]


def test_findings_of_the_page_are_in_the_sources_of_the_cpu_device() -> None:
    """Fault: a finding is explained that the CPU device reports in other words."""
    text = "\n".join(file.read_text() for file in (ROOT / "machine").rglob("*.cpp"))
    absent = {word for kind in tool_kinds() for word in re.findall(r"[\w-]{3,}", kind) if word not in text}
    assert absent == set()


def test_the_fields_of_a_suppression_are_listed() -> None:
    """Fault: an entry is written by the manual and refused by the suite."""
    page = (ROOT / "docs" / "how_to" / "read_a_finding.md").read_text()
    table = rows(section(page, "## Suppress a false alarm"))
    assert {name for cells in table for name in words(cells[0])} == _REQUIRED | _OPTIONAL
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (entry,) = tomllib.loads(example)["suppression"]
    assert set(entry) == _REQUIRED | _OPTIONAL


def test_the_keys_of_a_fixture_are_listed() -> None:
    """Fault: a key that the manual does not have, or one that is gone."""
    page = (REFERENCE / "fixtures.md").read_text()
    assert {cells[0].strip("*") for cells in rows(page)} == _FIXTURE_KEYS

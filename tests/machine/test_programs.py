"""Programs of known truth on the CPU device: the fault is found, at its line; the right twin is clean.

Each program says at its head what is wrong with it. A judge that misses a fault fails on the faulty program,
one that cries wolf fails on the right one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.machine.known_programs import Expectation, expectations, marked_lines, names, run
from verify.device.interface import PROGRAM_TOOLS
from verify.device.machine_report import MachineFinding
from verify.system.exit_code import ExitCode

FAULTY = expectations()
RIGHT = [name for name in names() if name.endswith("_right")]
SEEDS = (0, 1, 20)


def lines_of(finding: MachineFinding, program: str) -> set[int]:
    """Every line of the program's own file that the finding names, where it was inlined included."""
    return {place.line for site in finding.sites for place in site.source if Path(place.file).stem == program}


def fits(finding: MachineFinding, wanted: Expectation) -> bool:
    if finding.check != wanted.check or not finding.kind.startswith(wanted.kinds):
        return False
    if finding.warning != (wanted.level == "warning"):
        return False
    named = lines_of(finding, wanted.program)
    return all(
        marked & named
        for marked in (marked_lines(wanted.program, mark) for mark in ("finding", "other"))
        if marked
    )


def test_every_faulty_program_is_expected_and_has_a_right_twin() -> None:
    """Fault: a program is in no table, or a faulty program has no right twin."""
    assert {wanted.program for wanted in FAULTY} == {name for name in names() if name.endswith("_faulty")}
    assert [wanted.program for wanted in FAULTY if wanted.twin not in RIGHT] == []
    assert [name for name in names() if not name.endswith(("_faulty", "_right"))] == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("wanted", FAULTY, ids=lambda wanted: wanted.program)
def test_fault_is_found(wanted: Expectation, seed: int, tmp_path: Path) -> None:
    """Fault: a missed fault, a wrong line, or one that only some schedules show."""
    done = run(wanted.program, (wanted.tool,), tmp_path, seed=seed)
    assert done.report is not None, done.reason
    findings = done.report.findings
    assert any(fits(finding, wanted) for finding in findings), (tmp_path / "report.txt").read_text()
    if wanted.level == "error":
        assert done.exit_code == ExitCode.FINDINGS
    else:
        assert not any(finding.check == wanted.check and not finding.warning for finding in findings)
        strict = run(wanted.program, (wanted.tool,), tmp_path, seed=seed, strict=True)
        assert strict.exit_code == ExitCode.FINDINGS


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("program", RIGHT)
def test_right_program_is_clean(program: str, seed: int, tmp_path: Path) -> None:
    """Fault: a false alarm of any tool, or a wrong result of the machine."""
    done = run(program, PROGRAM_TOOLS, tmp_path, seed=seed)
    assert done.report is not None, done.reason
    assert done.report.findings == (), (tmp_path / "report.txt").read_text()
    assert done.exit_code == 0


def test_a_shared_variable_is_named_as_in_the_source(tmp_path: Path) -> None:
    """Fault: an address is described by a mangled name."""
    done = run("missing_syncthreads_faulty", ("racecheck",), tmp_path)
    assert done.report is not None, done.reason
    (finding, *_) = done.report.findings
    assert re.search(r"\w+\(.*\)::\w+ \+ \d+ \(0x", finding.address), finding.address


@pytest.mark.parametrize(
    "program", ["missing_wait_faulty", "overlapping_blocks_faulty", "last_block_ticket_faulty"]
)
def test_report_is_the_same_on_any_number_of_cores(program: str, tmp_path: Path) -> None:
    """Fault: a report that depends on how the blocks were spread over threads."""
    texts = set()
    for threads in (1, 2, 2, 3):
        run(program, PROGRAM_TOOLS, tmp_path, threads=threads)
        texts.add((tmp_path / "report.txt").read_text())
    assert len(texts) == 1

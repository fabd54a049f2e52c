"""traffic: rows read too often, too seldom, or although they are dead are found, whatever the strides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.check.scripted import CONTRACT, ScriptedSubject, build, done, subject
from verify.check.traffic import cell_bytes, check_traffic, row_bytes_read
from verify.contract.model import Buffer, Case, Contract
from verify.device.interface import Execution, Job
from verify.finding.finding import Verdict


def alive(case: Case) -> np.ndarray:
    """The last row is dead."""
    return (np.arange(case["rows"]) < case["rows"] - 1)[:, None]


PADDED = replace(
    CONTRACT,
    buffers=(
        Buffer("x", "f32", ("rows", 4), strides=(6, 1), live=alive),
        *CONTRACT.buffers[1:],
    ),
    row_reads={"x": 3},
)
CELLS = {"0": 24, "8": 24, "24": 24, "32": 24}
"""Two live rows of 16 bytes at 0 and 24, by cells of 8, each read three times."""


def counted(cells: dict[str, int]) -> Callable[[Job], Execution]:
    def script(job: Job) -> Execution:
        counters = {f"{run}/x/read": cells for run in job.runs}
        counters |= {f"{run}/x": {"bytes_read": sum(cells.values())} for run in job.runs}
        return done(job, counters=counters)

    return script


def made(folder: Path, cells: dict[str, int], contract: Contract = PADDED) -> ScriptedSubject:
    built = subject(folder, counted(cells), fixtures=("one",), rows=3, contract=contract)
    built.device.name = "cpu"
    return built


def kinds(folder: Path, cells: dict[str, int]) -> list[str]:
    (outcome,) = check_traffic(made(folder, cells))
    return sorted({finding.kind for finding in outcome.findings})


def test_rows_read_as_promised_are_clean(tmp_path: Path) -> None:
    """Fault: the verdict clean can never be reached; or the counts do not reach the report."""
    built = made(tmp_path, CELLS)
    (outcome,) = check_traffic(built)
    assert outcome.verdict is Verdict.CLEAN
    assert outcome.measures == {"bytes_read": 192, "rows": 6}
    assert built.device.jobs[0].options == {"tools": "traffic", "row_bytes": "8"}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"0": 32}, "row not read as often as promised"),
        ({"32": 0}, "row not read as often as promised"),
        ({"48": 8}, "dead row read"),
        ({"16": 4}, "padding read"),
        ({"-8": 8}, "padding read"),
        ({"64": 8}, "padding read"),
    ],
)
def test_a_row_read_too_often_or_too_rarely_is_a_finding(
    tmp_path: Path, change: dict[str, int], kind: str
) -> None:
    """Fault: a row too often, too seldom, a dead row, padding, or bytes before or behind pass."""
    assert kinds(tmp_path, {**CELLS, **change}) == [kind]


def test_nothing_counted_is_not_clean(tmp_path: Path) -> None:
    """Fault: a device that counts nothing makes every kernel pass."""
    assert kinds(tmp_path, {}) == ["row not read as often as promised"]


def test_a_doubt_is_inconclusive(tmp_path: Path) -> None:
    """Fault: counts that were given to another run are judged."""
    built = subject(tmp_path, lambda j: done(j, doubt="groups do not pair"), contract=PADDED, rows=3)
    built.device.name = "cpu"
    assert {o.verdict for o in check_traffic(built)} == {Verdict.INCONCLUSIVE}


def test_a_device_that_cannot_count_is_not_run(tmp_path: Path) -> None:
    """Fault: no counts on a GPU look like rows that were not read, or like none read wrongly."""
    outcomes = check_traffic(subject(tmp_path, contract=PADDED, rows=3))
    assert {o.verdict for o in outcomes} == {Verdict.NOT_RUN}


def test_a_contract_without_a_promise_has_no_outcome(tmp_path: Path) -> None:
    """Fault: a kernel that promises nothing is reported as clean."""
    assert check_traffic(made(tmp_path, {}, CONTRACT)) == []


def test_cells_divide_rows_and_strides() -> None:
    """Fault: a cell that lies across two rows gives one row's bytes to the other."""
    assert cell_bytes(build("one", rows=3, contract=PADDED)) == 8
    wide = replace(PADDED, buffers=(Buffer("x", "f32", ("rows", 4), strides=(4, 1)), *CONTRACT.buffers[1:]))
    assert cell_bytes(build("one", rows=3, contract=wide)) == 16


def test_bytes_are_attributed_to_their_row() -> None:
    """Fault: an off-by-one between cells and rows."""
    case = build("one", rows=3, contract=PADDED)
    read, astray, first = row_bytes_read(case, case.contract.buffer("x"), {"8": 5, "24": 7, "40": 2}, 8)
    assert read.tolist() == [5, 7, 0]
    assert (astray, first) == (2, 40)

"""The CPU device's launches are given to the runs that made them, by the stamp behind each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from verify.device.interface import RunResult, RunStatus
from verify.device.machine_traffic import counters_by_run
from verify.device.session import Session


def session(*runs: str) -> Session:
    results = {run: RunResult(run, RunStatus.DONE, Path(run), 1) for run in runs}
    return Session(results, {}, {run: {"k": 4096, "v": 8192} for run in runs}, (), 1.0)


def launch(kernel: str, base: int = 4096, read: int = 8, rows: int = 1) -> dict[str, Any]:
    counts = {"bytes_read": read, "bytes_written": 0, "sectors_read": 1, "sectors_written": 0}
    row = {"base": base + 16, "bytes": 16, "rows": rows, **counts}
    return {"kernel": kernel, "buffers": [{"base": base, "rows": [row], **counts}]}


STAMP = launch("verify::stamp_kernel(int*, int)", 999)


def test_launches_before_a_stamp_belong_to_its_run() -> None:
    """Fault: the second kernel of a run, or the next run's, is counted for another run."""
    launches = [launch("a"), launch("merge", 8192, 4), STAMP, launch("a"), launch("a"), STAMP]
    counters = counters_by_run(session("one", "two"), launches)
    assert counters["one/k"]["bytes_read"] == 8
    assert counters["one/v"]["bytes_read"] == 4
    assert counters["two/k"]["bytes_read"] == 16
    assert counters["two/k/read"] == {"16": 16}
    assert "two/v" not in counters


def test_equal_rows_are_distinguished() -> None:
    """Fault: of rows that are one entry of the report only the first counts."""
    counters = counters_by_run(session("one"), [launch("a", rows=3), launch("a"), STAMP])
    assert counters["one/k/read"] == {"16": 16, "32": 8, "48": 8}


@pytest.mark.parametrize(
    ("launches", "said"),
    [
        ([launch("a"), STAMP], r"2 runs are marked as those of 1.* -k"),
        (
            [launch("a"), STAMP, launch("a"), STAMP, launch("late")],
            r"^late does not run .* launch all",
        ),
        ([STAMP, STAMP, STAMP], r"2 runs are marked as those of 3"),
    ],
)
def test_launches_that_do_not_match_runs_are_rejected(launches: list[dict[str, Any]], said: str) -> None:
    """Fault: after a failed run, counts are attributed to the preceding run; or the message does not say
    what to do."""
    with pytest.raises(ValueError, match=said):
        counters_by_run(session("one", "two"), launches)

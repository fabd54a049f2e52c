"""The verdict over one program on the CPU device: its exit code, and why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.device.machine_reports import read, report
from verify.check.program import ProgramReport, _judged
from verify.device.machine_report import MachineReport
from verify.device.program import ProgramOptions, ProgramRun
from verify.device.watched_program import ProgramEnd


def verdict(end: ProgramEnd, found: MachineReport | None, options: ProgramOptions) -> ProgramReport:
    """What is made of a program that ended so and left this report."""
    return _judged(("a",), ProgramRun(end, found, False), options)


@pytest.mark.parametrize(
    ("changes", "code", "options", "expected"),
    [
        ({}, 0, {}, 1),
        ({}, 0, {"error_exitcode": 42}, 42),
        ({}, 7, {}, 1),
        ({"findings": []}, 0, {}, 0),
        ({"findings": []}, 7, {}, 7),
        ({"findings": []}, -11, {}, 139),
        ({"findings": [], "work": {"kernels": 0}}, 0, {}, 3),
        ({"findings": [], "work": {"kernels": 0}}, 7, {}, 3),
        ({"findings": [], "work": {"kernels": 0}}, 7, {"tools": ()}, 7),
        ({"refused": "no"}, 3, {}, 3),
        ({"findings": [], "cut_short": "SIGTERM"}, 0, {}, 3),
        ({"findings": [], "cut_short": "SIGTERM"}, -15, {}, 143),
        ({"findings": [], "log_lost": "No space left on device"}, 0, {}, 3),
        ({"findings": []}, 0, {"kernel_name": "other"}, 3),
        ({"findings": [], "work": {"kernels": 2, "named_kernels": 1}}, 0, {"kernel_name": "a"}, 0),
        ({}, 0, {"tools": ()}, 0),
        ({}, 7, {"tools": ()}, 7),
    ],
)
def test_exit_codes(
    changes: dict[str, object], code: int, options: dict[str, object], expected: int, tmp_path: Path
) -> None:
    """Fault: a program with findings, or one that verified nothing, ends with the code of a clean one."""
    chosen = ProgramOptions(**options)  # type: ignore[arg-type]
    assert verdict(ProgramEnd(code), read(tmp_path, **changes), chosen).exit_code == expected


def test_warnings_count_under_strict_only(tmp_path: Path) -> None:
    """Fault: a warning changes the verdict, or --strict does not."""
    warning = [{**report()["findings"][0], "level": "warning"}]  # type: ignore[index]
    found = read(tmp_path, findings=warning)
    assert verdict(ProgramEnd(0), found, ProgramOptions()).exit_code == 0
    assert verdict(ProgramEnd(0), found, ProgramOptions(strict=True)).exit_code == 1


@pytest.mark.parametrize("code", [0, -9])
def test_no_report_is_never_clean(code: int) -> None:
    """Fault: a program that was killed before its report is called clean."""
    result = verdict(ProgramEnd(code), None, ProgramOptions())
    assert result.exit_code == 3
    assert result.reason

"""The list of checks, and the usual checks of each device."""

from __future__ import annotations

import pytest

from verify.check.matrix import matrix
from verify.check.specs import CHECKS, SPECS, spec_of, usual_checks
from verify.device.cpu import CpuDevice
from verify.device.gpu import GpuDevice
from verify.device.interface import TOOLS, Device

ALWAYS = ("compare", "poison", *TOOLS)


def test_each_check_has_one_row_of_the_matrix() -> None:
    """Fault: a check without runs, runs of no check, or a check that is listed twice."""
    assert tuple(matrix()) == CHECKS
    assert len(set(CHECKS)) == len(SPECS)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (None, (*ALWAYS, "determinism", "launch")),
        (GpuDevice(), (*ALWAYS, "determinism", "launch")),
        (CpuDevice(), (*ALWAYS, "traffic", "determinism", "launch")),
    ],
)
def test_capabilities_decide_what_a_device_is_asked_for(
    device: Device | None, expected: tuple[str, ...]
) -> None:
    """Fault: a usual check is silently skipped, or one that the device lacks is never clean."""
    assert usual_checks(device) == expected


def test_tools_share_processes_and_others_do_not() -> None:
    """Fault: a tool is run once more as a check of its own, or a check is handed over as a tool."""
    assert tuple(spec.tool for spec in SPECS if spec.tool is not None) == TOOLS
    assert all(spec_of(tool).beside for tool in TOOLS)

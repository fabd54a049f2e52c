"""Does the judge stay silent on right kernels? A suite that cries wolf is switched off.

On a GPU every check of every fixture runs 20 times. The CPU device is deterministic, so there a repeat is
another seed of every schedule choice, and three of them run.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.mutation.right import REPEATS, false_alarms, prepared, run_right
from verify.device.interface import Device
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Outcome
from verify.gate.prepare import Prepared
from verify.tokens.operations import KERNELS


@cache
def _device(name: str) -> Device | NoDevice:
    return select_device(name)


@cache
def _prepared(kernel: str, name: str) -> Prepared:
    device = _device(name)
    assert not isinstance(device, NoDevice)
    return prepared(kernel, device)


RUNS = [
    pytest.param(name, repeat, marks=[pytest.mark.gpu] if name == "gpu" else [])
    for name, repeats in REPEATS.items()
    for repeat in range(repeats)
]


@pytest.mark.parametrize(("name", "repeat"), RUNS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_right_kernel_is_clean(kernel: str, name: str, repeat: int) -> None:
    """Fault: a check reports a right kernel, or gives no verdict, under some schedule."""
    device = _device(name)
    if isinstance(device, NoDevice):
        pytest.skip(device.reason)
    assert not false_alarms(run_right(_prepared(kernel, name), device, repeat))


def test_an_alarm_is_reported() -> None:
    """Fault: an inconclusive check counts as clean."""
    doubtful = Outcome.inconclusive("memcheck", "k", "f", "the tool is missing")
    assert false_alarms([doubtful, Outcome.judge("compare", "k", "f", [])]) == [
        "k f memcheck: inconclusive: the tool is missing"
    ]

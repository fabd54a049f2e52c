"""No rung passes a kernel that does no work; token parity names the layer that reads a wrong slot.

Rung 2 (compare) is tried with all other planted faults by ``verify mutate``; here are the rungs above it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.mutation.on_tokens import planted_contract, tokens_with
from verify.device.interface import Device
from verify.device.select import NoDevice, select_device
from verify.finding.finding import Verdict, overall
from verify.gate.gate import run_checks
from verify.gate.prepare import prepare
from verify.gate.selection import Selection
from verify.tokens.model import GLOBAL, LOCAL, Shape
from verify.tokens.operations import KERNELS

IDLE = ("writes-nothing", "returns-zeros", "returns-the-last-answer")
SHORT = Shape(layers=(LOCAL,), steps=4)
WRAPPING = Shape(layers=(LOCAL, LOCAL, GLOBAL), steps=48)


@pytest.fixture(scope="module")
def device(device_name: str) -> Device:
    chosen = select_device(device_name)
    if isinstance(chosen, NoDevice):
        pytest.skip(chosen.reason)
    return chosen


@pytest.mark.parametrize("name", IDLE)
@pytest.mark.parametrize("kernel", KERNELS)
def test_token_parity_passes_no_idle_kernel(kernel: str, name: str, device: Device, tmp_path: Path) -> None:
    """Fault: a top rung that is passed by a kernel which wrote nothing, zeros, or the answer before."""
    report = tokens_with(planted_contract(kernel, name), device, SHORT, tmp_path)
    assert report.verdict is Verdict.FINDINGS
    place = {"flash_decode": "attention", "fp4_matvec": "qkv", "fp8_matvec": "head"}[kernel]
    assert report.deviations[0].place.endswith(place)


@pytest.mark.parametrize("name", IDLE)
@pytest.mark.parametrize("kernel", KERNELS)
def test_op_parity_passes_no_idle_kernel(kernel: str, name: str, device: Device, tmp_path: Path) -> None:
    """Fault: an op parity that compares nothing, or compares what was there before."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is missing: the package's extra 'parity' has it")
    planted, info = planted_contract(kernel, name), device.info()
    selection = Selection((planted,), checks=("parity",))
    ready = prepare(
        planted, selection.select, info.architecture, info.sm_count, lambda _: None, device.name != "cpu"
    )
    outcomes = run_checks(ready, device, selection.checks, tmp_path, selection, lambda _: None)
    assert overall(outcomes) is Verdict.FINDINGS


@pytest.mark.parametrize("layer", [0, 1])
def test_a_wrong_slot_after_the_wrap_in_one_layer_is_named(
    layer: int, device: Device, tmp_path: Path
) -> None:
    """Fault: a token parity that misses, or puts elsewhere, one layer whose rows wrap to a wrong slot."""
    faulty = planted_contract("flash_decode", "wrapped-row-from-slot-before")
    report = tokens_with(faulty, device, WRAPPING, tmp_path, layer)
    # The ring wraps at its capacity, slot 0 is still right, and the next position is the first wrong one.
    first = LOCAL.capacity + 1
    assert report.verdict is Verdict.FINDINGS
    assert (report.deviations[0].position, report.deviations[0].place) == (first, f"layer {layer}, attention")
    assert {d.place for d in report.deviations} == {f"layer {layer}, attention"}
    assert f"step {first}, layer {layer}, attention" in report.lines[-1 if report.different else 0]

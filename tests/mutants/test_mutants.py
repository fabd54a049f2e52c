"""Does the judge see planted faults? Each mutant must be reported by every check that its table names.

A check that misses its mutant would pass the same fault in a user kernel. The other direction, silence on the
right kernel, is tests/mutants/test_right_kernels.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from verify.device.select import NoDevice, select_device

from tests.mutants.planted import FOLDER, Mutant, apply_patch, mutants_of, plant
from verify.discovery import find_contracts, source_file
from verify.finding import Verdict, overall
from verify.gate import Selection, run_gate

KERNELS = sorted(p.parent.name for p in FOLDER.glob("*/mutants.toml"))
MUTANTS = [m for kernel in KERNELS for m in mutants_of(kernel)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.kernel}-{m.name}")
def test_patch_applies(mutant: Mutant) -> None:
    """A patch that no longer fits its kernel plants nothing, and its test would prove nothing."""
    (contract,) = find_contracts([mutant.kernel])
    text = source_file(contract).read_text(encoding="utf-8")
    assert apply_patch(text, mutant.patch.read_text(encoding="utf-8"), mutant.name) != text


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.kernel}-{m.name}")
def test_is_reported(mutant: Mutant, tmp_path: Path) -> None:
    """Every named check reports findings, and with a line of the kernel when it is a tool."""
    device = select_device("auto")
    if isinstance(device, NoDevice):
        pytest.skip(device.reason)
    if device.name not in mutant.devices:
        pytest.skip(f"cannot be seen on {device.name}: {mutant.fault}")
    (contract,) = find_contracts([mutant.kernel])
    planted = plant(contract, mutant, tmp_path)
    report = run_gate(
        Selection((planted,), mutant.fixtures, (), mutant.checks), device, "", lambda text: None
    )
    for check in mutant.checks:
        outcomes = [o for o in report.outcomes if o.check == check]
        assert overall(outcomes) is Verdict.FINDINGS, f"{check} does not report: {mutant.fault}"

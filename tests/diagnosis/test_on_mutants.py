"""The table of planted faults and their diagnoses: whole, and true of a sample on the CPU device."""

from __future__ import annotations

import pytest

from tests.diagnosis.on_mutants import Row, rows, said_of, verdict
from verify.contract.discovery import find_contracts
from verify.device.select import NoDevice, select_device
from verify.mutation.catalogue import catalogue_of

SAMPLE = ("fp8_matvec/second-chain-lost", "fp8_matvec/result-pitch-ignored", "flash_decode/split-end-short")


@pytest.mark.parametrize("row", rows(*SAMPLE), ids=lambda row: f"{row.kernel}-{row.name}")
def test_a_planted_fault_is_named(row: Row) -> None:
    """Fault: what NumPy's outputs are named for is not named for a kernel's own."""
    device = select_device("cpu")
    if isinstance(device, NoDevice):
        pytest.skip(device.reason)
    said = said_of(row, device)
    assert verdict(row, said) == "named", said


def test_every_row_is_a_planted_fault() -> None:
    """Fault: a fault is renamed in the catalogue, and its row here is never tried again."""
    for kernel in ("flash_decode", "fp4_matvec", "fp8_matvec"):
        (contract,) = find_contracts([kernel])
        known = {mutant.name for mutant in catalogue_of(contract)}
        assert {row.name for row in rows() if row.kernel == kernel} <= known


def test_a_certain_word_for_another_fault_is_wrong() -> None:
    """Fault: the tally counts a wrong name given with confidence as silence, or as right."""
    row, none = Row("k", "m", "f", ("left out",)), Row("k", "race", "f", ())
    assert verdict(row, "matches the reference with weights from 960 on left out") == "named"
    assert verdict(row, "matches the reference with y all zero") == "WRONG"
    assert verdict(none, "matches the reference with y all zero") == "WRONG"
    assert verdict(row, "consistent with the reference with y all zero, or with k left out") == "among others"
    assert verdict(row, "") == "silent"

"""A planted fault is tried on the kernel's own fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.planted import kernels_with_mutants, mutants_of, plant
from verify.contract.discovery import find_contracts, fixture_file, source_file


@pytest.mark.parametrize("kernel", kernels_with_mutants())
def test_a_planted_fault_has_its_kernel_s_fixtures(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: fixtures are looked for beside the changed copy of the source, and no fault can be tried."""
    monkeypatch.setenv("VERIFY_CACHE", str(tmp_path))
    (contract,) = find_contracts([kernel])
    planted = plant(contract, mutants_of(kernel)[0])
    assert fixture_file(planted) == fixture_file(contract)
    assert source_file(planted).read_text() != source_file(contract).read_text()

"""The Python plan that the oracle's tests use is the launcher's own plan."""

from __future__ import annotations

import pytest

from tests.contracts.attention.flash_plan import SM_COUNT, flash_contract, plan, resolved
from verify.harness.build import build_harness
from verify.harness.plan import query_plans
from verify.toolchain.toolchain import ToolchainError


@pytest.mark.parametrize("sm_count", [1, 46, SM_COUNT])
def test_the_twin_agrees_with_the_launcher(sm_count: int) -> None:
    """Fault: an oracle tested on splits and tiles that the kernel does not have."""
    contract = flash_contract()
    try:
        build = build_harness(contract, None, lambda _: None)
    except ToolchainError as error:
        pytest.skip(f"the launcher's plan needs a compiler: {error}")
    symbols = [r.symbols for r in resolved()]
    assert query_plans(build, contract, symbols, sm_count) == [plan(s, sm_count) for s in symbols]

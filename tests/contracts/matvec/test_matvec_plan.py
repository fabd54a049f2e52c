"""The Python plans that the matvec oracle's tests use are the launchers' own."""

from __future__ import annotations

import pytest

from tests.contracts.matvec.matvec_plan import KERNELS, SM_COUNT, contract, plan, resolved
from verify.harness.build import build_harness
from verify.harness.plan import query_plans
from verify.toolchain.toolchain import ToolchainError


@pytest.mark.parametrize("sm_count", [1, 46, SM_COUNT])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_twin_agrees_with_the_launcher(kernel: str, sm_count: int) -> None:
    """Fault: an oracle tested on steps and rows that the kernel does not have."""
    try:
        build = build_harness(contract(kernel), None, lambda _: None)
    except ToolchainError as error:
        pytest.skip(f"the launcher's plan needs a compiler: {error}")
    symbols = [r.symbols for r in resolved(kernel)]
    answers = query_plans(build, contract(kernel), symbols, sm_count)
    assert answers == [plan(kernel, s, sm_count) for s in symbols]

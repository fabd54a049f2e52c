"""The plans of the matvec kernels in Python, so that the oracle's tests need no compiler.

tests/contracts/matvec/test_matvec_plan.py holds them against the real plans where a compiler is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from verify.contract.discovery import find_contracts, fixture_file
from verify.contract.model import Case, Contract
from verify.fixture.cases import build_cases
from verify.fixture.resolve import ResolvedFixture, resolve_fixtures
from verify.fixture.schema import load_fixtures

SM_COUNT = 132
KERNELS = ("fp4_matvec", "fp8_matvec")
WARP_STEP = {"fp4_matvec": 128, "fp8_matvec": 64}


def plan(kernel: str, symbols: Mapping[str, Any], sm_count: int = SM_COUNT) -> dict[str, int]:
    """Plan fields for a fixture's symbols; empty for a shape that the launcher refuses."""
    n, k, b, group = symbols["N"], symbols["K"], symbols["B"], symbols.get("group", 1)
    if k < group or k % group or b > 8:
        return {}
    pinned = symbols["pinned_rows"]
    if kernel == "fp4_matvec" and b == 1 and pinned not in (16, 32):
        one = _one_vector(n, k, group, symbols["scale_format"], sm_count)
        if one:
            rows = pinned or one["rows_per_block"]
            return {**one, "rows_per_block": rows, "grid": -(-n // rows)}
    rows = pinned or (16 if -(-n // 16) <= 2 * sm_count else 32)
    warps = 16 if rows == 16 else 8
    step = warps * WARP_STEP[kernel]
    fields = {
        "warp_step": WARP_STEP[kernel],
        "step": step,
        "pipeline_depth": 2,
        "warps_per_block": warps,
        "rows_per_block": rows,
        "iterations": -(-k // step),
        "grid": -(-n // rows),
    }
    return {**fields, "passes": 2 if group == 16 and b > 4 else 1} if kernel == "fp4_matvec" else fields


def _one_vector(n: int, k: int, group: int, scale_format: int, sm_count: int) -> dict[str, int]:
    """Plan fields of the FP4 kernel for one vector; empty where shared memory is short."""
    steps = -(-k // 256)
    stage = 32 * (128 + 256 // group * (2 if scale_format == 2 else 1))
    for most_warps in (8, 16):
        rounds = -(-steps // most_warps)
        warps = -(-steps // rounds)
        shared = warps * (2 * stage + 1024) + 64 + rounds * warps * 8 * (64 + 128 // group)
        resident = min(16 // warps, 233472 // (shared + 1024))
        if rounds <= 4 and resident >= 2:
            break
    if shared > 232448:
        return {}
    slots = sm_count * max(resident, 1)
    blocks = slots // 2 if resident > 1 and n <= slots // 2 * 32 else slots
    return {
        "warp_step": 256,
        "step": 256 * warps,
        "pipeline_depth": 2,
        "warps_per_block": warps,
        "rows_per_block": max(8, -(-n // blocks)),
        "iterations": rounds,
        "passes": 1,
    }


@cache
def contract(kernel: str) -> Contract:
    """The kernel's contract."""
    return find_contracts([kernel])[0]


@cache
def resolved(kernel: str) -> tuple[ResolvedFixture, ...]:
    """All fixtures with numbers, edges checked."""
    own = contract(kernel)
    ask = partial(map, partial(plan, kernel))
    return resolve_fixtures(load_fixtures(fixture_file(own), own), own, lambda asked: list(ask(asked)))


def cases(kernel: str) -> Iterator[Case]:
    """Every case of a kernel, one at a time."""
    for fixture in resolved(kernel):
        yield from build_cases(contract(kernel), fixture)


def every_fixture() -> list[tuple[str, ResolvedFixture]]:
    """Kernel and fixture, of both kernels."""
    return [(kernel, fixture) for kernel in KERNELS for fixture in resolved(kernel)]

"""The plan of flash_decode.cu in Python, so that the oracle's tests need no compiler.

tests/contracts/attention/test_flash_plan.py holds it against the real plan where a compiler is at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from verify.contract.discovery import find_contracts, fixture_file
from verify.contract.model import Case, Contract
from verify.fixture.resolve import ResolvedFixture, resolve_fixtures
from verify.fixture.schema import load_fixtures

SM_COUNT = 132


def plan(symbols: Mapping[str, Any], sm_count: int = SM_COUNT) -> dict[str, int]:
    """Plan fields for a fixture's symbols."""
    dim, group = symbols["D"], symbols["NH"] // symbols["NKV"]
    tile = 16 if dim == 512 else 32
    units = symbols["B"] * symbols["NKV"] * -(-group // 16)
    most = -(-(symbols["window"] or symbols["capacity"]) // tile)
    wanted = sm_count * {512: 1, 64: 3}.get(dim, 2)
    splits = symbols["splits"] or min(_chosen(units, sm_count, wanted), most)
    state = symbols["B"] * symbols["NH"] * splits * 4
    o_bytes, state = state * dim, -(-state // 16) * 16
    return {
        "tile": tile,
        "num_splits": splits,
        "heads_per_block": min(group, 16),
        "workspace_bytes": o_bytes + 2 * state,
        "o_offset": 0,
        "m_offset": o_bytes,
        "l_offset": o_bytes + state,
        "boundary_rule": 0,
        "max_live": min(symbols["window"] or symbols["capacity"], 2**31 - 1),
        "shared_bytes": 3 * 2 * tile * dim * 2 + 4 * 32 * 16,
        "split_blocks": units * splits,
        "merge_blocks": symbols["B"] * symbols["NH"] * dim // 64,
    }


def _chosen(units: int, sm_count: int, wanted: int) -> int:
    def balance(splits: int) -> float:
        blocks = units * splits
        return blocks / (-(-blocks // sm_count) * sm_count)

    best = fewest = max(wanted // units, 1)
    for splits in range(fewest, 4 * fewest + 5):
        if balance(best) >= 0.9:
            break
        if balance(splits) > balance(best):
            best = splits
    return best


def ask(requests: Sequence[Mapping[str, Any]]) -> list[dict[str, int]]:
    """A plan query as the fixture resolver wants it."""
    return [plan(symbols) for symbols in requests]


@cache
def flash_contract() -> Contract:
    """The contract of flash decoding."""
    return find_contracts(["flash_decode"])[0]


@cache
def resolved() -> tuple[ResolvedFixture, ...]:
    """All fixtures with numbers, edges checked."""
    contract = flash_contract()
    return resolve_fixtures(load_fixtures(fixture_file(contract), contract), contract, ask)


def case_of(symbols: Mapping[str, Any], profile: str = "-") -> Case:
    """A case without arrays from symbols alone, defaults filled in, for tests that make their own data."""
    filled = {"window": 0, "splits": 0, "scale": symbols["D"] ** -0.5, **symbols}
    filled.setdefault("k_row", filled["D"])
    filled.setdefault("v_row", filled["D"])
    filled.setdefault("q_row", filled["NH"] * filled["D"])
    filled.setdefault("out_row", filled["NH"] * filled["D"])
    for x in "kv":
        filled.setdefault(f"{x}_head", filled["capacity"] * filled[f"{x}_row"])
        filled.setdefault(f"{x}_batch", filled["NKV"] * filled[f"{x}_head"])
    return Case(flash_contract(), "test", profile, filled, plan(filled))

"""The fixtures of flash decoding and their data: do they pin what they say, and cover what they must?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.contracts.attention.flash_plan import flash_contract, resolved
from tests.contracts.attention.sampled_heads import profiled_case
from verify.contract.expression import evaluate
from verify.contract.model import Case
from verify.contracts.attention.profiles import ATTENTION_PROFILES, needle_positions
from verify.contracts.attention.reference import (
    attention_heads,
    band,
    live_slots,
    reference,
    softmax_scale,
    split_edges,
)
from verify.fixture.cases import build_case
from verify.fixture.resolve import ResolvedFixture, check_edge
from verify.fixture.schema import FixtureError

NAMES = [
    "first-token", "tile-minus-1", "tile", "tile-plus-1", "split-edge-minus-1", "split-edge",
    "split-edge-plus-1", "more-splits-than-tiles", "one-split", "splits-33", "window-minus-1", "window",
    "window-plus-1", "window-of-fewer-tiles-than-splits", "wrap-inside-tile", "wrap-on-split-edge",
    "mqa-d512", "gqa-d256-ten-laps",
    "ragged-empty-row", *(f"each-head-dim@D={d}" for d in (64, 128, 256, 512)),
    *(f"splits-165@D={d}" for d in (64, 128, 256, 512)), "wrapped-ragged-wide-strides",
    "wide-heads-and-rows", "wide-batches", "batch-of-257",
]  # fmt: skip

VALUES = {
    "batch above 1": "B > 1",
    "another length": "B > 1 and hi[0] - lo[0] != hi[1] - lo[1]",
    "empty row": "min(hi) == 0",
    "window": "window > 0",
    "low edge": "max(lo) > 0",
    "wrap": "lo[0] < capacity and capacity < hi[0]",
    "wrap inside a tile": "lo[0] < capacity and capacity < hi[0] and (capacity - lo[0]) % tile != 0",
    "wide rows": "k_row > D and v_row > D and k_row != v_row and q_row > NH*D and out_row > NH*D",
    "wide heads": "NKV > 1 and k_head > capacity*k_row and v_head > capacity*v_row and k_head != v_head",
    "wide batches": "B > 1 and k_batch > NKV*k_head and v_batch > NKV*v_head and k_batch != v_batch",
    "group above 16 heads": "NH // NKV > 16 and heads_per_block == 16",
    "second round of the merge": "num_splits > 160 and ceil_div(hi[0] - lo[0], tile) > 160",
    "scale set": "scale != 1 / sqrt(D)",
}
"""What every instantiation must meet, as an edge expression."""


@cache
def case_with(fixture: str, profile: str) -> Case:
    contract = flash_contract()
    one = next(r for r in resolved() if r.fixture.name == fixture)
    return build_case(contract, one, next(p for p in ATTENTION_PROFILES if p.name == profile))


@pytest.mark.parametrize("name", flash_contract().instantiations)
@pytest.mark.parametrize("value", VALUES)
def test_every_instantiation_meets_every_value(name: str, value: str) -> None:
    """Fault: a kernel of one head dimension whose window, strides, groups or merge no fixture tries."""
    runs = [r for r in resolved() if evaluate(flash_contract().instantiations[name], {**r.symbols, **r.plan})]
    assert any(_holds(replace(r, fixture=replace(r.fixture, edge=VALUES[value]))) for r in runs)


def _holds(one: ResolvedFixture) -> bool:
    try:
        check_edge(one, flash_contract())
    except FixtureError as error:
        if "does not hold" not in str(error):
            raise
        return False
    return True


def test_there_are_exactly_these_fixtures() -> None:
    """Fault: a fixture was dropped or renamed; each says in a sentence what it pins."""
    assert [r.fixture.name for r in resolved()] == NAMES
    assert all(r.fixture.pins.endswith(".") and r.fixture.edge for r in resolved())


def test_small_fixtures_cover_head_dims_and_groups() -> None:
    """Fault: a rotation that leaves out a head dimension or a group size."""
    shapes = {(r.symbols["D"], r.symbols["NH"] // r.symbols["NKV"]) for r in resolved()}
    assert {d for d, _ in shapes} == {64, 128, 256, 512}
    assert {g for _, g in shapes} >= {1, 2, 4, 7, 8, 16}
    assert any(r.symbols["B"] > 1 and r.plan["num_splits"] > 1 for r in resolved())


@pytest.mark.parametrize("one", resolved(), ids=lambda r: r.fixture.name)
def test_fixtures_are_small(one: ResolvedFixture) -> None:
    """Fault: a fixture too large for racecheck to take seconds over: at most 32 M multiplications."""
    s = one.symbols
    live = sum(hi - lo for lo, hi in (band(case_with(one.fixture.name, "ones"), b) for b in range(s["B"])))
    assert live * s["NH"] * s["D"] * 2 <= 1 << 25


@pytest.mark.parametrize(
    ("name", "axis"), [("q", 0), ("out", 0), *((name, axis) for name in "kv" for axis in (0, 1, 2))]
)
def test_every_stride_passes_32_bits(name: str, axis: int) -> None:
    """Fault: an offset that no fixture brings past 2^31 elements by this stride alone, over live rows."""
    furthest = 0
    for one in (r for r in resolved() if r.fixture.sparse):
        case = case_with(one.fixture.name, one.fixture.profiles[0] if one.fixture.profiles else "ones")
        buffer = case.contract.buffer(name)
        reached = case.live(name).nonzero()[axis].max()
        furthest = max(furthest, int(reached) * case.strides(buffer)[axis])
    assert furthest > 2**31


@pytest.mark.parametrize("name", NAMES)
def test_split_edges_cover_the_band_once(name: str) -> None:
    """Fault: a boundary rule that leaves a gap or ends outside the band."""
    case = case_with(name, "ones")
    for row in range(case["B"]):
        lo, hi = band(case, row)
        edges = split_edges(case, row)
        assert len(edges) == case["num_splits"] + 1
        assert edges[0] == lo and edges[-1] == hi and edges == sorted(edges)


def test_needles_stand_at_every_edge() -> None:
    """Fault: an edge without a needle: ends, wrap, split edges and tile edges, on both sides."""
    case = case_with("wrap-inside-tile", "needle")
    lo, hi = band(case, 0)
    wanted = {lo, hi - 1, case["capacity"] - 1, case["capacity"]}
    wanted |= {lo + case["tile"] * i - j for i in (1, 2, 3) for j in (0, 1)}
    assert wanted <= set(needle_positions(case, 0))


def test_needles_dominate_and_the_dead_neighbour_is_louder() -> None:
    """Fault: needles do not dominate the background, or the dead neighbour does not dominate them."""
    case = profiled_case(
        {"B": 1, "NH": 2, "NKV": 2, "D": 128, "capacity": 300, "len": (256,), "splits": 2},
        "needle",
        np.random.default_rng(1),
    )
    for head in attention_heads(case):
        scores = softmax_scale(case) * (head.q @ head.k.T)
        planted = needle_positions(case, 0)[head.kv_head :: 2]
        weights = np.exp(scores - scores.max())
        assert weights[:, planted].sum() > 0.9 * weights.sum()
        dead = case.raw("k")[0, head.kv_head, 256].astype(np.uint32) << 16
        assert (softmax_scale(case) * head.q @ dead.view(np.float32)).min() > scores.max()


@pytest.mark.parametrize("name", ["gqa-d256-ten-laps", "splits-33", "mqa-d512"])
def test_coded_rows_are_small_integers_with_weights_of_one(name: str) -> None:
    """Fault: coded data whose sums are not exact, and positions that share a row of V."""
    case = case_with(name, "coded")
    for head in attention_heads(case):
        assert not head.q.any()
        assert (head.v == np.rint(head.v)).all()
        assert np.abs(head.v).sum(0).max() < 2**24
        assert len(np.unique(head.v, axis=0)) == len(head.v)


@pytest.mark.parametrize(("profile", "least"), [("deep", 1.3e5), ("deeper", 2e9)])
@pytest.mark.parametrize("name", NAMES)
def test_deep_scores_are_equal_exact_and_far_down(name: str, profile: str, least: float) -> None:
    """Fault: deep data that rounding tears apart, or that a sentinel of -1e5 or -1e9 would survive."""
    case = case_with(name, profile)
    for head in attention_heads(case):
        if len(head.k):
            scores = head.q @ head.k.T
            assert np.unique(scores).size == 1
            assert np.float32(scores.flat[0]) == scores.flat[0]
            assert scores.flat[0] <= -least and softmax_scale(case) * scores.flat[0] <= -least


@pytest.mark.parametrize("name", NAMES)
def test_large_data_leaves_half_precision_but_not_single(name: str) -> None:
    """Fault: large data that a half-precision accumulator survives, or that single precision does not."""
    case = case_with(name, "large")
    for head in attention_heads(case):
        if len(head.k):
            products = head.q[:, None, :] * head.k[None]
            assert np.abs(np.cumsum(products, -1)).max() > 65504
            assert np.abs(products).sum(-1).max() <= 2**24
            assert np.abs(head.v).max() > 65504


def test_rising_and_jumping_move_the_maximum_in_most_tiles() -> None:
    """Fault: score sequences that never take the rescale path, never underflow on it, or never fall far."""
    rising = next(attention_heads(case_with("one-split", "rising")))
    jumping = next(attention_heads(case_with("one-split", "jumping")))
    tile = case_with("one-split", "rising")["tile"]
    for head, least in ((rising, 5), (jumping, 2)):
        scores = head.q @ head.k.T
        tops = [scores[:, i : i + tile].max(-1) for i in range(0, scores.shape[1], tile)]
        moves = sum((b > np.max(tops[: i + 1], axis=0)).all() for i, b in enumerate(tops[1:]))
        assert moves >= least
    scores = softmax_scale(case_with("one-split", "jumping")) * (jumping.q @ jumping.k.T)
    assert (scores.max(-1) - scores[:, 0]).min() > 90
    assert (scores.max(-1) - scores[:, -1]).min() > 90


def test_a_row_that_does_not_fit_is_nan_and_an_empty_one_zero() -> None:
    """Fault: a reference that reads past the cache or divides by zero."""
    case = case_with("ragged-empty-row", "normal")
    out = reference(case)["out"]
    assert np.isnan(out[3]).all() and not out[1].any() and not out[2].any()
    assert np.isfinite(out[[0, 4]]).all()
    assert not live_slots(case)[[1, 2, 3]].any()

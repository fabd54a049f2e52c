"""Visibility: every fixture can show every position, and the closed forms are what brute force gives."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.contracts.attention.flash_plan import flash_contract, resolved
from tests.contracts.attention.sampled_heads import profiled_case
from verify.contract.model import Buffer, Case
from verify.contracts.attention.effects import attention_effects
from verify.contracts.attention.reference import attention_heads, head_output, softmax_scale
from verify.fixture.cases import build_cases
from verify.fixture.resolve import ResolvedFixture
from verify.oracle.expectation import Quantity
from verify.oracle.visibility import REQUIRED, units, weakest_position


@pytest.mark.parametrize("fixture", resolved(), ids=lambda r: r.fixture.name)
def test_every_position_of_every_fixture_is_visible(fixture: ResolvedFixture) -> None:
    """Fault: a fixture or profile that no longer shows a dropped live or an added dead position."""
    weakest = weakest_position(build_cases(flash_contract(), fixture))
    assert weakest is not None
    assert weakest.visibility >= REQUIRED, weakest


def test_a_long_band_of_ordinary_data_falls_short() -> None:
    """Fault: a visibility that is always high: normal data alone hides a position among thousands."""
    symbols = {"B": 1, "NH": 2, "NKV": 1, "D": 64, "capacity": 4096, "len": (4096,), "splits": 1}
    weakest = weakest_position([profiled_case(symbols, "normal", np.random.default_rng(2))])
    assert weakest is not None
    assert weakest.visibility < REQUIRED
    assert weakest.profile == "normal"


def test_without_a_statement_of_effects_visibility_is_not_available() -> None:
    """Fault: a contract without effects that would be counted as visible."""
    case = build_cases(flash_contract(), resolved()[0])[0]
    silent = dataclasses.replace(case, contract=dataclasses.replace(case.contract, effects=None))
    assert weakest_position([silent]) is None


def _unit_arrays(case: Case) -> dict[str, np.ndarray]:
    """Units of 1 for the output and infinite ones for the partials: sizes are then moves of the output."""
    shape = (case["B"], case["NH"], case["num_splits"])
    return {
        "out": np.ones((case["B"], case["NH"] * case["D"])),
        "partial_out": np.full((*shape, case["D"]), np.inf),
        "partial_lse": np.full(shape, np.inf),
    }


@pytest.mark.parametrize("profile", ["normal", "jumping", "needle", "coded"])
def test_closed_forms_agree_with_leaving_a_position_out(profile: str) -> None:
    """Fault: a wrong leave-one-out formula: the whole attention is computed anew for each position."""
    symbols = {
        "B": 1, "NH": 2, "NKV": 1, "D": 64, "capacity": 60, "window": 40, "len": (75,), "splits": 2,
    }  # fmt: skip
    case = profiled_case(symbols, profile, np.random.default_rng(5))
    head = next(attention_heads(case))
    scale = softmax_scale(case)
    whole = head_output(head, scale)
    effects = {e.kind: e for e in attention_effects(case, _unit_arrays(case))}
    assert effects["dropped"].positions.tolist() == list(range(35, 75))
    for i in range(len(head.k)):
        less = dataclasses.replace(head, k=np.delete(head.k, i, 0), v=np.delete(head.v, i, 0))
        moved = np.abs(head_output(less, scale) - whole).max(-1)
        np.testing.assert_allclose(effects["dropped"].size[:, i], moved, rtol=1e-6, atol=1e-13)
    assert effects["added"].positions.tolist() == [34, 75]
    stored = {name: dataclasses.replace(case.contract.buffer(name), live=None) for name in "kv"}
    for i, position in enumerate([34, 75]):
        k, v = (_slot(case, stored[name], position % 60) for name in "kv")
        more = dataclasses.replace(head, k=np.vstack([head.k, k]), v=np.vstack([head.v, v]))
        moved = np.abs(head_output(more, scale) - whole).max(-1)
        np.testing.assert_allclose(effects["added"].size[:, i], moved, rtol=1e-6, atol=1e-13)


def _slot(case: Case, buffer: Buffer, slot: int) -> np.ndarray:
    contract = dataclasses.replace(
        case.contract,
        buffers=tuple(buffer if b.name == buffer.name else b for b in case.contract.buffers),
    )
    return dataclasses.replace(case, contract=contract).f64(buffer.name)[0, 0, slot]


def test_a_stored_output_tolerates_half_a_unit_in_the_last_place() -> None:
    """Fault: a lucky bound (a value that bf16 holds exactly) that would make small moves look visible."""
    quantity = Quantity("out", np.array([1.0, 0.0, 3.0]), np.array([1e-9, 0.0, 1.0]), "bf16")
    np.testing.assert_array_equal(units({"out": quantity})["out"], [2.0**-8, 2.0**-134, 1.0])
    exact = Quantity("out", np.array([1.0]), np.array([1e-9]), "bf16", exact=True)
    assert units({"out": exact})["out"] == 0

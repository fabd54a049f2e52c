"""mpmath against the float64 reference and the bounds, on sampled elements."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.contracts.attention.flash_plan import flash_contract, resolved
from verify.fixture.cases import build_cases
from verify.fixture.resolve import ResolvedFixture
from verify.oracle.exact import sampled_disagreements
from verify.oracle.expectation import expect


@pytest.mark.parametrize("fixture", resolved(), ids=lambda r: r.fixture.name)
def test_reference_and_bound_agree_with_arbitrary_precision(fixture: ResolvedFixture) -> None:
    """Fault: a float64 reference that loses digits, and a bound that would reject an ideal kernel."""
    rng = np.random.default_rng(11)
    for case in build_cases(flash_contract(), fixture):
        assert not list(sampled_disagreements(case, expect(case), 1, rng)), case.id


def test_a_wrong_reference_and_a_wrong_bound_are_both_seen() -> None:
    """Fault: a comparison that accepts anything."""
    case = build_cases(flash_contract(), next(r for r in resolved() if r.fixture.name == "tile"))[0]
    expected = dict(expect(case))
    out = expected["out"]
    rng = np.random.default_rng(0)
    off = {"out": dataclasses.replace(out, value=out.value * (1 + 1e-9))}
    assert "the reference is wrong" in {d.what for d in sampled_disagreements(case, off, 5, rng)}
    narrow = {"out": dataclasses.replace(out, bound=out.bound * 0.01)}
    found = {d.what for d in sampled_disagreements(case, narrow, 5, rng)}
    assert found == {"the bound rejects an ideal result"}


def test_a_contract_without_an_exact_reference_says_so() -> None:
    """Fault: an empty rung that would be reported as passed."""
    case = build_cases(flash_contract(), resolved()[0])[0]
    silent = dataclasses.replace(case, contract=dataclasses.replace(case.contract, exact_reference=None))
    with pytest.raises(ValueError, match="exact_reference"):
        list(sampled_disagreements(silent, expect(case), 1, np.random.default_rng(0)))

"""Signs and subnormal numbers in the matvec profiles: a kernel that loses them leaves its bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.contracts.matvec.matvec_plan import contract, resolved
from tests.contracts.matvec.simulated_matvec import simulate
from verify.check.judge import outside_bound
from verify.contract.formats import FORMATS, decode, encode, round_to
from verify.contract.model import Case
from verify.fixture.cases import build_cases
from verify.fixture.resolve import ResolvedFixture
from verify.oracle.expectation import expect


@cache
def small_cases(kernel: str) -> tuple[Case, ...]:
    """One small fixture of each scale and result format, all profiles."""
    chosen: dict[tuple[int, int], ResolvedFixture] = {}
    for fixture in resolved(kernel):
        symbols = fixture.symbols
        if symbols["N"] >= 100 and symbols["K"] <= 2048 and symbols["N"] * symbols["K"] <= 1 << 19:
            chosen.setdefault((symbols.get("scale_format", -1), symbols["output"]), fixture)
    return tuple(case for fixture in chosen.values() for case in build_cases(contract(kernel), fixture))


def flushed(name: str) -> Callable[[Case], Case]:
    """The case as a kernel sees it that takes an input's subnormal numbers for zero."""

    def change(case: Case) -> Case:
        dtype = case.dtype(case.contract.buffer(name))
        values = decode(dtype, case.arrays[name]).astype(np.float64)
        smallest = max(FORMATS[dtype].smallest_normal, FORMATS["f32"].smallest_normal)
        # A format whose own subnormal numbers are single precision's normal ones keeps them.
        kept = np.where(np.abs(values) < smallest, 0.0, values)
        return replace(case, arrays={**case.arrays, name: encode(dtype, kept)}) if dtype != "e8m0" else case

    return change


def positive(case: Case) -> Case:
    """The case as a kernel sees it that forgets the tensor scale's sign."""
    factor = np.abs(case.arrays["tensor_scale"].view(np.float32)).view(np.uint32)
    return replace(case, arrays={**case.arrays, "tensor_scale": factor})


def wrong_profiles(kernel: str, seen: Callable[[Case], np.ndarray], profile: str = "") -> set[str]:
    """Profiles (or the one, if it is) in which a kernel leaves its bounds."""
    found = set()
    for case in small_cases(kernel):
        if profile in ("", case.profile):
            quantity = expect(case)["y"]
            assert quantity.dtype is not None
            stored = round_to(quantity.dtype, quantity.value) if quantity.exact else quantity.value
            if outside_bound(replace(quantity, value=stored), seen(case)).any():
                found.add(case.profile)
    return found


@pytest.mark.parametrize("kernel", ["fp4_matvec", "fp8_matvec"])
def test_the_right_kernel_stays_within_its_bounds(kernel: str) -> None:
    """Fault: a profile that right code cannot get through."""
    assert small_cases(kernel)
    assert not wrong_profiles(kernel, simulate)


@pytest.mark.parametrize(
    ("kernel", "change", "profile"),
    [
        ("fp4_matvec", positive, "normal"),
        ("fp4_matvec", flushed("scales"), "scale-codes"),
        ("fp8_matvec", flushed("scales"), "row-scales"),
        ("fp8_matvec", flushed("x"), "subnormal"),
    ],
)
def test_lost_signs_and_subnormals_are_noticed(
    kernel: str, change: Callable[[Case], Case], profile: str
) -> None:
    """Fault: profiles in which a sign or a subnormal number makes no difference."""
    assert profile in wrong_profiles(kernel, lambda case: simulate(change(case)), profile)


@pytest.mark.parametrize("kernel", ["fp4_matvec", "fp8_matvec"])
def test_activations_and_results_are_subnormal(kernel: str) -> None:
    """Fault: subnormal profiles whose numbers have become normal."""
    listed = [case for case in small_cases(kernel) if case.profile == "subnormal"]
    smallest = FORMATS["f32"].smallest_normal
    assert listed
    assert all((np.abs(case.f64("x")) < smallest).all() and case.f64("x").all() for case in listed)
    profile = "subnormal" if kernel == "fp4_matvec" else "row-scales"
    results = np.concatenate(
        [expect(c)["y"].value.ravel() for c in small_cases(kernel) if c.profile == profile]
    )
    assert ((results != 0) & (np.abs(results) < smallest)).any()

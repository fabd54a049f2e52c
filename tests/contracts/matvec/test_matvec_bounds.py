"""The matvec bounds: sound for a faithful single precision kernel, and too tight for a faulty one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.contracts.matvec import matvec_plan
from tests.contracts.matvec.matvec_plan import KERNELS, cases, contract, every_fixture
from tests.contracts.matvec.simulated_matvec import simulate
from verify.check.judge import outside_bound
from verify.contract.formats import encode
from verify.contract.model import Case
from verify.fixture.cases import build_cases
from verify.fixture.resolve import ResolvedFixture
from verify.oracle.exact import sampled_disagreements
from verify.oracle.expectation import Quantity, encoded, expect
from verify.oracle.visibility import REQUIRED, weakest_position

FIXTURES = [pytest.param(k, f, id=f"{k}-{f.fixture.name}") for k, f in every_fixture()]


def wrong(quantity: Quantity, seen: np.ndarray) -> np.ndarray:
    """Elements that the compare check would report."""
    if not quantity.exact:
        return outside_bound(quantity, seen)
    assert quantity.dtype is not None
    return encode(quantity.dtype, seen) != encoded(quantity)


@pytest.mark.parametrize(("kernel", "fixture"), FIXTURES)
def test_a_faithful_kernel_is_never_rejected(kernel: str, fixture: ResolvedFixture) -> None:
    """Fault: a bound below what right single precision arithmetic does, on every case of the suite."""
    for case in build_cases(contract(kernel), fixture):
        found = wrong(expect(case)["y"], simulate(case))
        assert not found.any(), f"{case.id}: {np.argwhere(found)[0]}"


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_bound_is_sound_over_many_samples(kernel: str) -> None:
    """Fault: a bound that holds on the fixtures by luck: 100,000 further elements of random shape."""
    rng, samples = np.random.default_rng(3), 0
    fp4 = kernel == "fp4_matvec"
    while samples < 100_000:
        rows, columns = int(rng.integers(100, 400)), int(rng.integers(1, 9))
        depth = 16 * int(rng.integers(1, 130)) if fp4 else int(rng.integers(1, 1200))
        case = random_case(kernel, rows, depth, columns, rng)
        found = outside_bound(expect(case)["y"], simulate(case))
        assert not found.any(), f"{rows} x {depth}, {columns} columns: {np.argwhere(found)[0]}"
        samples += rows * columns


def random_case(kernel: str, rows: int, depth: int, columns: int, rng: np.random.Generator) -> Case:
    """Random codes and scales of random spread, fp32 results."""
    symbols = {"N": rows, "K": depth, "B": columns, "output": 1}
    if kernel == "fp4_matvec":
        symbols |= {"group": int(rng.choice([16, 32])) if depth % 32 == 0 else 16, "scale_format": 0}
    plan = matvec_plan.plan(kernel, {**symbols, "pinned_rows": int(rng.choice([16, 32]))})
    x = rng.standard_normal((columns, depth)) * np.exp2(rng.integers(-8, 9, depth) * rng.integers(0, 2))
    codes = rng.integers(0, 0x7F, (rows, depth)) | rng.integers(0, 2, (rows, depth)) << 7
    arrays = {"x": encode("bf16", x)}
    if kernel == "fp4_matvec":
        arrays["weights"] = rng.integers(0, 256, (rows, depth // 2)).astype(np.uint8)
        arrays["scales"] = codes[:, : depth // symbols["group"]].astype(np.uint8)
        arrays["tensor_scale"] = encode("f32", rng.standard_normal(1))
    else:
        arrays["weights"] = codes.astype(np.uint8)
        arrays["scales"] = encode("f32", rng.standard_normal(rows))
    return Case(contract(kernel), "random", "random", symbols, plan, arrays)


@pytest.mark.parametrize("kernel", KERNELS)
def test_bounds_of_bf16_results_are_tight(kernel: str) -> None:
    """Fault: a bound so wide that a fault hides in it: median slack under 4, on ordinary data."""
    slack = []
    for case in (c for c in cases(kernel) if c.profile == "normal" and c["output"] == 0):
        quantity = expect(case)["y"]
        error = np.abs(simulate(case) - quantity.value)
        slack += (quantity.bound[error > 0] / error[error > 0]).tolist()
    assert len(slack) > 50
    assert np.median(slack) < 4


@pytest.mark.parametrize(("kernel", "fixture"), FIXTURES)
def test_every_weight_is_visible(kernel: str, fixture: ResolvedFixture) -> None:
    """Fault: a fixture in which a dropped weight moves no result by enough to be seen."""
    weakest = weakest_position(build_cases(contract(kernel), fixture))
    assert weakest is not None
    assert weakest.visibility >= REQUIRED, weakest


@pytest.mark.parametrize(("kernel", "fixture"), FIXTURES)
def test_zeros_and_stale_results_are_rejected(kernel: str, fixture: ResolvedFixture) -> None:
    """Fault: an oracle that passes a kernel which writes zeros, or another profile's right answer."""
    built = build_cases(contract(kernel), fixture)
    expected = [expect(case)["y"] for case in built]
    # A single weight may well be zero, or the same in two profiles; not in all of them.
    assert any(wrong(quantity, np.zeros_like(quantity.value)).any() for quantity in expected)
    stale = [*expected[1:], expected[0]]
    assert any(wrong(quantity, old.value).any() for quantity, old in zip(expected, stale, strict=True))


@pytest.mark.parametrize(("kernel", "fixture"), FIXTURES)
def test_reference_and_bound_agree_with_arbitrary_precision(kernel: str, fixture: ResolvedFixture) -> None:
    """Fault: a float64 reference that loses digits, and a bound that would reject an ideal kernel."""
    rng = np.random.default_rng(5)
    for case in build_cases(contract(kernel), fixture):
        assert not list(sampled_disagreements(case, expect(case), 2, rng)), case.id


def test_a_flushed_scale_is_rejected() -> None:
    """Fault: the suite cannot distinguish E8M0 code 0, 2^-127, from zero."""
    wanted = ("every-e8m0-scale", "scale-codes")
    case = next(c for c in cases("fp4_matvec") if (c.fixture, c.profile) == wanted)
    scales = case.arrays["scales"]
    row = int(np.flatnonzero((scales == 0).any(1))[0])
    weights = np.array(case.arrays["weights"])
    weights[row] = 0
    flushed = dataclasses.replace(case, arrays={**case.arrays, "weights": weights})
    assert wrong(expect(case)["y"], simulate(flushed))[:, row].all()

"""Tracked arithmetic at the ends of a format: overflow is followed, silently, and never judged wrongly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from verify import Buffer, Contract, Global
from verify.check.judge import outside_bound
from verify.contract.formats import encode, round_to
from verify.contract.model import Case
from verify.oracle import tracked as t
from verify.oracle.expectation import OracleError, Quantity, expect
from verify.oracle.tracked import Tracked
from verify.wire.expected import interval_keys, ordered_keys

F = np.float32
X = np.concatenate([np.linspace(-1000, 1000, 4001), [-88.8, -88.7228, 88.7228, 88.8, 0.0, 1e30, -1e30, 3e38]])
HALF = t.Arithmetic("f16", flush=False)


def expectation(value: np.ndarray, model: Tracked, dtype: str = "f32") -> Quantity:
    """What a contract with this reference and this error model demands."""
    contract = Contract(
        "range", "range.cu", (), (Buffer("y", dtype, value.shape, "out"),),
        Global("range", (1,), (32,), ("y",)), lambda case: {"y": value}, lambda case: {"y": model},
    )  # fmt: skip
    return expect(Case(contract, "one", "one", {}))["y"]


def swish(x: Any, exp: Callable[[Any], Any], one: Any) -> Any:
    return x / (one + exp(-x))


CALCULATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "x / (1 + e^-x)": (lambda x: swish(x, t.exp, 1.0), lambda x: swish(x, np.exp, x.dtype.type(1))),
    "e^x": (t.exp, np.exp),
    "1 / x^2": (lambda x: 1.0 / (x * x), lambda x: x.dtype.type(1) / (x * x)),
    "log(1 + e^x)": (lambda x: t.log(1.0 + t.exp(x)), lambda x: np.log(x.dtype.type(1) + np.exp(x))),
    "1 / sqrt(x^2)": (lambda x: t.rsqrt(x * x), lambda x: x.dtype.type(1) / np.sqrt(x * x)),
    "-x^2 as a power of two": (lambda x: t.exp2(-(x * x)), lambda x: np.exp2(-(x * x))),
}  # fmt: skip


@pytest.mark.parametrize(("model", "kernel"), CALCULATIONS.values(), ids=CALCULATIONS)
def test_single_precision_kernels_that_overflow_are_within_their_bounds(
    model: Callable[..., Any], kernel: Callable[..., Any]
) -> None:
    """Fault: arithmetic that takes float64's range for the kernel's, and a NumPy warning on the way."""
    x = X.astype(F).astype(np.float64)
    with np.errstate(all="ignore"):
        truth, seen = kernel(x), kernel(x.astype(F)).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quantity = expectation(truth, model(t.exact(x)))
    wrong = outside_bound(quantity, seen)
    assert not wrong.any(), (x[wrong], seen[wrong], quantity.value[wrong], quantity.bound[wrong])


def test_a_certain_overflow_must_be_infinite() -> None:
    """Fault: an overflow that makes the bound so wide that any number passes."""
    x = np.array([89.5, 800.0, 40.0])
    with np.errstate(all="ignore"):
        quantity = expectation(np.exp(x), t.exp(t.exact(x)))
    assert outside_bound(quantity, np.array([3e38, 3e38, 0.0])).all()
    assert not outside_bound(quantity, np.array([np.inf, np.inf, np.exp(40.0)])).any()


def test_half_precision_has_the_range_of_half_precision() -> None:
    """Fault: a range that is always single precision's."""
    x = np.array([200.0, 300.0])
    square = t.multiply(t.exact(x), t.exact(x), HALF)
    assert square.value.tolist() == [40000.0, np.inf]
    assert t.round_result(t.exact(np.array([65519.0, 65521.0])), "f16").value.tolist() == [65519.0, np.inf]
    total = t.total(t.exact(np.full((2, 40), [[1000.0], [2000.0]])), -1, arithmetic=HALF)
    assert np.isfinite(total.bound[0]) and total.value[1] == np.inf


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "e4m3"])
def test_the_limit_is_where_rounding_gives_infinity(dtype: str) -> None:
    """Fault: a limit that is off by the half step past the largest number."""
    limit = t.overflow_limit(dtype)
    if dtype == "e4m3":
        assert limit == np.inf  # it saturates
    else:
        assert round_to(dtype, np.array([limit, np.nextafter(limit, 0)])).tolist() == [
            np.inf,
            round_to(dtype, np.array([np.nextafter(limit, 0)]))[0],
        ]
        assert np.isfinite(round_to(dtype, np.array([np.nextafter(limit, 0)]))[0])


def test_a_sum_that_may_overflow_midway_may_be_infinite() -> None:
    """Fault: a bound that only looks at the final sum: 3e38 + 3e38 - 3e38 depends on the order."""
    added = t.total(t.exact(np.array([3e38, 3e38, -3e38])), 0)
    assert np.isinf(added.bound)
    assert np.isfinite(t.total(t.exact(np.array([1e38, 1e38, -1e38])), 0).bound)


def test_a_reference_past_the_output_s_range_is_an_infinity() -> None:
    """Fault: a right kernel's infinity is compared with a number beyond the format's range."""
    quantity = expectation(np.array([1e5, 1e4]), t.exact(np.array([1e5, 1e4])), "f16")
    assert not outside_bound(quantity, np.array([np.inf, 1e4])).any()
    assert outside_bound(quantity, np.array([65504.0, np.inf])).all()
    low, high = interval_keys(quantity, "f16")
    assert low[0] == high[0] == ordered_keys("f16", encode("f16", np.array([np.inf])))[0]


def test_a_model_that_overflows_inside_allows_the_infinity_and_no_nan() -> None:
    """Fault: an error for a naive norm that overflows, and a NaN that hides behind it."""
    x = np.array([1e30, 1.0])
    quantity = expectation(np.abs(x), t.sqrt(t.exact(x) * t.exact(x)))
    assert not outside_bound(quantity, np.array([np.inf, 1.0])).any()
    assert outside_bound(quantity, np.array([np.nan, np.inf])).all()


def test_a_model_that_misses_an_infinity_of_the_reference_is_refused() -> None:
    """Fault: a reference of 1/0 that no error model explains."""
    with pytest.raises(OracleError, match="differ by more than the bound"):
        expectation(np.array([np.inf]), t.exact(np.array([1.0])))


def test_a_constant_may_be_in_single_precision() -> None:
    """Fault: 0.1 in a model for 0.1f in a kernel; representable constants stay exact."""
    x = np.array([1.0, 3.0])
    product = t.exact(x) * 0.1
    assert (np.abs(x.astype(F) * F(0.1) - product.value) <= product.bound).all()
    assert (t.exact(x) * 0.5).is_exact

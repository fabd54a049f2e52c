"""Power: a bound that passes everything is reported, and a right contract never is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from verify import Buffer, Contract, Global, Profile
from verify.contract.model import Case
from verify.fixture.cases import build_cases
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import Fixture
from verify.oracle import tracked as t
from verify.oracle.expectation import expect
from verify.oracle.power import flat_inputs, powerless, unpromised
from verify.oracle.tracked import Tracked

Model = Callable[[Case], Tracked]
Reference = Callable[[Case], np.ndarray]
Profiles = tuple[Profile, ...]
NORMAL = (Profile("normal", lambda c, g: {"x": g.standard_normal((c["n"], c["c"]))}, "Wrong arithmetic."),)


def reason(
    reference: Reference, model: Model, dtype: str = "f32", *, n: int = 33, c: int = 64, **fields: Any
) -> str:
    """The report on a contract from ``x[n, c]`` to ``y``, whose shape ``reference`` decides."""
    shape = fields.pop("shape", ("n",))
    contract = Contract(
        name="rows",
        source="rows.cu",
        symbols=("n", "c"),
        buffers=(
            Buffer("x", fields.pop("x", "f32"), ("n", "c")),
            Buffer("y", dtype, shape, "out", promised=fields.pop("promised", None)),
        ),
        entry=Global("rows", ("n",), (32,), ("x", "y")),
        reference=lambda case: {"y": reference(case)},
        error_model=lambda case: {"y": model(case)},
        **fields,
    )
    fixture = Fixture("rows", "one", "One.", {"n": n, "c": c})
    cases = build_cases(contract, ResolvedFixture(fixture, {"n": n, "c": c}))
    return powerless(cases, [expect(case) for case in cases], unpromised(cases), flat_inputs(cases))


def row_sum(case: Case) -> np.ndarray:
    return case.f64("x").sum(-1)


def right_sum(case: Case) -> Tracked:
    return t.total(t.exact(case.f64("x")), -1)


def widened(bound: Callable[[Case, np.ndarray], np.ndarray]) -> Model:
    """A row sum whose bound the contract's author made up."""
    return lambda case: Tracked(row_sum(case), bound(case, row_sum(case)))


VACUOUS = {
    "infinite": widened(lambda case, y: np.full_like(y, np.inf)),
    "infinite for one element": widened(lambda case, y: np.where(np.arange(y.size) == 7, np.inf, 1e-6)),
    "absurd": widened(lambda case, y: np.full_like(y, 1e30)),
    "as large as the terms": widened(lambda case, y: np.abs(case.f64("x")).sum(-1)),
    "six tenths of the result": widened(lambda case, y: 0.6 * np.abs(y)),
}


@pytest.mark.parametrize("model", VACUOUS.values(), ids=VACUOUS)
@pytest.mark.parametrize("profiles", [(), NORMAL], ids=["default", "normal"])
def test_a_bound_that_lets_a_halved_result_pass_has_no_power(model: Model, profiles: Profiles) -> None:
    """Fault: a comparison that cannot fail and says clean."""
    assert "no power over y" in reason(row_sum, model, profiles=profiles)


@pytest.mark.parametrize("value", ["as computed", "zero"])
def test_one_element_with_a_bound_beyond_every_result_is_named(value: str) -> None:
    """Fault: a measure by share alone: the bound of one element, of thousands, lets anything pass there."""

    def reference(case: Case) -> np.ndarray:
        x = case.f64("x").copy()
        x[5, 7] *= value == "as computed"
        return x

    def model(case: Case) -> Tracked:
        x = reference(case)
        bound = np.full_like(x, 1e-30)
        bound[5, 7] = 1e30
        return Tracked(x, bound)

    assert "the bound of y[5, 7] is half the largest result" in reason(reference, model, shape=("n", "c"))


def test_single_results_that_cancel_have_power() -> None:
    """Fault: an alarm for results at or near zero, within the bound of their terms, in every profile."""

    def model(case: Case) -> Tracked:
        x = t.exact(case.f64("x"))
        return x - x[:, 3][:, None]

    assert reason(lambda case: model(case).value, model, shape=("n", "c")) == ""


def test_inputs_with_equal_elements_have_no_power() -> None:
    """Fault: a pass for a kernel that reads the first element in place of each, or 1 in place of all."""
    data = {
        "ones": lambda c, g: {"x": np.ones((c["n"], c["c"]))},
        "twos": lambda c, g: {"x": np.full((c["n"], c["c"]), 2.0)},
        "rows": lambda c, g: {"x": np.arange(1.0, 1.0 + c["n"])[:, None] * np.ones((1, c["c"]))},
    }

    def report(*names: str) -> str:
        return reason(row_sum, right_sum, profiles=tuple(Profile(n, data[n], "Nothing.") for n in names))

    assert "all of its elements are equal in every profile" in report("ones", "twos")
    assert report("ones", "rows") == ""


def test_half_of_the_rows_without_a_bound_are_named() -> None:
    """Fault: a measure over the whole output alone: the other rows are judged well."""

    def model(case: Case) -> Tracked:
        x = case.f64("x")
        return Tracked(x, np.where(np.arange(x.shape[0])[:, None] >= 16, 1e6, 1e-6) + 0 * x)

    assert "y[16, all]" in reason(lambda c: c.f64("x"), model, shape=("n", "c"))


def test_a_reference_that_is_nan_has_no_power() -> None:
    """Fault: NaN against NaN: the kernel may return nothing else, whatever it computes."""

    def nan(case: Case) -> np.ndarray:
        return 0.0 * row_sum(case) + np.nan

    assert "is not finite" in reason(nan, lambda case: t.exact(nan(case)))


def test_an_output_that_promises_nothing_has_no_power() -> None:
    """Fault: an all-false promised=, under which no element is looked at."""
    why = reason(row_sum, right_sum, promised=lambda case: np.zeros(case["n"], bool))
    assert "promised= selects no element" in why


def test_a_bound_that_hides_every_position_of_an_input_has_no_power() -> None:
    """Fault: a bound as wide as all that the input does to the result, which itself is large."""

    def shifted(case: Case) -> np.ndarray:
        return row_sum(case) + 1e6

    assert "no power over x" in reason(shifted, lambda case: Tracked(shifted(case), 1e5 + 0 * row_sum(case)))


def softmax(case: Case) -> np.ndarray:
    weight = np.exp(case.f64("x") - case.f64("x").max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True)


def softmax_model(dtype: str) -> Model:
    def model(case: Case) -> Tracked:
        x = t.exact(case.f64("x"))
        weight = t.exp(x - t.maximum(x, -1)[:, None])
        return t.round_result(weight / t.total(weight, -1)[:, None], dtype)

    return model


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("columns", [1, 7, 4096])
@pytest.mark.parametrize("profiles", [(), NORMAL], ids=["default", "normal"])
def test_softmax_has_power_however_small_its_weights(dtype: str, columns: int, profiles: Profiles) -> None:
    """Fault: a false alarm if every single weight is much smaller than 1."""
    model = softmax_model(dtype)
    assert not reason(softmax, model, dtype, n=3, c=columns, shape=("n", "c"), profiles=profiles)


RIGHT = {
    "long sum": (row_sum, right_sum, "f32"),
    "rounded sum": (row_sum, lambda case: t.round_result(right_sum(case), "bf16"), "bf16"),
    "zero": (lambda case: 0 * row_sum(case), lambda case: t.exact(0 * row_sum(case)), "f32"),
    "relu": (
        lambda case: np.maximum(row_sum(case), 0),
        lambda case: Tracked(np.maximum(row_sum(case), 0), right_sum(case).bound),
        "f32",
    ),
    "maximum": (
        lambda case: case.f64("x").max(-1),
        lambda case: t.maximum(t.exact(case.f64("x")), -1),
        "f32",
    ),
    "index of the maximum": (
        lambda case: case.f64("x").argmax(-1).astype(float),
        lambda case: t.exact(case.f64("x").argmax(-1).astype(float)),
        "i32",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("reference", "model", "dtype"), RIGHT.values(), ids=RIGHT)
@pytest.mark.parametrize("columns", [1, 64, 4096])
@pytest.mark.parametrize("profiles", [(), NORMAL], ids=["default", "normal"])
def test_right_contracts_have_power(
    reference: Reference, model: Model, dtype: str, columns: int, profiles: Profiles
) -> None:
    """Fault: false alarms: results near zero, promised zeros, inputs that the result does not follow."""
    assert not reason(reference, model, dtype, c=columns, profiles=profiles)


def test_an_output_that_is_nan_where_a_row_is_empty_has_power() -> None:
    """Fault: a false alarm where the convention for some rows is NaN in every profile."""

    def mean(case: Case) -> np.ndarray:
        return np.where(np.arange(case["n"]) % 3 == 0, np.nan, row_sum(case))

    def model(case: Case) -> Tracked:
        return t.where(np.isnan(mean(case)), t.exact(mean(case)), right_sum(case))

    assert not reason(mean, model)

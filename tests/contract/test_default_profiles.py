"""The default profiles show what ordinary rows hide, and leave right kernels alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from verify import Buffer, Contract, Global
from verify.check.judge import outside_bound
from verify.contract.formats import FORMATS
from verify.contract.model import Case
from verify.fixture.cases import build_cases
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import Fixture
from verify.oracle import tracked as t
from verify.oracle.expectation import expect
from verify.oracle.tracked import Tracked

F = np.float32
Kernel = Callable[[Any, Any], Any]
Model = Callable[[Tracked, Tracked], Tracked]


def cases_of(
    reference: Kernel, model: Model, *, rows: int = 4, columns: int = 33, dtype: str = "f32"
) -> tuple[Case, ...]:
    contract = Contract(
        name="rows",
        source="rows.cu",
        symbols=("rows", "columns"),
        buffers=(
            Buffer("x", dtype, ("rows", "columns")),
            Buffer("weight", dtype, ("columns",)),
            Buffer("y", "f32", ("rows", "columns"), "out"),
        ),
        entry=Global("rows", ("rows",), (32,), ("x", "weight", "y")),
        reference=lambda case: {"y": reference(case.f64("x"), case.f64("weight"))},
        error_model=lambda case: {"y": model(t.exact(case.f64("x")), t.exact(case.f64("weight")))},
    )
    symbols = {"rows": rows, "columns": columns}
    return build_cases(contract, ResolvedFixture(Fixture("rows", "one", "One.", symbols), symbols))


def wrong_profiles(cases: tuple[Case, ...], kernel: Kernel) -> set[str]:
    """Profiles in which a single-precision kernel leaves its bounds."""
    found = set()
    for case in cases:
        with np.errstate(all="ignore"):
            seen = kernel(case.f64("x").astype(F), case.f64("weight").astype(F))
        if outside_bound(expect(case)["y"], seen.astype(np.float64)).any():
            found.add(case.profile)
    return found


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "e4m3", "e5m2"])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_each_kind_of_row_occurs(dtype: str, rows: int) -> None:
    """Fault: a kind of row that a fixture with few rows, or another format, never sees."""
    fmt = FORMATS[dtype]
    by_name = {c.profile: c for c in cases_of(lambda x, w: x, lambda x, w: x, rows=rows, dtype=dtype)}
    flat, small, extreme = (by_name[n].f64("x") for n in ("flat-rows", "denormal-rows", "extreme-rows"))
    assert (flat[0] == 0).all()
    assert (flat[1:2] == flat[1:2, :1]).all() and (flat[1:2] != 0).all()
    assert (small[0] != 0).all() and (np.abs(small[0]) < fmt.smallest_normal).all()
    assert len(np.unique(np.abs(extreme[0]))) == 1 and len(np.unique(extreme[0])) == 2
    assert (by_name["constant"].f64("x") == 1).all()
    assert all((np.abs(by_name[n].f64("weight")) > fmt.smallest_normal).any() for n in by_name)


def softmax(x: np.ndarray, w: np.ndarray) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_model(x: Tracked, w: Tracked) -> Tracked:
    e = t.exp(x - t.maximum(x, -1)[:, None])
    return e / t.total(e, -1)[:, None]


def rms(x: np.ndarray, w: np.ndarray, epsilon: float = 1e-6) -> Any:
    mean = (x * x).sum(-1, keepdims=True) / x.dtype.type(x.shape[-1])
    return x / np.sqrt(mean + x.dtype.type(epsilon)) * w


def rms_model(x: Tracked, w: Tracked, epsilon: float = 1e-6) -> Tracked:
    mean = t.total(x * x, -1)[:, None] / float(x.shape[-1])
    return x * t.rsqrt(mean + epsilon) * w


def spread(x: np.ndarray, w: np.ndarray, epsilon: float = 1e-5) -> Any:
    centred = x - x.sum(-1, keepdims=True) / x.dtype.type(x.shape[-1])
    return centred / np.sqrt(
        (centred * centred).sum(-1, keepdims=True) / x.dtype.type(x.shape[-1]) + F(epsilon)
    )


def spread_model(x: Tracked, w: Tracked, epsilon: float = 1e-5) -> Tracked:
    centred = x - (t.total(x, -1) / float(x.shape[-1]))[:, None]
    return centred / t.sqrt(t.total(centred * centred, -1)[:, None] / float(x.shape[-1]) + epsilon)


RIGHT = {
    "softmax": (softmax, softmax_model),
    "rms norm": (rms, rms_model),
    "rms norm without epsilon": (lambda x, w: rms(x, w, 0.0), lambda x, w: rms_model(x, w, 0.0)),
    "layer norm": (spread, spread_model),
}


@pytest.mark.parametrize(("kernel", "model"), RIGHT.values(), ids=RIGHT)
@pytest.mark.parametrize("rows", [1, 4])
def test_right_kernels_are_clean(kernel: Kernel, model: Model, rows: int) -> None:
    """Fault: a profile that right single-precision code cannot get through."""
    assert not wrong_profiles(cases_of(kernel, model, rows=rows), kernel)


def scaled(x: np.ndarray, guard: bool) -> Any:
    """Through a scale of the row's largest magnitude, and back."""
    top = np.abs(x).max(-1, keepdims=True)
    scale = np.where(top > 0, top, 1) if guard else top
    return x / scale * scale


def test_a_zero_row_is_divided_by_itself() -> None:
    """Fault: default profiles without a zero row: 0 / 0 passes on all the others."""
    cases = cases_of(
        lambda x, w: x, lambda x, w: Tracked(x.value, np.abs(x.value) * 1e-6 + 1e-40), columns=7, rows=3
    )
    assert wrong_profiles(cases, lambda x, w: scaled(x, guard=False)) == {"flat-rows"}
    assert not wrong_profiles(cases, lambda x, w: scaled(x, guard=True))


def test_a_reciprocal_of_a_denormal_scale_is_infinite() -> None:
    """Fault: default profiles without a denormal row: multiplying by 1 / scale overflows there alone."""

    def reciprocal(x: np.ndarray, w: np.ndarray) -> Any:
        top = np.abs(x).max(-1, keepdims=True) / F(8)
        return np.where(top > 0, x * (F(1) / top) * top, x)

    cases = cases_of(lambda x, w: x, lambda x, w: Tracked(x.value, np.abs(x.value) * 1e-6 + 1e-38))
    assert wrong_profiles(cases, reciprocal) == {"denormal-rows"}


def test_a_spread_as_a_difference_of_squares_is_negative() -> None:
    """Fault: default profiles without a constant row other than 1: rounding makes its spread negative."""

    def squares(x: np.ndarray, w: np.ndarray) -> Any:
        n = F(x.shape[-1])
        mean = x.sum(-1, keepdims=True) / n
        return (x - mean) / np.sqrt((x * x).sum(-1, keepdims=True) / n - mean * mean)

    names = wrong_profiles(cases_of(spread, spread_model, rows=8), squares)
    assert "flat-rows" in names

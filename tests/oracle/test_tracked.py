"""Tracked arithmetic: every operation's bound holds for float32, and vanishes where float32 is exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from verify.contract.formats import decode, encode, round_to
from verify.oracle import tracked as t

F = np.float32
RNG_SEED = 7


def values(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """float32 values over many binades, some equal, some tiny."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)
    x = np.where(rng.random(shape) < 0.05, 1e-41, x)
    return x.astype(F).astype(np.float64)


def holds(model: t.Tracked, seen: np.ndarray) -> None:
    over = np.abs(seen.astype(np.float64) - model.value) > model.bound
    assert not over.any(), f"{over.sum()} of {over.size} past the bound"


@pytest.mark.parametrize(
    ("model", "kernel"),
    [
        (lambda a, b: a + b, lambda a, b: a + b),
        (lambda a, b: a - b, lambda a, b: a - b),
        (lambda a, b: a * b, lambda a, b: a * b),
        (lambda a, b: a / b, lambda a, b: a / b),
        (lambda a, b: (a * b - b) / (a + 3.0), lambda a, b: (a * b - b) / (a + F(3))),
        (lambda a, b: 1.0 / (b * b + 1.0), lambda a, b: F(1) / (b * b + F(1))),
        (lambda a, b: t.exp2(a - b), lambda a, b: np.exp2((a - b).astype(np.float64)).astype(F)),
    ],
)  # fmt: skip
def test_elementwise_bounds_hold(model: Callable[..., Any], kernel: Callable[..., Any]) -> None:
    """Fault: an operation that forgets its own rounding or what its operands bring along."""
    rng = np.random.default_rng(RNG_SEED)
    a, b = values(rng, (20000,)), values(rng, (20000,))
    with np.errstate(all="ignore"):
        seen = kernel(a.astype(F), b.astype(F))
        bounded = model(t.exact(a), t.exact(b))
    finite = np.isfinite(bounded.bound) & np.isfinite(bounded.value) & np.isfinite(seen)
    assert finite.mean() > 0.5
    holds(bounded[finite], seen[finite])


def test_flushing_subnormals_is_inside_the_bound() -> None:
    """Fault: a bound without an absolute term: the relative error of a flushed result is 1."""
    a, b = np.array([2.0**-70]), np.array([1.5 * 2.0**-60])
    holds(t.multiply(t.exact(a), t.exact(b)), np.zeros(1))
    holds(t.exp2(t.exact(np.array([-140.0]))), np.zeros(1))


def sums(x: np.ndarray, order: str) -> np.ndarray:
    """float32 sums of ``[rows, n]`` along the last axis."""
    if order == "pairwise":
        while x.shape[1] > 1:
            x = np.pad(x, ((0, 0), (0, x.shape[1] % 2)))
            x = (x[:, 0::2] + x[:, 1::2]).astype(F)
        return x[:, 0]
    columns = range(x.shape[1]) if order == "forward" else range(x.shape[1] - 1, -1, -1)
    held = np.zeros(len(x), F)
    for i in columns:
        held = (held + x[:, i]).astype(F)
    return held


@pytest.mark.parametrize("order", ["forward", "backward", "pairwise"])
@pytest.mark.parametrize("count", [1, 2, 37, 500])
def test_sums_hold_in_every_order(order: str, count: int) -> None:
    """Fault: a depth that is one short, and a bound that holds for one order only."""
    rng = np.random.default_rng(count)
    x = values(rng, (500, count))
    holds(t.total(t.exact(x), -1), sums(x.astype(F), order))
    if order == "pairwise":
        holds(t.total(t.exact(x), -1, depth=int(np.ceil(np.log2(max(count, 2))))), sums(x.astype(F), order))


@pytest.mark.parametrize("fused", [True, False])
def test_dot_products_hold_fused_or_not(fused: bool) -> None:
    """Fault: a bound that holds only when the compiler fuses, or only when it does not."""
    rng = np.random.default_rng(RNG_SEED)
    a, b = values(rng, (400, 129)), values(rng, (400, 129))
    held = np.zeros(400, F)
    for i in range(129):
        product = a[:, i] * b[:, i] if fused else (a[:, i] * b[:, i]).astype(F).astype(np.float64)
        held = (held + product).astype(F)
    holds(t.dot(t.exact(a), t.exact(b)), held)


def test_bounds_of_inputs_are_carried_through_sums_and_products() -> None:
    """Fault: an operand's bound that is dropped: the inputs are moved by all that they may be off."""
    rng = np.random.default_rng(RNG_SEED)
    a, b = values(rng, (300, 64)), values(rng, (300, 64))
    off = np.abs(a) * 1e-4
    moved = (a + rng.choice([-1, 1], a.shape) * off).astype(F).astype(np.float64)
    slightly = t.Tracked(a, off * (1 + 1e-3) + 1e-38)
    holds(t.dot(slightly, t.exact(b)), sums((moved * b).astype(F), "forward"))
    holds(t.total(slightly, -1), sums(moved.astype(F), "forward"))
    holds(t.maximum(slightly, -1), moved.max(-1))


def test_exact_sums_have_no_bound_and_inexact_ones_have_one() -> None:
    """Fault: an exactness detector that never fires, or fires one bit too late."""
    fits = np.array([[2.0**23, 2.0**23 - 1, -3.0]])
    over = np.array([[2.0**23, 2.0**23, 1.0]])
    assert t.total(t.exact(fits[:, :2]), -1).is_exact
    assert not t.total(t.exact(over), -1).is_exact
    assert not t.total(t.exact(fits[:, :2] * 2.0**-130), -1).is_exact
    small = np.array([[3.0, -5.0, 7.0, 2.0**10]]) * 2.0**-12
    assert t.dot(t.exact(small), t.exact(small), -1).is_exact
    assert (t.exact(0.5) + 0.25).is_exact
    assert not (t.exact(1.0) + 2.0**-30).is_exact


def test_a_dot_product_names_shapes_that_do_not_broadcast() -> None:
    """Fault: dot taken for a matrix product ends in an error of NumPy that names neither argument."""
    rows, columns = t.exact(np.ones((2, 3))), t.exact(np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"dot: the shapes \(2, 3\) and \(3, 4\)"):
        t.dot(rows, columns)
    wide = t.dot(t.exact(np.ones((2, 1, 3))), t.exact(np.ones((1, 4, 3))))
    assert wide.value.tolist() == [[3.0] * 4] * 2


def test_the_grid_is_the_lowest_bit_of_any_value() -> None:
    """Fault: an exponent that is off by one, and zeros that spoil the minimum."""
    assert t.grid(np.array([0.0, 3.0, 8.0]), 0) == 0
    assert t.grid(np.array([0.75, 2.0**30, 0.0]), 0) == -2
    assert t.grid(np.array([6.0, 40.0]), 0) == 1


def test_rounding_to_a_format_is_bounded_by_the_rounded_interval() -> None:
    """Fault: a final rounding is omitted or counted twice."""
    rng = np.random.default_rng(RNG_SEED)
    true = rng.standard_normal(20000)
    bound = np.abs(true) * 1e-5
    seen = decode("bf16", encode("bf16", true + bound * rng.uniform(-1, 1, true.shape)))
    model = t.round_result(t.Tracked(true, bound), "bf16")
    holds(model, seen)
    alone = np.abs(round_to("bf16", true) - true)
    assert np.median(model.bound / np.maximum(alone, 1e-30)) < 1.05


def test_a_softmax_written_with_operators_is_sound() -> None:
    """Fault: a user's error model, as the documentation shows it, that would reject a right kernel."""
    rng = np.random.default_rng(RNG_SEED)
    x = (rng.standard_normal((50, 300)) * 4).astype(F)
    model = t.exact(x.astype(np.float64))
    weights = t.exp(model - t.maximum(model, -1)[:, None])
    expected = weights / t.total(weights, -1)[:, None]
    shifted = (x - x.max(-1, keepdims=True)).astype(F)
    raised = np.exp2((shifted * F(np.log2(np.e))).astype(np.float64)).astype(F)
    holds(expected, (raised / sums(raised, "forward")[:, None]).astype(F))
    exact_value = np.exp(model.value - model.value.max(-1, keepdims=True))
    np.testing.assert_allclose(expected.value, exact_value / exact_value.sum(-1, keepdims=True), rtol=1e-13)

"""Roots with bounds: an unsound one would flag a right normalisation, a loose one would hide a wrong one."""

import numpy as np

from verify.oracle import tracked as t


def test_float32_roots_stay_within_their_bounds() -> None:
    """Fault: the bound of a root of an inexact sum does not hold for float32 arithmetic in some order."""
    generator = np.random.default_rng(7)
    x = generator.standard_normal((200, 333)).astype(np.float32)
    squares = t.total(t.exact(x.astype(np.float64)) * t.exact(x.astype(np.float64)), -1)
    for order in (slice(None), slice(None, None, -1)):
        total = np.add.accumulate((x * x)[:, order], axis=1, dtype=np.float32)[:, -1]
        root = t.sqrt(squares)
        assert np.all(np.abs(np.sqrt(total).astype(np.float64) - root.value) <= root.bound)
        inverse = t.rsqrt(squares)
        seen = (np.float32(1) / np.sqrt(total)).astype(np.float64)
        assert np.all(np.abs(seen - inverse.value) <= inverse.bound)


def test_root_of_an_exact_value_is_rounded_once() -> None:
    """Fault: a bound far above half a unit hides a wrong last bit."""
    x = np.linspace(0.5, 9.0, 1000)
    root = t.sqrt(t.exact(x))
    assert np.all(root.bound <= 1.001 * 2.0**-24 * root.value + 2.0**-120)
    assert t.sqrt(t.exact(np.zeros(3))).bound.max() <= 2.0**-120

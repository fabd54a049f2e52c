"""Faults of the matvec kernels: the kernel in single precision on altered inputs, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.contracts.matvec.matvec_plan import contract, resolved
from tests.contracts.matvec.simulated_matvec import simulate
from verify.diagnosis.altered import altered
from verify.diagnosis.diagnose import Diagnosis, diagnose
from verify.diagnosis.evidence import Evidence
from verify.fixture.cases import build_cases
from verify.oracle.expectation import expect

Change = Callable[[np.ndarray], np.ndarray]


def said_of(kernel: str, buffer: str, change: Change, spoil: bool = False) -> Diagnosis | None:
    """The diagnosis of a right kernel that takes an input for another, in all profiles of a fixture."""
    one = next(r for r in resolved(kernel) if r.fixture.name == "step")
    runs = []
    for case in build_cases(contract(kernel), one):
        y = simulate(altered(case, {buffer: change(case.f64(buffer))}))
        if spoil and not np.isnan(y[0, -1]):
            y[0, -1] = 1.25 * y[0, -1] + 1
        runs.append(Evidence(altered(case), expect(case), {"y": y}))
    return diagnose(sorted(runs, key=lambda run: not run.fails), seconds=60)


def at(which: Callable[[np.ndarray], np.ndarray], change: Change) -> Change:
    """A change of some columns."""

    def changed(x: np.ndarray) -> np.ndarray:
        return np.where(which(np.arange(x.shape[1])), change(x), x)

    return changed


def pairs_turned(x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:-1], -1, 2)[..., ::-1].reshape(x.shape)


FAULTS: dict[str, tuple[str, str, Change]] = {
    "weights k with k // 4 % 2 = 1 left out": (
        "fp4_matvec", "x", at(lambda k: k // 4 % 2 == 1, np.zeros_like),
    ),
    "weights k with k // 16 % 2 = 1 left out": (
        "fp4_matvec", "x", at(lambda k: k // 16 % 2 == 1, np.zeros_like),
    ),
    "weights from 960 on left out": ("fp8_matvec", "x", at(lambda k: k >= 960, np.zeros_like)),
    "the sign of even weights lost": ("fp4_matvec", "weights", at(lambda k: k % 2 == 0, np.abs)),
    "nibbles swapped": ("fp4_matvec", "weights", pairs_turned),
    "weights of 0 decoded as 0.5": (
        "fp4_matvec", "weights", lambda w: np.where(w == 0, np.copysign(0.5, w), w),
    ),
    "scales read at index i & ~1 along K // group": (
        "fp4_matvec", "scales", lambda s: np.repeat(s[:, ::2], 2, axis=1),
    ),
    "tensor_scale ignored (taken for 1)": ("fp4_matvec", "tensor_scale", np.ones_like),
}  # fmt: skip


@pytest.mark.parametrize("says", FAULTS)
def test_fault_is_named(says: str) -> None:
    """Fault: a wrong y is shown, and which weights or scales are to blame is left to a person."""
    found = said_of(*FAULTS[says])
    assert found is not None
    assert found.certain, found.says
    assert says in found.says


@pytest.mark.parametrize("says", FAULTS)
def test_what_one_row_contradicts_is_not_named(says: str) -> None:
    """Fault: a fault of most rows is named although one row has another."""
    assert said_of(*FAULTS[says], spoil=True) is None


def test_a_right_kernel_is_not_diagnosed() -> None:
    """Fault: there is something to say of right outputs."""
    assert said_of("fp8_matvec", "x", lambda x: x) is None


def test_weights_lost_at_random_have_no_name() -> None:
    """Fault: the family of dropped terms is so large that one of them matches anything."""
    some = np.random.default_rng(5).random(4096) < 0.1
    assert said_of("fp4_matvec", "x", at(lambda k: some[k], np.zeros_like)) is None

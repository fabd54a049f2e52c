"""What a contract's reference and error model return is held to the shape of the output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from verify import Buffer, Contract, Global
from verify.fixture.cases import build_cases
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import Fixture
from verify.oracle.expectation import OracleError, expect
from verify.oracle.tracked import Tracked

ONES, SCALAR, ROW, EMPTY = np.ones((3, 4)), np.array(1.0), np.ones((1, 4)), np.ones((0, 4))


def expected(reference: np.ndarray, value: np.ndarray, bound: np.ndarray) -> np.ndarray:
    contract = Contract(
        name="copy",
        source="copy.cu",
        symbols=("n", "c"),
        buffers=(Buffer("x", "f32", ("n", "c")), Buffer("y", "f32", ("n", "c"), "out")),
        entry=Global("copy", ("n",), (32,), ("x", "y")),
        reference=lambda case: {"y": reference},
        error_model=lambda case: {"y": Tracked(value, bound)},
    )
    symbols = {"n": 3, "c": 4}
    (case, *_) = build_cases(contract, ResolvedFixture(Fixture("copy", "one", "One.", symbols), symbols))
    return expect(case)["y"].value


@pytest.mark.parametrize("wrong", [SCALAR, ROW, EMPTY, 1.0], ids=["scalar", "row", "empty", "number"])
def test_another_shape_is_one_line_and_never_broadcast(wrong: Any) -> None:
    """Fault: one row is compared with all, or a fault of the contract ends in a traceback."""
    with pytest.raises(OracleError, match=r"y: the reference has the shape .*, must have \(3, 4\)"):
        expected(wrong, wrong, wrong)
    with pytest.raises(OracleError, match=r"y: the error model has the shape"):
        expected(ONES, wrong, ONES)
    with pytest.raises(OracleError, match=r"y: the bound of the error model has the shape"):
        expected(ONES, ONES, wrong)


def test_the_shape_of_the_output_is_used() -> None:
    """Fault: a right contract refused."""
    assert (expected(ONES, ONES, 0 * ONES) == ONES).all()

"""Each general fault, made in NumPy by a formula of its own, is named; what is only like one is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.diagnosis.weighted import COLUMNS, ROWS, Kernel, right, runs
from verify.contract.hypothesis import Hypothesis, Prediction
from verify.contract.model import Case
from verify.diagnosis.diagnose import diagnose

Change = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray, int, float]]


def of_inputs(change: Change) -> Kernel:
    """A kernel that is right but for what it takes its inputs for."""
    return lambda *inputs: right(*change(*inputs))


FAULTS: dict[str, Kernel] = {
    "y all zero": lambda *inputs: np.zeros(ROWS),
    "y multiplied by -1": lambda *inputs: -right(*inputs),
    "y multiplied by 2": lambda *inputs: 2 * right(*inputs),
    "the result of the index from the end along rows in y": lambda *inputs: right(*inputs)[::-1],
    "the result of the next along rows in y": lambda *inputs: np.roll(right(*inputs), -1),
    "the result of index i ^ 1 along rows in y": lambda *i: right(*i).reshape(-1, 2)[:, ::-1].ravel(),
    "length taken for 12, not 13": of_inputs(lambda w, x, s, n, c: (w, x, s, n - 1, c)),
    "length taken for 14, not 13": of_inputs(lambda w, x, s, n, c: (w, x, s, n + 1, c)),
    "scale taken for its default, 1, not 0.3": of_inputs(lambda w, x, s, n, c: (w, x, s, n, 1.0)),
    "scale taken for its square": of_inputs(lambda w, x, s, n, c: (w, x, s, n, c * c)),
    "w without its sign": of_inputs(lambda w, x, s, n, c: (np.abs(w), x, s, n, c)),
    "s ignored (taken for 1)": of_inputs(lambda w, x, s, n, c: (w, x, np.ones(ROWS), n, c)),
    "s inverted": of_inputs(lambda w, x, s, n, c: (w, x, 1 / s, n, c)),
    "s read at index i ^ 1 along rows": of_inputs(
        lambda w, x, s, n, c: (w, x, s.reshape(-1, 2)[:, ::-1].ravel(), n, c)
    ),
    "s read at index 0 for all along rows": of_inputs(lambda w, x, s, n, c: (w, x, s[:1].repeat(6), n, c)),
    "x read at the next index along columns": of_inputs(lambda w, x, s, n, c: (w, np.roll(x, -1), s, n, c)),
    "x read at index i - i % 4 along columns": of_inputs(
        lambda w, x, s, n, c: (w, x[::4].repeat(4), s, n, c)
    ),
}


@pytest.mark.parametrize("says", FAULTS)
def test_fault_is_named(says: str) -> None:
    """Fault: the suite sees that numbers are wrong, and leaves it to a person to find out how."""
    found = diagnose(runs(FAULTS[says]), seconds=30)
    assert found is not None
    assert found.certain, found.says
    assert says in found.says


def almost(says: str) -> Kernel:
    """The fault, but one element is somewhere else."""

    def kernel(*inputs: Any) -> np.ndarray:
        given = np.array(FAULTS[says](*inputs))
        given[3] += 1e-3
        return given

    return kernel


@pytest.mark.parametrize("says", FAULTS)
def test_one_contradicting_element_rules_out_a_diagnosis(says: str) -> None:
    """Fault: a fault is named that most elements match, which is a wrong name given with confidence."""
    assert diagnose(runs(almost(says)), seconds=30) is None


def test_a_fault_in_one_run_must_explain_the_other() -> None:
    """Fault: the first failing case is explained, and the next one, which fails otherwise, is passed over."""
    wrong, other = runs(FAULTS["s inverted"])[:1], runs(FAULTS["w without its sign"])[1:]
    assert diagnose([*wrong, *other], seconds=30) is None


def test_a_right_run_excludes_a_fault_that_would_show_there() -> None:
    """Fault: only failing cases are tested, and a fault is named that a passing case rules out."""
    wrong, clean = runs(FAULTS["s inverted"])[:1], runs(right)[1:]
    assert diagnose([*wrong, *clean], seconds=30) is None


def test_right_outputs_get_no_diagnosis() -> None:
    """Fault: a clean run costs time and gets a sentence."""
    assert diagnose(runs(right)) is None


def test_little_evidence_is_not_enough() -> None:
    """Fault: a result a little outside its bound is explained by the first of hundreds that fits."""

    def predict(case: Case, seen: object) -> list[Prediction]:
        value = case.reference["y"].copy()
        value[0] *= 1 + 2.0**-16
        return [Prediction("a little more", {"y": value})]

    def kernel(w: np.ndarray, x: np.ndarray, s: np.ndarray, n: int, c: float) -> np.ndarray:
        given = right(w, x, s, n, c)
        given[0] *= 1 + 2.0**-16
        return given

    found = diagnose(runs(kernel, Hypothesis("little", predict)), seconds=30)
    assert found is None or not found.certain


def test_a_contract_adds_its_own() -> None:
    """Fault: a contract's hypotheses are accepted and never tried."""

    def dropped(case: Case, seen: object) -> list[Prediction]:
        w = case.f64("w") * (np.arange(COLUMNS) != 7)
        inputs = (case.f64("x"), case.f64("s"), 13, 0.3)
        return [Prediction("column 7 dropped", {"y": right(w, *inputs)})]

    def kernel(w: np.ndarray, x: np.ndarray, s: np.ndarray, n: int, c: float) -> np.ndarray:
        return right(w, np.where(np.arange(COLUMNS) == 7, 0.0, x), s, n, c)

    found = diagnose(runs(kernel, Hypothesis("dropped", dropped)), seconds=30)
    assert str(found) == "matches the reference with column 7 dropped"


def test_alternatives_are_named_as_such() -> None:
    """Fault: of two faults that the runs cannot distinguish, the first is named with confidence."""
    nearly = Hypothesis(
        "nearly", lambda case, seen: [Prediction("nearly twice", {"y": 2 * (1 + 1e-9) * case.reference["y"]})]
    )
    found = diagnose(runs(FAULTS["y multiplied by 2"], nearly), seconds=30)
    assert found is not None
    assert not found.certain
    assert str(found) == ("consistent with the reference with nearly twice, or with y multiplied by 2")


def test_out_of_time_is_not_certain() -> None:
    """Fault: a fault is the only one that matches because the others were not tried."""

    def slowly(case: Case, seen: object) -> Iterator[Prediction]:
        yield Prediction("zeros", {"y": np.zeros(ROWS)})
        ends = time.thread_time() + 0.2
        while time.thread_time() < ends:
            pass
        yield Prediction("ones", {"y": np.ones(ROWS)})

    made = runs(FAULTS["y all zero"], Hypothesis("constants", slowly))
    late, whole = diagnose(made, seconds=0.1), diagnose(made, seconds=30)
    assert late is not None and not late.certain
    assert whole is not None and whole.certain

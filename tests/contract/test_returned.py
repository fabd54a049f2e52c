"""What a contract's functions return is held to what they must return, in one line that names the field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from verify.contract.discovery import load_contract
from verify.contract.model import Case, Profile
from verify.contract.returned import ReturnedError, array
from verify.fixture.cases import build_case
from verify.fixture.resolve import ResolvedFixture
from verify.fixture.schema import Fixture
from verify.gate.blame import blame
from verify.oracle.expectation import expect

EXAMPLE = Path(__file__).parents[2] / "examples" / "row_softmax" / "row_softmax_contract.py"
CONTRACT = load_contract(EXAMPLE)
SYMBOLS = {"rows": 2, "columns": 3, "pitch": 3}


def case_of(**fields: Any) -> Case:
    """A case of the example's contract, with other fields."""
    contract = replace(CONTRACT, **fields)
    resolved = ResolvedFixture(Fixture("row_softmax", "one", "pins", {}), SYMBOLS)
    profile = Profile("given", lambda case, g: {"x": g.normal(size=(2, 3))}, "Anything.")
    return build_case(contract, resolved, (contract.profiles or (profile,))[0])


def with_buffer(index: int, **fields: Any) -> dict[str, Any]:
    buffers = list(CONTRACT.buffers)
    buffers[index] = replace(buffers[index], **fields)
    return {"buffers": tuple(buffers)}


def use(case: Case) -> None:
    """What every check asks a contract for."""
    for buffer in case.contract.buffers:
        case.live(buffer.name)
    expect(case)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            with_buffer(1, promised=lambda case: np.ones(0, bool)),
            "y: promised: row_softmax/one/given: returned the shape (0,), which does not broadcast to (2, 3)",
        ),
        (
            with_buffer(0, live=lambda case: None),
            "x: live: row_softmax/one/given: must return numbers, returned None",
        ),
        ({"reference": lambda case: {"y": "text"}}, "reference: y: must return numbers, returned 'text'"),
    ],
)
def test_a_missing_value_names_file_and_field(fields: dict[str, Any], line: str) -> None:
    """Fault: only NumPy's message, which names no field; or a mask of None that means all dead."""
    case = case_of(**fields)
    with pytest.raises(ReturnedError) as caught:
        use(case)
    assert blame(caught.value) == (f"{EXAMPLE}: {line}", 2)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["x"], "row_softmax: profile bad: must return a dict by name, returned ['x']"),
        ({"x": "text"}, "row_softmax: profile bad: x: must return numbers, returned 'text'"),
        ({"x": None}, "row_softmax: profile bad: x: must return numbers, returned None"),
    ],
)
def test_a_profile_that_gives_no_arrays_is_named(given: Any, line: str) -> None:
    """Fault: a profile that returns a list is called a defect of the suite."""
    profile = Profile("bad", lambda case, generator: given, "Anything.")
    with pytest.raises(ReturnedError) as caught:
        case_of(profiles=(profile,))
    assert str(caught.value) == line


def test_numbers_of_any_type_are_taken_as_they_are() -> None:
    """Fault: a right value is refused, copied, or loses its fraction."""
    values = np.ones((2, 3), np.float32)
    assert array(values, None, "at") is values
    assert array(1.5, None, "at", (2,)).tolist() == [1.5, 1.5]
    assert array([True, False], bool, "at", (3, 2)).shape == (3, 2)

"""A contract's fields: what Python takes and the suite would misread is refused, with file and field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verify.contract.compared import Intermediate
from verify.contract.discovery import ContractError, check_contract, find_contracts
from verify.contract.entries import Global, Launcher, Refusal
from verify.contract.field_types import wrong_types
from verify.contract.model import Buffer, Contract, Plan
from verify.contract.symbols import DtypeChoice, Symbol

RIGHT = Contract(
    name="k",
    source="k.cu",
    symbols=("rows", Symbol("columns", default="rows")),
    buffers=(Buffer("x", "f32", ("rows",)), Buffer("y", "f32", ["rows"], "out", live=None)),  # type: ignore[arg-type]
    entry=Launcher("k", ("x", "y", "rows")),
    reference=lambda case: {},
    error_model=lambda case: {},
)
X = Buffer("x", "f32", ("rows",))


def wrong(**fields: Any) -> Buffer:
    """X with fields of other types than they are declared as."""
    return replace(X, **fields)


def torch_like(case: object) -> dict[str, object]:
    return {}


def test_right_contracts_pass() -> None:
    """Fault: a contract that says nothing wrong is refused."""
    assert not list(wrong_types(RIGHT, Path("k")))
    for contract in find_contracts():
        assert not list(wrong_types(contract, Path("k")))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"architectures": "sm_90"},
            "architectures: must be a tuple, is 'sm_90'; a tuple of one has a comma",
        ),
        ({"symbols": "rows"}, "symbols: must be a tuple, is 'rows'"),
        ({"buffers": X}, "buffers: must be a tuple, is Buffer(...)"),
        ({"buffers": (X, "y")}, "buffers: number 2: must be a Buffer, is 'y'"),
        ({"buffers": (wrong(shape="rows"),)}, "x: shape: must be a tuple, is 'rows'"),
        ({"buffers": (wrong(align="16"),)}, "x: align: must be an integer, is '16'"),
        (
            {"buffers": (wrong(role="output"),)},
            "x: role: must be in or out or inout or workspace, is 'output'",
        ),
        (
            {"buffers": (wrong(overread="mask"),)},
            "x: overread: must be strict or masked, is 'mask'",
        ),
        ({"buffers": (wrong(live=(True,)),)}, "x: live: must be a function, is (True,)"),
        ({"symbols": (Symbol("rows", "integer"),)}, "rows: kind: must be int or float or ints, is 'integer'"),  # type: ignore[arg-type]
        ({"symbols": (Symbol("rows", minimum="1"),)}, "rows: minimum: must be an integer, is '1'"),  # type: ignore[arg-type]
        ({"entry": "k"}, "entry: must be a Launcher or a Global or a tuple, is 'k'"),
        ({"entry": (Launcher("k", "x"),)}, "k: args: must be a tuple or a dict, is 'x'"),  # type: ignore[arg-type]
        ({"entry": Global("k", "rows", (32,), ("x",))}, "k: grid: must be a tuple, is 'rows'"),  # type: ignore[arg-type]
        ({"refusals": (Refusal("null", null="x"),)}, "null: null: must be a tuple, is 'x'"),  # type: ignore[arg-type]
        ({"intermediates": (Intermediate("p", "x", "f32", "rows"),)}, "p: shape: must be a tuple"),  # type: ignore[arg-type]
        ({"plan": Plan("plan", "Result", "tile")}, "plan: fields: must be a tuple, is 'tile'"),  # type: ignore[arg-type]
        ({"reference": {}}, "reference: must be a function, is {}"),
        ({"error_model": None}, "error_model: must be a function, is None"),
        ({"batch": 3}, "batch: must be text, is 3"),
        ({"row_reads": ("x",)}, "row_reads: must be a dict, is ('x',)"),
        ({"name": None}, "name: must be text, is None"),
        ({"architectures": (90,)}, "architectures: number 1: must be text, is 90"),
        ({"exact": (("normal", 1),)}, "exact: number 1: number 2: must be text, is 1"),
        (
            {"buffers": (replace(X, dtype=DtypeChoice("kind", "f32")),)},  # type: ignore[arg-type]
            "x: dtype: choices: must be a tuple, is 'f32'",
        ),
        ({"parity": [torch_like]}, "parity: must be a dict"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(changes: dict[str, Any], said: str) -> None:
    """Fault: a string is taken letter by letter, a misspelt role drops a check, or the suite falls over."""
    with pytest.raises(ContractError) as caught:
        check_contract(replace(RIGHT, **changes), Path("k_contract.py"))
    assert str(caught.value).startswith(f"k_contract.py: {said}")

"""Contracts that contradict themselves: a misspelt name must not drop a check or blame the kernel."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from verify import Buffer, Global, Refusal
from verify.contract.compared import Intermediate
from verify.contract.consistency import contradictions
from verify.contract.discovery import find_contracts
from verify.contract.model import Contract, Plan
from verify.contract.symbols import DtypeChoice, Symbol


def row_softmax() -> Contract:
    return find_contracts([str(Path(__file__).parents[2] / "examples" / "row_softmax")])[0]


def test_right_contracts_have_no_contradiction() -> None:
    """Fault: a right contract is rejected."""
    for contract in (*find_contracts(), row_softmax()):
        assert list(contradictions(contract, Path("c.py"))) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"exact": (("nope", "y"),)}, "exact: 'nope' is not one of normal"),
        ({"pinned": {"nope": 2}}, "pinned: 'nope'"),
        ({"captured_at": {"len": 3}}, "captured_at: 'len'"),
        ({"row_reads": {"xx": 2}}, "row_reads: 'xx' is not one of x, y"),
        ({"refusals": (Refusal("none", null=("xx",)),)}, "refusal none: 'xx'"),
        ({"refusals": (Refusal("none", {"rowz": 0}),)}, "refusal none: symbols: 'rowz'"),
        ({"architectures": ("sm_12",)}, "architectures: 'sm_12'"),
        ({"entry": Global("k", ("rowz",), (1,), ("x",))}, "k: geometry: 'rowz'"),
        ({"entry": Global("k", ("rows",), (1,), ("pich",))}, "k: args: 'pich'"),
        ({"buffers": (Buffer("x", "f32", ("rows",), align=3),)}, "x: align: must be a power of two, is 3"),
        ({"buffers": (Buffer("x", "f32", ("rows",), align=2),)}, "x: align: is 2, but one f32 has 4 bytes"),
        ({"buffers": (Buffer("x", "float32", ("rows",)),)}, "x: dtype: 'float32' is not one of f64"),
        ({"buffers": (Buffer("x", "f32", ("rowz",)),)}, "x: shape: 'rowz'"),
        ({"buffers": (Buffer("x", "f32", ("rows",), strides=("pich",)),)}, "x: strides: 'pich'"),
        ({"buffers": (Buffer("x", "f32", ("rows +",)),)}, "x: shape: 'rows +' is not an expression"),
        ({"buffers": (Buffer("x", DtypeChoice("kind", ("f32",)), ("rows",)),)}, "x: dtype: 'kind'"),
        ({"symbols": ("rows", "columns", Symbol("pitch", default="colums"))}, "pitch: default: 'colums'"),
        ({"intermediates": (Intermediate("o", "y", "f32", ("parts",)),)}, "o: shape: 'parts'"),
        ({"row_reads": {"x": "rowz"}}, "row_reads: 'rowz'"),
        ({"pinned": {"rows": "auto"}}, "pinned: 'auto'"),
        ({"refusals": (Refusal("none", {"rows": "rowz - 1"}),)}, "refusal none: symbols: 'rowz'"),
        ({"plan": Plan("p", "r", (), args=("rows", "sms"))}, "p: args: 'sms'"),
    ],
)
def test_misspelt_name(change: dict[str, Any], said: str) -> None:
    """Fault: a misspelt name passes, or its message lacks the file, the field or the known names."""
    contract = dataclasses.replace(row_softmax(), **change)
    lines = list(contradictions(contract, Path("c.py")))
    assert any(line.startswith("c.py: ") and said in line for line in lines), lines

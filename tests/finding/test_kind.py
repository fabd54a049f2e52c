"""The kinds of faults: each is declared once, and has the family that the report folds by."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from verify.finding.finding import Finding
from verify.finding.kind import Family, FaultKind, family_of_kind

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("outside the bound", Family.OUTPUTS),
        ("padding read", Family.READS),
        ("hang on bad input", Family.END),
        ("disagrees with torch", Family.ORACLE),
        ("Invalid __global__ read of size 4 bytes", None),
        ("disagreement", None),
    ],
)
def test_a_kind_has_its_family(kind: str, family: Family | None) -> None:
    """Fault: a tool's kind is folded into a check's, or a check's kind stands apart from its family."""
    assert family_of_kind(kind) is family


def test_a_kind_is_its_text_in_every_format() -> None:
    """Fault: JSON, a suppression's pattern or a message holds the name of the member."""
    kind = FaultKind.OUTSIDE_BOUND
    assert json.loads(json.dumps(kind)) == f"{kind}" == "outside the bound"


def test_checks_report_declared_kinds_alone() -> None:
    """Fault: a check words a kind of its own, which no family folds and no search of the list finds."""
    position = list(Finding.__dataclass_fields__).index("kind")
    for file in (*(ROOT / "verify" / "check").glob("*.py"), *(ROOT / "verify" / "tokens").glob("*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Finding":
                kind = call.args[position]
                assert not isinstance(kind, ast.Constant), f"{file.name}:{kind.lineno}: {ast.unparse(kind)}"

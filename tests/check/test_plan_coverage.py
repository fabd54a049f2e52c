"""The plan's fields against what the contract promises of them, and what an empty partial must hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.check.scripted import CONTRACT, build, subject
from verify.check.plan_coverage import field_findings
from verify.contract.discovery import find_contracts
from verify.contract.model import Case, Plan
from verify.contracts.attention.reference import observe_partials


def test_a_plan_field_that_is_not_as_promised_is_a_finding(tmp_path: Path) -> None:
    """Fault: a field that only callers read (a longest band, a grid) is wrong and not checked."""
    for promised, found in (("rows + 3", []), ("rows + 2", ["auto = 5"])):
        plan = Plan("p", "r", ("auto",), promised={"auto": promised})
        case = build("one", rows=2, contract=replace(CONTRACT, plan=plan))
        findings = list(field_findings(subject(tmp_path), case, ""))
        assert [f.seen for f in findings] == found
    assert findings[0].promised == "auto = rows + 2, which is 4"
    assert not list(field_findings(subject(tmp_path), build("one"), ""))


def test_an_empty_partial_is_compared_directly() -> None:
    """Fault: a partial of no positions with a maximum of 0, or stale sums, passes for an empty one."""
    (contract,) = find_contracts(["flash_decode"])
    case = Case(contract, "f", "p", {"D": 2, "scale": 0.5})
    raw = {
        "o": np.array([[2.0, 4.0], [0.0, 0.0], [7.0, 0.0]]),
        "m": np.array([2.0, -np.inf, 0.0]),
        "l": np.array([2.0, 0.0, 0.0]),
    }
    seen = observe_partials(case, raw)
    assert seen["partial_out"].tolist() == [[1.0, 2.0], [0.0, 0.0], [7.0, 0.0]]
    assert seen["partial_lse"].tolist() == [1.0 + np.log(2.0), -np.inf, 0.0]

"""The ladder's lines: a rung that was not run must not read as passed."""

from __future__ import annotations

import dataclasses

from tests.check.twice_kernel import CONTRACT, subject
from verify.contract.compared import KernelOracle
from verify.contract.model import Contract
from verify.device.select import devices
from verify.finding.finding import Finding, Outcome, Verdict
from verify.oracle.tracked import exact
from verify.report.ladder import TOKENS, rungs

READY = subject()
TWO_ORACLES: Contract = dataclasses.replace(
    CONTRACT, parity={"torch": lambda case: {"y": exact(case.f64("x"))}, "pipeline": KernelOracle("pipeline")}
)
PARITY = "rung 3 op parity"


def ladder(*outcomes: Outcome, contract: Contract = CONTRACT, device: str = "cpu") -> dict[str, str]:
    chosen = devices()[device]
    return dict(rungs(contract, READY.cases, outcomes, chosen, "not run (verify tokens)"))


def parity(verdict: Verdict, reason: str = "", **elements: int) -> Outcome:
    measures = {f"elements {name}": n for name, n in elements.items()}
    return Outcome("parity", "twice", "small", verdict, reason=reason, measures=measures)


def test_all_four_rungs_are_always_reported() -> None:
    """Fault: a rung that was not run is missing from the report."""
    assert list(ladder()) == ["rung 1 mpmath", "rung 2 float64 reference", PARITY, TOKENS]
    for text in ladder().values():
        assert text.startswith("not run (")


def test_parity_names_the_oracles_that_agreed_and_those_not_run() -> None:
    """Fault: a parity that reads as agreement with an oracle that this device cannot run."""
    text = ladder(parity(Verdict.CLEAN, torch=1200), contract=TWO_ORACLES)[PARITY]
    assert text == "passed; 1,200 elements within both bounds of torch; pipeline not run (not on the cpu)"
    text = ladder(parity(Verdict.CLEAN, torch=1200, pipeline=7), contract=TWO_ORACLES, device="gpu")[PARITY]
    assert "1,200 elements within both bounds of torch" in text
    assert "7 elements within both bounds of pipeline" in text


def test_the_reason_of_a_rung_that_could_not_run_is_reported() -> None:
    """Fault: a missing torch or cuBLASLt that is printed as no more than "not run"."""
    missing = parity(Verdict.NOT_RUN, "torch is missing: install it", pipeline=7)
    text = ladder(missing, contract=TWO_ORACLES, device="gpu")[PARITY]
    assert text == "not run (torch is missing: install it); 7 elements within both bounds of pipeline"
    broken = Outcome.inconclusive("compare", "twice", "small", "does not build:\nmany lines of a compiler")
    assert ladder(broken)["rung 2 float64 reference"] == "inconclusive (does not build:)"


def test_findings_are_no_pass() -> None:
    """Fault: a rung that counts elements of fixtures with findings as passed."""
    found = Outcome.judge(
        "compare", "twice", "small", [Finding("compare", "twice", "c", "outside the bound", "1", "2")]
    )
    clean = Outcome.judge("compare", "twice", "wide", [], measures={"elements": 5})
    assert ladder(found, clean)["rung 2 float64 reference"] == "not passed: findings in 1 of 2 fixtures"
    assert ladder(clean)["rung 2 float64 reference"] == "passed, 5 elements within their bounds"

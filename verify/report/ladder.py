"""The oracle ladder as it stands for one kernel: which rung was passed, and which was not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verify.case.build import seeded_generator
from verify.case.case import Case
from verify.contract import Contract
from verify.finding import Outcome, Verdict, overall
from verify.oracle.exact import sampled_disagreements
from verify.oracle.expectation import OracleError, expect

SAMPLES = 2
"""Elements of each quantity and fixture that are computed in arbitrary precision on every run."""


def rungs(
    contract: Contract, cases: Mapping[str, Mapping[str, Case]], outcomes: Sequence[Outcome]
) -> Mapping[str, str]:
    """Rung -> what was shown, from the bottom of the ladder up. A rung that was not climbed says so."""
    return {
        "rung 1 mpmath": _mpmath(contract, cases),
        "rung 2 float64 reference": _by_check(outcomes, "compare"),
        "rung 3 op parity": _by_check(outcomes, "parity", "verify run --check parity"),
        "rung 4 token parity": "not run (verify tokens)",
    }


def _mpmath(contract: Contract, cases: Mapping[str, Mapping[str, Case]]) -> str:
    """One profile of every fixture, a few elements of each quantity, against the float64 reference."""
    if contract.exact_reference is None:
        return "not run (the contract gives no exact_reference)"
    sampled = 0
    for number, fixture in enumerate(cases.values()):
        case = list(fixture.values())[number % len(fixture)]
        try:
            expected = expect(case)
        except OracleError as error:
            return f"failed: {error}"
        generator = seeded_generator("mpmath", case.id)
        for disagreement in sampled_disagreements(case, expected, SAMPLES, generator):
            return f"failed: {case.id}: {disagreement}"
        sampled += SAMPLES * len(expected)
    return f"passed, {sampled} elements of the reference and of its bounds agree with 50 digits"


def _by_check(outcomes: Sequence[Outcome], check: str, how: str = "") -> str:
    relevant = [o for o in outcomes if o.check == check]
    if not relevant:
        return f"not run ({how})" if how else "not run"
    verdict = overall(relevant)
    if verdict is Verdict.CLEAN:
        elements = int(sum(o.measures.get("elements", 0) for o in relevant))
        return f"passed, {elements:,} elements within their bounds" if elements else "passed"
    return str(verdict)

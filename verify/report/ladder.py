"""The state of the oracle ladder for one kernel: which rungs passed, and which did not run and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verify.check.parity import applies
from verify.contract.model import Case, Contract
from verify.device.interface import Device
from verify.finding.finding import Outcome, Verdict, overall
from verify.fixture.axes import family_of
from verify.fixture.cases import seeded_generator
from verify.oracle.exact import sampled_disagreements
from verify.oracle.expectation import OracleError, Quantity, expect

SAMPLES = 2
"""Elements of each quantity and fixture that are computed in arbitrary precision on every run."""

TOKENS = "rung 4 token parity"


def rungs(
    contract: Contract,
    cases: Mapping[str, Mapping[str, Case]],
    outcomes: Sequence[Outcome],
    device: Device | None,
    tokens: str,
    known: Mapping[str, Mapping[str, Quantity]] | None = None,
    agreed: dict[str, int] | None = None,
) -> Mapping[str, str]:
    """Rung -> its result, from the bottom of the ladder up; also for rungs that were not run.

    device: the checks' device. tokens: the result of the top rung, which all kernels of the
    decoder climb together. known: references and bounds computed before, by case. agreed: by case, how many
    elements arbitrary precision has confirmed; updated here.
    """
    return {
        "rung 1 mpmath": _mpmath(contract, cases, known or {}, {} if agreed is None else agreed),
        "rung 2 float64 reference": _reference(outcomes),
        "rung 3 op parity": _parity(contract, outcomes, device),
        TOKENS: tokens,
    }


def _mpmath(
    contract: Contract,
    cases: Mapping[str, Mapping[str, Case]],
    known: Mapping[str, Mapping[str, Quantity]],
    agreed: dict[str, int],
) -> str:
    """Compare a few elements of each quantity, for one profile per fixture, with the float64 reference.

    Of fixtures that axes expand to, only the first: the reference is the same formula for all of them.
    """
    if contract.exact_reference is None:
        return "not run (the contract has no exact_reference)"
    sampled = 0
    families: set[str] = set()
    for number, (name, fixture) in enumerate(cases.items()):
        if family_of(name) in families:
            continue
        families.add(family_of(name))
        case = list(fixture.values())[number % len(fixture)]
        if case.id in agreed:
            sampled += agreed[case.id]
            continue
        try:
            expected = known.get(case.id) or expect(case)
        except OracleError as error:
            return f"failed: {error}"
        generator = seeded_generator("mpmath", case.id)
        for disagreement in sampled_disagreements(case, expected, SAMPLES, generator):
            return f"failed: {case.id}: {disagreement}"
        agreed[case.id] = SAMPLES * len(expected)
        sampled += agreed[case.id]
    if not sampled:
        return "not run (no case was built)"
    return f"passed, {sampled} elements of the reference and of its bounds agree with 50 digits"


def _reference(outcomes: Sequence[Outcome]) -> str:
    asked = [o for o in outcomes if o.check == "compare"]
    if not asked:
        return "not run (verify run --check compare)"
    return _not_passed(asked) or f"passed, {_elements(asked, 'elements')} within their bounds"


def _parity(contract: Contract, outcomes: Sequence[Outcome], device: Device | None) -> str:
    """Each oracle of the contract: what it agreed with, or why it was not run."""
    asked = [o for o in outcomes if o.check == "parity"]
    if not contract.parity:
        return "not run (the contract has no parity oracle)"
    if not asked:
        return "not run (verify run --ladder, or --check parity)"
    parts = []
    for name, oracle in contract.parity.items():
        own = [o for o in asked if f"elements {name}" in o.measures]
        if own:
            parts.append(f"{_elements(own, f'elements {name}')} within both bounds of {name}")
        elif device is not None and not applies(oracle, device):
            parts.append(f"{name} not run (not on the {device.name})")
    return "; ".join([_not_passed(asked) or "passed", *parts])


def _not_passed(outcomes: Sequence[Outcome]) -> str:
    """The verdict and the first reason for it; empty if all are clean."""
    verdict = overall(outcomes)
    if verdict is Verdict.CLEAN:
        return ""
    if verdict is Verdict.FINDINGS:
        failing = sum(o.verdict is Verdict.FINDINGS for o in outcomes)
        return f"not passed: findings in {failing} of {len(outcomes)} fixtures"
    reason = next(o.reason for o in outcomes if o.verdict is verdict)
    return f"{verdict} ({reason.splitlines()[0]})"


def _elements(outcomes: Sequence[Outcome], measure: str) -> str:
    return f"{int(sum(o.measures.get(measure, 0) for o in outcomes)):,} elements"

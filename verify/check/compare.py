"""compare: outputs and split partials within the derived bound, on every profile, with NaN in dead bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from verify.check.diagnosed import DIAGNOSED_FIXTURES, diagnosis_of, with_diagnosis
from verify.check.judge import observed_quantities
from verify.check.matrix import runs_for
from verify.check.native import not_done
from verify.check.plan_coverage import boundary_findings, field_findings
from verify.check.subject import Ran, Subject
from verify.check.unwritten import judge_run
from verify.finding.finding import Finding, Outcome
from verify.finding.kind import FaultKind
from verify.oracle.expectation import OracleError
from verify.oracle.power import flat_inputs, powerless, unpromised
from verify.wire.run import Run


def check_compare(subject: Subject) -> list[Outcome]:
    """One outcome per fixture. Measures: smallest slack (bound over error) by quantity, elements compared."""
    runs = {f: runs_for("compare", cases) for f, cases in subject.cases.items()}
    ran = subject.execute(run for fixture_runs in runs.values() for run in fixture_runs)
    called = [run for fixture_runs in runs.values() for run in fixture_runs]
    every = [run.case for run in called]
    never, flat = unpromised(every), flat_inputs(every)
    outcomes: list[Outcome] = []
    for fixture, fixture_runs in runs.items():
        failed = sum(bool(o.findings) for o in outcomes)
        asked = called if failed < DIAGNOSED_FIXTURES else []
        own = [ran[r.id] for r in fixture_runs]
        outcomes.append(_judge_fixture(subject, fixture, own, never, flat, asked))
    return outcomes


def _judge_fixture(
    subject: Subject,
    fixture: str,
    ran: list[Ran],
    never: frozenset[str],
    flat: frozenset[str],
    called: Sequence[Run],
) -> Outcome:
    """never: outputs of which no fixture promises an element. flat: inputs whose elements are all equal.

    called: the calls in order, to test what wrong outputs match instead; none to omit that test.
    """
    if (unfinished := not_done("compare", subject, fixture, ran)) is not None:
        return unfinished
    repeat = subject.repeat_command("compare", fixture)
    judged: list[list[Finding]] = []
    measures: dict[str, float] = {"elements": 0}
    for one in ran:
        assert one.output is not None
        try:
            expected = subject.expectation(one.run.case)
        except OracleError as error:
            return Outcome.inconclusive("compare", subject.contract.name, fixture, str(error))
        judged.append(judge_run(subject, "compare", one, expected, repeat))
        observed = observed_quantities(one.run.case, one.output)
        for name, quantity in expected.items():
            measures["elements"] += quantity.value.size
            if not quantity.exact:
                key = f"slack {name}"
                measures[key] = min(
                    measures.get(key, np.inf), slack(quantity.value, quantity.bound, observed[name])
                )
    first = ran[0].run.case
    findings = [*field_findings(subject, first, repeat), *boundary_findings(subject, first, repeat)]
    order = sorted((i for i, listed in enumerate(judged) if listed), key=lambda i: _spread(judged[i]))
    wrong = [f for i in order for f in judged[i]]
    if wrong and called:
        rest = [one for one, listed in zip(ran, judged, strict=True) if not listed]
        wrong = with_diagnosis(wrong, diagnosis_of(subject, [*(ran[i] for i in order), *rest], called))
    findings += wrong
    cases = [one.run.case for one in ran]
    answers = [subject.expectation(case) for case in cases]
    if not findings and (why := powerless(cases, answers, never, flat)):
        return Outcome.inconclusive("compare", subject.contract.name, fixture, why)
    return Outcome.judge(
        "compare", subject.contract.name, fixture, findings, strict=subject.strict, measures=measures
    )


def _spread(findings: list[Finding]) -> tuple[bool, int]:
    """Sort key: cases that locate a fault best first, with exact comparison and few wrong elements."""
    wrong = [int(text.split()[0]) for f in findings for name, text in f.details if name == "elements"]
    return all(f.kind != FaultKind.NOT_BIT_EQUAL for f in findings), min(wrong, default=0)


def slack(value: np.ndarray, bound: np.ndarray, seen: np.ndarray) -> float:
    """Smallest ratio of bound to observed error over all elements: how close the kernel came to its bound."""
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(seen - value)
        ratio = np.where(np.isfinite(error) & (error > 0), bound / error, np.inf)
    return float(ratio.min()) if ratio.size else float("inf")

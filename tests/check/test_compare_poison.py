"""Does the judge judge right? Each test plants one wrong output and names the finding it must give."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.check.twice_kernel import Kernel, ScriptedSubject, prior_of, right, subject
from verify.check.compare import check_compare
from verify.check.poison import check_poison
from verify.contract.formats import encode, format_of
from verify.device.interface import RunStatus
from verify.finding.finding import Outcome, Verdict
from verify.oracle.tracked import Tracked
from verify.wire.output import Intrusion
from verify.wire.run import Fills, Run


def kinds(outcome: Outcome) -> set[str]:
    return {f.kind for f in outcome.findings}


def changed(at: tuple[int, int], change: Callable[[Any, Run], Any]) -> Kernel:
    """A kernel that is right but for one element."""

    def kernel(run: Run) -> np.ndarray:
        out = right(run).copy()
        out[at] = change(out[at], run)
        return out

    return kernel


def test_right_kernel_is_clean() -> None:
    """Fault: a right kernel is flagged."""
    for check in (check_compare, check_poison):
        (outcome,) = check(subject())
        assert outcome.verdict is Verdict.CLEAN
        assert not outcome.findings


def test_one_element_one_step_off_is_outside_its_bound() -> None:
    """Fault: an aggregate (a norm, a cosine) misses one element of fifteen that is off by one bf16 step."""
    (outcome,) = check_compare(subject(changed((2, 4), lambda bits, run: bits + 1)))
    assert kinds(outcome) == {"outside the bound", "not bit-equal"}
    assert "rows 2, columns 4" in outcome.findings[0].where


def test_nan_is_a_finding() -> None:
    """Fault: NaN passes a judge that asks 'is the error large?', since NaN compares false with everything."""
    nan = format_of("bf16").quiet_nan
    assert nan is not None
    (outcome,) = check_compare(subject(changed((0, 0), lambda bits, run: nan ^ 1)))
    assert "NaN where none belongs" in kinds(outcome)


def test_infinity_is_a_finding() -> None:
    """Fault: an infinite error vanishes in an infinite tolerance."""
    (outcome,) = check_compare(subject(changed((0, 0), lambda bits, run: format_of("bf16").infinity)))
    assert outcome.verdict is Verdict.FINDINGS


def test_negative_zero_is_not_bit_equal_in_an_exact_profile() -> None:
    """Fault: bit equality compares values, so that a lost sign of zero passes."""
    zero = encode("bf16", np.zeros(1))[0]

    def kernel(run: Run) -> np.ndarray:
        out = right(run).copy()
        out[out == zero] |= 0x8000
        return out

    (outcome,) = check_compare(subject(kernel))
    assert kinds(outcome) == {"not bit-equal"}


def test_unwritten_element_is_named() -> None:
    """Fault: an element that still has its fill passes as written."""
    (outcome,) = check_compare(subject(changed((1, 3), lambda bits, run: prior_of(run)[1, 3])))
    assert kinds(outcome) == {"unwritten output"}


@pytest.mark.parametrize("kernel", [prior_of, lambda run: np.zeros((3, 5), np.uint16)])
def test_kernel_that_does_nothing(kernel: Kernel) -> None:
    """Fault: stale output or zeros pass for results."""
    for check in (check_compare, check_poison):
        assert check(subject(kernel))[0].verdict is Verdict.FINDINGS


def test_write_outside_the_promised_bytes() -> None:
    """Fault: right numbers hide a write beside them."""
    (outcome,) = check_compare(subject(intrusions=(Intrusion("y", 30, 4),)))
    assert kinds(outcome) == {"write outside the promised bytes"}
    assert "y + 30" in {f.where for f in outcome.findings}


@pytest.mark.parametrize("leaking", ["nan", "inf", "huge", "stale"])
def test_output_that_depends_on_a_fill(leaking: str) -> None:
    """Fault: a leak that appears only with the first fill, with which the others are compared, is missed."""
    bump = changed((0, 1), lambda bits, run: bits + (run.fills.dead == leaking) * 4)
    (outcome,) = check_poison(subject(bump))
    assert "output depends on dead bytes" in kinds(outcome)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (RunStatus.FAULT, Verdict.FINDINGS),
        (RunStatus.TIMEOUT, Verdict.FINDINGS),
        (RunStatus.REFUSED_MEMORY, Verdict.NOT_RUN),
        (RunStatus.NOT_RUN, Verdict.INCONCLUSIVE),
    ],
)
def test_failed_run(status: RunStatus, verdict: Verdict) -> None:
    """Fault: a run that did not finish counts as clean."""
    for check in (check_compare, check_poison):
        (outcome,) = check(subject(statuses={"small.normal.nan": status}))
        assert outcome.verdict is verdict


def test_compare_without_power_is_inconclusive_unless_there_is_a_finding() -> None:
    """Fault: a bound under which nothing can fail is clean, or hides NaN where none belongs."""

    def vacuous(kernel: Kernel = right) -> ScriptedSubject:
        made = subject(kernel)
        wide = dataclasses.replace(
            made.contract,
            error_model=lambda case: {"y": Tracked(2 * case.f64("x"), np.full((3, 5), np.inf))},
            exact=(),
        )
        cases = {n: dataclasses.replace(c, contract=wide) for n, c in made.cases["small"].items()}
        return dataclasses.replace(made, contract=wide, cases={"small": cases})

    (outcome,) = check_compare(vacuous())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "no power over y" in outcome.reason
    (outcome,) = check_compare(vacuous(prior_of))
    assert outcome.verdict is Verdict.FINDINGS


def test_a_wrong_value_equal_to_the_fill_by_chance_is_not_unwritten() -> None:
    """Fault: a wrong value that equals the fill by chance is reported as unwritten."""
    value = prior_of(Run("r", subject().cases["small"]["normal"], fills=Fills(output="huge")))[1, 3]
    for check in (check_compare, check_poison):
        (outcome,) = check(subject(changed((1, 3), lambda bits, run: value)))
        assert outcome.verdict is Verdict.FINDINGS
        assert "unwritten output" not in kinds(outcome)
        (outcome,) = check(subject(changed((1, 3), lambda bits, run: prior_of(run)[1, 3])))
        assert "unwritten output" in kinds(outcome)


def test_the_case_that_localises_best_comes_first() -> None:
    """Fault: a finding about the whole output hides one that locates the fault."""

    def kernel(run: Run) -> np.ndarray:
        out = right(run).copy()
        if run.case.profile == "exact":
            out[1, 1] += 1
        else:
            out += 4
        return out

    (outcome,) = check_compare(subject(kernel))
    assert [f.case.rpartition("/")[2] for f in outcome.findings] == ["exact", "normal"]


def test_a_finding_says_what_the_output_matches() -> None:
    """Fault: the diagnosis is made and stands nowhere that a person looks."""

    def negated(run: Run) -> np.ndarray:
        return np.asarray(right(run) ^ 0x8000)

    (outcome,) = check_compare(subject(negated))
    for finding in outcome.findings:
        said = dict(finding.details)["diagnosis"]
        assert said.startswith("matches the reference with")
        assert "multiplied by -1" in said


def test_one_wrong_element_is_not_explained() -> None:
    """Fault: a finding that no known fault explains is given a name all the same."""
    (outcome,) = check_compare(subject(changed((2, 4), lambda bits, run: bits + 1)))
    assert all("diagnosis" not in dict(f.details) for f in outcome.findings)

"""Verdicts: each test would catch a way in which 'not run' or a doubt turns into a pass."""

import pytest

from verify.finding.finding import EXIT_CODES, Finding, Outcome, Severity, Verdict, overall


def finding(severity: Severity = Severity.ERROR) -> Finding:
    return Finding("compare", "k", "k/f/p", "outside the bound", "1", "0", severity)


def test_nothing_is_not_run() -> None:
    """Fault: a report without outcomes is clean."""
    assert overall([]) is Verdict.NOT_RUN


def test_worst_verdict_wins() -> None:
    """Fault: a clean fixture hides an inconclusive one, or that hides a finding."""
    clean = Outcome.judge("compare", "k", "a", [])
    unsure = Outcome.inconclusive("compare", "k", "b", "why")
    missing = Outcome.not_run("compare", "k", "c", "why")
    bad = Outcome.judge("compare", "k", "d", [finding()])
    assert overall([clean, missing]) is Verdict.NOT_RUN
    assert overall([clean, missing, unsure]) is Verdict.INCONCLUSIVE
    assert overall([clean, missing, unsure, bad]) is Verdict.FINDINGS


def test_warning_changes_the_verdict_only_under_strict() -> None:
    """Fault: a warning that fails a build, or one that strict forgets."""
    warning = [finding(Severity.WARNING)]
    assert Outcome.judge("racecheck", "k", "f", warning).verdict is Verdict.CLEAN
    assert Outcome.judge("racecheck", "k", "f", warning, strict=True).verdict is Verdict.FINDINGS


@pytest.mark.parametrize("verdict", [Verdict.INCONCLUSIVE, Verdict.NOT_RUN])
def test_missing_verdict_needs_a_reason(verdict: Verdict) -> None:
    """Fault: a missing verdict does not say what to do."""
    with pytest.raises(ValueError, match="reason"):
        Outcome("compare", "k", "f", verdict)


def test_only_clean_exits_with_zero() -> None:
    """Fault: a verdict other than clean exits with 0."""
    assert [v for v, code in EXIT_CODES.items() if code == 0] == [Verdict.CLEAN]

"""Findings, verdicts and exit codes: what every check returns and every report prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from verify.system.exit_code import ExitCode


class Severity(StrEnum):
    """An error changes the verdict; a warning does so only under ``--strict``."""

    ERROR = "error"
    WARNING = "warning"


class Verdict(StrEnum):
    """The result of a check on one case, or of a whole report. Not run is never clean."""

    CLEAN = "clean"
    FINDINGS = "findings"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not run"


EXIT_CODES = {
    Verdict.CLEAN: ExitCode.CLEAN,
    Verdict.FINDINGS: ExitCode.FINDINGS,
    Verdict.INCONCLUSIVE: ExitCode.NOT_VERIFIED,
    Verdict.NOT_RUN: ExitCode.NOT_VERIFIED,
}


@dataclass(frozen=True)
class SourceLine:
    """A place in a source file; ``line`` is 1-based, 0 when only the file is known."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Finding:
    """One reported fault.

    check: a check's name, or ``tokens``. case: ``kernel/fixture/profile``. kind: a
    :class:`verify.finding.kind.FaultKind` for the suite's own checks, the tool's own name for a finding of
    a tool; stable. seen / promised: what was observed and what the contract requires, one sentence each.
    where: coordinates ("batch 1, head 3, dim 17; split 2, position 511, slot 63") or thread and block.
    repeat: the command line that reproduces this finding alone. folder: the reproduction on disk, if any.
    details: further facts, printed in order (bound derivation, second access of a race, tool version).
    """

    check: str
    kernel: str
    case: str
    kind: str
    seen: str
    promised: str
    severity: Severity = Severity.ERROR
    source: SourceLine | None = None
    function: str | None = None
    where: str = ""
    repeat: str = ""
    folder: str = ""
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The result of one check on one case (or fixture): a verdict, its findings, and why it is not clean.

    reason: required for INCONCLUSIVE and NOT_RUN; one sentence that says what to do.
    measures: numbers worth printing (slack, seconds, bytes), by name. suppressed: names of the suppressions
    (known false alarms) that removed findings.
    """

    check: str
    kernel: str
    fixture: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    measures: dict[str, Any] = field(default_factory=dict)
    suppressed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_RUN) and not self.reason:
            raise ValueError(f"{self.check} of {self.fixture}: a verdict of {self.verdict} needs a reason")
        if self.verdict is Verdict.FINDINGS and not self.findings:
            raise ValueError(f"{self.check} of {self.fixture}: findings without a finding")

    @classmethod
    def inconclusive(cls, check: str, kernel: str, fixture: str, reason: str) -> Outcome:
        """The check ran but its verdict cannot be trusted."""
        return cls(check, kernel, fixture, Verdict.INCONCLUSIVE, reason=reason)

    @classmethod
    def not_run(cls, check: str, kernel: str, fixture: str, reason: str) -> Outcome:
        """The check could not run."""
        return cls(check, kernel, fixture, Verdict.NOT_RUN, reason=reason)

    @classmethod
    def judge(
        cls,
        check: str,
        kernel: str,
        fixture: str,
        findings: Iterable[Finding],
        *,
        strict: bool = False,
        measures: dict[str, Any] | None = None,
    ) -> Outcome:
        """CLEAN or FINDINGS from a list of findings; warnings count as findings only under ``strict``."""
        found = tuple(findings)
        bad = any(f.severity is Severity.ERROR or strict for f in found)
        verdict = Verdict.FINDINGS if bad else Verdict.CLEAN
        return cls(check, kernel, fixture, verdict, found, measures=measures or {})


_ORDER = (Verdict.FINDINGS, Verdict.INCONCLUSIVE, Verdict.NOT_RUN, Verdict.CLEAN)


def worse(a: Outcome, b: Outcome) -> Outcome:
    """The worse of two outcomes of one check and fixture (two architectures), with the findings of both."""
    worst = min(a, b, key=lambda o: _ORDER.index(o.verdict))
    suppressed = tuple(dict.fromkeys((*a.suppressed, *b.suppressed)))
    return replace(worst, findings=(*a.findings, *b.findings), suppressed=suppressed)


def overall(outcomes: Iterable[Outcome]) -> Verdict:
    """One verdict for many outcomes: findings, then inconclusive, then not run; no outcome is not run."""
    verdicts = {o.verdict for o in outcomes}
    return next((v for v in _ORDER if v in verdicts), Verdict.NOT_RUN)

"""The ``repeat`` line of a finding is tried before it is printed.

A kernel that keeps something from call to call may be wrong only after other calls: one fixture alone is then
clean. Such a finding names the command that does show it, and says that it takes the calls before it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from verify.check.carried import CALLS_BEFORE
from verify.check.hangs import Hangs
from verify.check.subject import Subject
from verify.finding.finding import Finding, Outcome, Severity
from verify.finding.kind import HANGS

Check = Callable[[Subject], list[Outcome]]

MOST_TRIED = 2
"""Fixtures of a check whose findings are tried alone; what holds for these holds for the others."""

_CARRIED = (
    CALLS_BEFORE,
    "other calls in the same process, and silent without: the kernel keeps something from call to call, as "
    "in a __device__ variable or in a static variable",
)


def with_tried_repeats(
    outcomes: Sequence[Outcome], subject: Subject, checks: Mapping[str, Check], selected: bool
) -> list[Outcome]:
    """The outcomes; findings of ``checks`` that their own fixture alone does not show have another repeat.

    selected: the subject has not all fixtures of the kernel.
    """
    told: dict[tuple[str, str], str] = {}
    for check, run in checks.items():
        fixtures = [o.fixture for o in outcomes if o.check == check and any(map(_tried, o.findings))]
        shown = [f for f in fixtures[:MOST_TRIED] if _shows(run, _only(subject, (f,)))]
        if len(shown) < len(fixtures[:MOST_TRIED]):
            every = tuple(subject.cases)
            enough = _shows(run, _only(subject, every))
            command = _command(subject, every if selected else (), check if enough else "")
            told |= {(check, fixture): command for fixture in fixtures if fixture not in shown}
    return [_retold(outcome, told.get((outcome.check, outcome.fixture))) for outcome in outcomes]


def _tried(finding: Finding) -> bool:
    """A hang would only wait again."""
    return finding.severity is Severity.ERROR and finding.kind not in HANGS


def _only(subject: Subject, fixtures: Sequence[str]) -> Subject:
    """The subject with these fixtures, and nothing run yet."""
    return replace(
        subject,
        fixtures=tuple(r for r in subject.fixtures if r.fixture.name in fixtures),
        cases={f: subject.cases[f] for f in fixtures},
        folder=subject.folder / "tried",
        _ran={},
        _hangs=Hangs(),
    )


def _shows(run: Check, subject: Subject) -> bool:
    subject.progress(f"{subject.contract.name}: tries the repeat line of {', '.join(subject.cases)}")
    return any(_tried(finding) for outcome in run(subject) for finding in outcome.findings)


def _command(subject: Subject, fixtures: Sequence[str], check: str) -> str:
    """The command for these fixtures (none: all), under one check or all of them."""
    chosen = f" -k {shlex.quote(' or '.join(fixtures))}" if fixtures else ""
    only = f" --check {check}" if check else ""
    return f"python -m verify run {subject.argument}{chosen}{only} --device {subject.device.name}"


def _retold(outcome: Outcome, command: str | None) -> Outcome:
    if command is None:
        return outcome
    findings = tuple(
        replace(f, repeat=command, details=(*f.details, _CARRIED)) if _tried(f) else f
        for f in outcome.findings
    )
    return replace(outcome, findings=findings)

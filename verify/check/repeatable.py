"""Tries the ``repeat`` line of a finding before it is printed.

A kernel that keeps state between calls may be wrong only after other calls: a single fixture is then clean.
Such a finding gets the command that does reproduce it, and a note that it needs the preceding calls.
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
"""Fixtures per check whose findings are tried alone; the others are assumed to behave the same."""

_CARRIED = (
    CALLS_BEFORE,
    "other calls in the same process, and not reported without: the kernel keeps state between calls, as "
    "in a __device__ or static variable",
)


def with_tried_repeats(
    outcomes: Sequence[Outcome], subject: Subject, checks: Mapping[str, Check], selected: bool
) -> list[Outcome]:
    """The outcomes, with another repeat line for findings that their fixture alone does not reproduce.

    selected: the subject has only some fixtures of the kernel.
    """
    commands: dict[tuple[str, str], str] = {}
    for check, run in checks.items():
        fixtures = [o.fixture for o in outcomes if o.check == check and any(map(_tried, o.findings))]
        shown = [f for f in fixtures[:MOST_TRIED] if _shows(run, _only(subject, (f,)))]
        if len(shown) < len(fixtures[:MOST_TRIED]):
            every = tuple(subject.cases)
            enough = _shows(run, _only(subject, every))
            command = _command(subject, every if selected else (), check if enough else "")
            commands |= {(check, fixture): command for fixture in fixtures if fixture not in shown}
    return [_with_repeat(outcome, commands.get((outcome.check, outcome.fixture))) for outcome in outcomes]


def _tried(finding: Finding) -> bool:
    """Whether to try a finding; a hang would only wait again."""
    return finding.severity is Severity.ERROR and finding.kind not in HANGS


def _only(subject: Subject, fixtures: Sequence[str]) -> Subject:
    """The subject with these fixtures, before any run."""
    return replace(
        subject,
        fixtures=tuple(r for r in subject.fixtures if r.fixture.name in fixtures),
        cases={f: subject.cases[f] for f in fixtures},
        folder=subject.folder / "tried",
        _ran={},
        _hangs=Hangs(),
    )


def _shows(run: Check, subject: Subject) -> bool:
    subject.progress(f"{subject.contract.name}: trying the repeat line of {', '.join(subject.cases)}")
    return any(_tried(finding) for outcome in run(subject) for finding in outcome.findings)


def _command(subject: Subject, fixtures: Sequence[str], check: str) -> str:
    """The command for these fixtures (none: all), with one check or all of them."""
    chosen = f" -k {shlex.quote(' or '.join(fixtures))}" if fixtures else ""
    only = f" --check {check}" if check else ""
    return f"python -m verify run {subject.argument}{chosen}{only} --device {subject.device.name}"


def _with_repeat(outcome: Outcome, command: str | None) -> Outcome:
    if command is None:
        return outcome
    findings = tuple(
        replace(f, repeat=command, details=(*f.details, _CARRIED)) if _tried(f) else f
        for f in outcome.findings
    )
    return replace(outcome, findings=findings)

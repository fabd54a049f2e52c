"""poison: outputs do not depend on dead slots, padding, workspace, prior output or stale shared memory."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from verify.check.drift import beyond_drift
from verify.check.judge import coordinates, observed_quantities
from verify.check.matrix import runs_for
from verify.check.native import not_done
from verify.check.subject import Ran, Subject
from verify.check.unwritten import judge_run
from verify.finding.finding import Finding, Outcome
from verify.finding.kind import FaultKind
from verify.oracle.expectation import OracleError


def check_poison(subject: Subject) -> list[Outcome]:
    """One outcome per fixture: every fill gives the same bits (or stays within the contract's drift)."""
    runs = {f: runs_for("poison", cases) for f, cases in subject.cases.items()}
    ran = subject.execute(run for fixture_runs in runs.values() for run in fixture_runs)
    return [_judge_fixture(subject, f, [ran[r.id] for r in fixture_runs]) for f, fixture_runs in runs.items()]


def _judge_fixture(subject: Subject, fixture: str, ran: list[Ran]) -> Outcome:
    if (unfinished := not_done("poison", subject, fixture, ran)) is not None:
        return unfinished
    repeat = subject.repeat_command("poison", fixture)
    by_profile: dict[str, list[Ran]] = defaultdict(list)
    for one in ran:
        by_profile[one.run.case.profile].append(one)
    findings: list[Finding] = []
    try:
        for group in by_profile.values():
            findings += _judge_group(subject, group, repeat)
    except OracleError as error:
        return Outcome.inconclusive("poison", subject.contract.name, fixture, str(error))
    return Outcome.judge("poison", subject.contract.name, fixture, findings, strict=subject.strict)


def _judge_group(subject: Subject, group: list[Ran], repeat: str) -> list[Finding]:
    """Compare each fill of one case with the bound, and all of them with the first, bit for bit.

    With the bound too: if NaN leaks, the first fill is wrong, and the others differ from it.
    """
    findings = []
    for one in group:
        assert one.output is not None
        findings += judge_run(subject, "poison", one, subject.expectation(one.run.case), repeat)
    base = group[0]
    assert base.output is not None
    for other in group[1:]:
        assert other.output is not None
        findings += _differences(subject, base, other, repeat)
    return findings


def _differences(subject: Subject, base: Ran, other: Ran, repeat: str) -> list[Finding]:
    assert base.output is not None and other.output is not None
    case, contract = base.run.case, subject.contract
    findings = []
    seen = observed_quantities(case, base.output), observed_quantities(case, other.output)
    for buffer in contract.buffers:
        if buffer.role not in ("out", "inout"):
            continue
        a, b = base.output.outputs[buffer.name], other.output.outputs[buffer.name]
        differs = beyond_drift(subject, case, buffer.name, a, b)
        if differs.any():
            at = tuple(int(i) for i in np.argwhere(differs)[0])
            findings.append(
                Finding(
                    "poison",
                    contract.name,
                    case.id,
                    FaultKind.DEAD_BYTES,
                    f"{buffer.name}{list(at)} is {seen[0][buffer.name][at]:.9g} with {base.run.fills.dead} "
                    f"in dead bytes and {seen[1][buffer.name][at]:.9g} with {other.run.fills.dead}; "
                    f"{int(differs.sum())} of {differs.size} elements differ",
                    "the same bits whatever dead slots, padding, workspace, prior output and shared memory "
                    "contain",
                    where=coordinates(case, buffer.name, at),
                    repeat=repeat,
                )
            )
    return findings

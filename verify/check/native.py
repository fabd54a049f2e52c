"""Judges native runs that did not succeed: a finding or no verdict, but never clean."""

from __future__ import annotations

from collections.abc import Sequence

from verify.check.subject import Ran, Subject
from verify.device.interface import RunStatus
from verify.finding.finding import Finding, Outcome
from verify.finding.kind import FaultKind

BAD_INPUT = "bad input returns an error, launches nothing and leaves every output unchanged"


def not_done(check: str, subject: Subject, fixture: str, ran: Sequence[Ran]) -> Outcome | None:
    """An outcome for runs that did not succeed, or None if all did.

    A fault or a hang is a finding. A run that was skipped or did not fit into memory is ``not run``; anything
    else is inconclusive.
    """
    kernel = subject.contract.name
    repeat = subject.repeat_command(check, fixture)
    faults = [r for r in ran if r.result.status in (RunStatus.FAULT, RunStatus.TIMEOUT)]
    if faults:
        return Outcome.judge(check, kernel, fixture, [_fault(check, kernel, r, repeat) for r in faults])
    left = [r for r in ran if r.result.status is RunStatus.LEFT_OUT]
    if left:
        return Outcome.not_run(check, kernel, fixture, left[0].result.error)
    short = [r for r in ran if r.result.status is RunStatus.REFUSED_MEMORY]
    if short:
        return Outcome.not_run(check, kernel, fixture, f"{short[0].run.case.id} {short[0].result.error}")
    missing = [r for r in ran if not r.done]
    if missing:
        why = missing[0].result.error or "the harness did not report it as done"
        return Outcome.inconclusive(check, kernel, fixture, f"{missing[0].run.id}: {why}")
    return None


def _fault(check: str, kernel: str, ran: Ran, repeat: str) -> Finding:
    run, refusal = ran.run, ran.run.id.partition(".refuse-")[2]
    hung = ran.result.status is RunStatus.TIMEOUT
    kind = FaultKind.HANG if hung else FaultKind.FAULT
    if refusal:
        kind = FaultKind.HANG_ON_BAD_INPUT if hung else FaultKind.FAULT_ON_BAD_INPUT
    return Finding(
        check,
        kernel,
        run.case.id,
        kind,
        ran.result.error or ("the kernel did not end in time" if hung else "the process crashed"),
        BAD_INPUT if refusal else "the call ends, without a CUDA error",
        where=f"refusal {refusal}" if refusal else f"run {run.id}",
        repeat=repeat,
        details=(("mode", run.mode),) if run.mode not in ("once", "refuse") else (),
    )

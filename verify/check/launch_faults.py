"""Findings of the sweep in which each runtime call of a launcher fails in turn."""

from __future__ import annotations

import re
from collections.abc import Sequence

from verify.check.subject import Ran, Subject
from verify.finding.finding import Finding
from verify.finding.kind import FaultKind
from verify.wire.run import Run

FAULT = re.compile(r"pass=(\d+) call=(\d+) calls=(\d+) failed=(\S+) returned=(\S+)")
_REPORTED = "a runtime call that fails inside the launcher makes it return an error"
_RECOVERED = "after a failed call, the next call on good input succeeds"


def broken_sweep(subject: Subject, swept: Ran, faults: Sequence[re.Match[str]], repeat: str) -> Finding:
    """The process crashed or hung after a failed call, or could not continue."""
    last = f"after {faults[-1][4]} was made to fail (call {faults[-1][2]})" if faults else "at the first call"
    return Finding(
        "launch",
        subject.contract.name,
        swept.run.case.id,
        FaultKind.FAULT_AFTER_ERROR,
        f"{last}: {swept.result.error}",
        _RECOVERED,
        where=f"run {swept.run.id}",
        repeat=repeat,
    )


def fault_findings(subject: Subject, run: Run, faults: Sequence[re.Match[str]], repeat: str) -> list[Finding]:
    """A finding for each failed call that was not reported, and for a launcher that stays broken."""
    findings: list[Finding] = []
    for fault in faults:
        turn, call, calls, failed, returned = fault.groups()
        clean = failed == "-"
        if clean == (returned == "cudaSuccess"):
            continue
        kind = FaultKind.NO_RECOVERY if clean else FaultKind.SWALLOWED
        seen = (
            f"with no call failing, the launcher returned {returned} after the sweep"
            if clean
            else f"{failed}, call {call} of {calls}, failed and the launcher returned cudaSuccess"
        )
        findings.append(
            Finding(
                "launch",
                subject.contract.name,
                run.case.id,
                kind,
                seen,
                _RECOVERED if clean else _REPORTED,
                where=f"pass {turn}, runtime call {call}",
                repeat=repeat,
            )
        )
    return findings

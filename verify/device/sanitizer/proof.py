"""When compute-sanitizer's silence proves something: summary, harness markers and exit code must agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verify.device.interface import RunResult, RunStatus
from verify.device.sanitizer.log import SanitizerLog
from verify.device.sanitizer.options import ERROR_EXIT_CODE
from verify.device.session import ProcessEnd


def doubt_of_process(end: ProcessEnd, log: SanitizerLog | None, problem: str = "") -> str:
    """Why the log of one process cannot be taken as the whole truth, or empty.

    A process that was ended for a hang, or that died, has no complete log: the run it died in is charged by
    the session, and the others' verdicts are in doubt as far as they ran in it.
    """
    if log is None:
        return problem or f"the tool wrote no log ({end.cause})"
    if end.killed:
        return "the tool was ended with the run that hung, before it could write its summary"
    if log.notes:
        return f"the tool says: {log.notes[0]}"
    if log.errors is None or log.warnings is None:
        return f"the tool's log has no summary line ({end.cause})"
    if log.seen != (log.errors, log.warnings):
        counted = f"{log.seen[0]} errors and {log.seen[1]} warnings"
        return f"the log holds {counted} but its summary says: {log.summary}"
    reported = log.errors + log.warnings
    if reported and end.code != ERROR_EXIT_CODE:
        return f"the tool reported {reported} records but ended with {end.cause}"
    if not reported and end.code != 0:
        return f"the tool reported nothing but ended with {end.cause}"
    return ""


def doubt_of_runs(results: Mapping[str, RunResult]) -> str:
    """Why the markers do not prove that every run executed a kernel, or empty.

    Runs that failed speak for themselves and are judged by the check; a run that says done without having
    launched anything is what this looks for.
    """
    idle = [r.run for r in results.values() if r.status is RunStatus.DONE and r.kernels == 0]
    if idle:
        return f"the harness launched no kernel in {', '.join(idle[:3])}"
    return ""


def first_doubt(doubts: Sequence[str]) -> str:
    """The first that is not empty."""
    return next((doubt for doubt in doubts if doubt), "")

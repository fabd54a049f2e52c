"""When a run without records proves something: summary, harness markers and exit code must agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verify.device.interface import RunResult, RunStatus
from verify.device.sanitizer.log import SanitizerLog
from verify.device.sanitizer.options import ERROR_EXIT_CODE
from verify.device.session import ProcessEnd


def doubt_of_process(end: ProcessEnd, log: SanitizerLog | None, problem: str = "") -> str:
    """Why the log of one process may be incomplete, or empty.

    A process that was killed for a hang, or that crashed, has no complete log: the session charges the run in
    which it happened, and the other runs of the process are in doubt.
    """
    if log is None:
        return problem or f"the tool wrote no log ({end.cause})"
    if end.killed:
        return "the tool was killed because a run hung, before it could write its summary"
    if log.notes:
        return f"the tool reports: {log.notes[0]}"
    if log.errors is None or log.warnings is None:
        return f"the tool's log has no summary line ({end.cause})"
    if log.seen != (log.errors, log.warnings):
        counted = f"{log.seen[0]} errors and {log.seen[1]} warnings"
        return f"the log has {counted} but its summary says: {log.summary}"
    reported = log.errors + log.warnings
    if reported and end.code != ERROR_EXIT_CODE:
        return f"the tool reported {reported} records but ended with {end.cause}"
    if not reported and end.code != 0:
        return f"the tool reported nothing but ended with {end.cause}"
    return ""


def doubt_of_runs(results: Mapping[str, RunResult]) -> str:
    """Why the markers do not prove that every run executed a kernel, or empty.

    Failed runs are judged by the check; this looks for runs that finished without a launch.
    """
    idle = [r.run for r in results.values() if r.status is RunStatus.DONE and r.kernels == 0]
    if idle:
        return f"the harness launched no kernel in {', '.join(idle[:3])}"
    return ""


def first_doubt(doubts: Sequence[str]) -> str:
    """The first doubt that is not empty."""
    return next((doubt for doubt in doubts if doubt), "")

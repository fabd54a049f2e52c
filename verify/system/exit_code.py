"""The exit codes of every command, and of the processes that it starts for a kernel."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What an exit code means. After a signal it is 128 plus the signal's number."""

    CLEAN = 0
    FINDINGS = 1
    USAGE = 2
    """The request cannot be parsed or names something that does not exist, or a contract's code failed."""
    NOT_VERIFIED = 3
    """Inconclusive or not run, a build that failed, or a defect of the suite itself."""

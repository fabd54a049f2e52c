"""The exit codes of every command, and of the processes that it starts for a kernel."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit says; a signal's is 128 and its number."""

    CLEAN = 0
    FINDINGS = 1
    USAGE = 2
    """What was asked for cannot be read or does not exist, or a contract's own code failed."""
    NOT_VERIFIED = 3
    """Inconclusive or not run, a build that failed, or a defect of the suite itself."""

"""The log of ``verify sanitize -- PROGRAM``: its first and last lines, and whether it can be written.

The lines in between come from the program's processes, each of which appends its findings when it ends.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from verify.system.printable import printable

BAR = "========= "


class LogError(Exception):
    """The log file cannot be written; one line with its name."""


def begin_log(file: Path, program: str) -> None:
    """Start an empty log with a line that announces a summary; anything but a regular file is left alone."""
    try:
        if file.exists() and not stat.S_ISREG(file.stat().st_mode):
            return
        begun = f"CPU device: running {printable(program)}; without a summary below, the run was cut short"
        file.write_text(f"{BAR}{begun}\n")
    except OSError as error:
        raise LogError(f"--log-file {file}: cannot be written: {error.strerror}") from None


def end_log(file: Path, line: str) -> None:
    """Append the last line. Raises LogError."""
    try:
        with open(file, "a") as log:
            log.write(f"{BAR}{line}\n")
    except OSError as error:
        raise LogError(f"--log-file {file}: cannot be written: {error.strerror}") from None


def unwritable(file: Path) -> str:
    """Why a file cannot be written, or empty; checked before any work, so that no report is lost."""
    if file.is_dir():
        return "is a folder"
    if not file.absolute().parent.is_dir():
        return "the folder does not exist"
    return "" if os.access(file if file.exists() else file.absolute().parent, os.W_OK) else "is not writable"

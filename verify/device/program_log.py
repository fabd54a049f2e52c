"""The log of ``verify sanitize -- PROGRAM``: its first and last lines, and where it may be written.

What lies between comes from the program's processes, each of which adds its own findings when it ends.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from verify.system.printable import printable

BAR = "========= "


class LogError(Exception):
    """The log file cannot be written; one line that names it."""


def begin_log(file: Path, program: str) -> None:
    """Empties the log, and says that a summary must follow; whatever is no ordinary file is left as it is."""
    try:
        if file.exists() and not stat.S_ISREG(file.stat().st_mode):
            return
        begun = f"CPU device: running {printable(program)}; without a summary below, the run was cut short"
        file.write_text(f"{BAR}{begun}\n")
    except OSError as error:
        raise LogError(f"--log-file {file}: cannot be written: {error.strerror}") from None


def end_log(file: Path, line: str) -> None:
    """Adds the last line. Raises LogError."""
    try:
        with open(file, "a") as log:
            log.write(f"{BAR}{line}\n")
    except OSError as error:
        raise LogError(f"--log-file {file}: cannot be written: {error.strerror}") from None


def unwritable(file: Path) -> str:
    """Why a file cannot be written, or empty: asked before any work, for a report that is lost is none."""
    if file.is_dir():
        return "is a folder"
    if not file.absolute().parent.is_dir():
        return "there is no such folder"
    return "" if os.access(file if file.exists() else file.absolute().parent, os.W_OK) else "is not writable"

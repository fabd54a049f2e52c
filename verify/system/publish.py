"""Files and folders that appear whole or not at all: made beside their place, then renamed into it."""

from __future__ import annotations

import os
from pathlib import Path


def publish_text(file: Path, text: str) -> None:
    """Write a UTF-8 file that readers never meet half written; one that is there is replaced."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.rename(file)


def publish_folder(made: Path, target: Path) -> bool:
    """Rename a finished folder of the same file system; False when another one with files has the name."""
    try:
        made.rename(target)
    except OSError:
        return False
    return True

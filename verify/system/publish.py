"""Publishes files and folders atomically: they are written beside their target, then renamed."""

from __future__ import annotations

import os
from pathlib import Path


def publish_text(file: Path, text: str) -> None:
    """Write a UTF-8 file atomically, replacing any existing one."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.rename(file)


def publish_folder(made: Path, target: Path) -> bool:
    """Rename a finished folder on the same file system; False if ``target`` exists and is not empty."""
    try:
        made.rename(target)
    except OSError:
        return False
    return True

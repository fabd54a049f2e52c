"""The compute-sanitizer that the toolchain found, with its version as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verify.device.sanitizer.options import Version
from verify.toolchain.toolchain import find_toolchain


@dataclass(frozen=True)
class Sanitizer:
    """The program and its version, such as (2026, 4, 0, 0)."""

    path: Path
    version: Version

    @property
    def spelled_version(self) -> str:
        """``2026.4.0``."""
        return ".".join(map(str, self.version[:3]))


@dataclass(frozen=True)
class Missing:
    """No usable compute-sanitizer. reason: one line that says what to do."""

    reason: str


@cache
def find_sanitizer() -> Sanitizer | Missing:
    """The compute-sanitizer of this machine, or why there is none."""
    toolchain = find_toolchain()
    if toolchain.sanitizer is None:
        return Missing(toolchain.missing["compute-sanitizer"])
    if not toolchain.sanitizer_version:
        return Missing(f"{toolchain.sanitizer} does not start: it prints no --version")
    return Sanitizer(toolchain.sanitizer, tuple(map(int, toolchain.sanitizer_version.split("."))))

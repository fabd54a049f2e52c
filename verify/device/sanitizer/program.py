"""Find compute-sanitizer: the newest among the PyPI wheel, the toolkit and PATH, with its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verify.device.sanitizer.options import Version

ENVIRONMENT = "VERIFY_COMPUTE_SANITIZER"
"""Names the program to use, before any search."""


@dataclass(frozen=True)
class Sanitizer:
    """The program and its version, (2026, 4, 0, 0)."""

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
    """The newest usable compute-sanitizer of this machine, or why there is none."""
    named = os.environ.get(ENVIRONMENT)
    candidates = [Path(named)] if named else list(_candidates())
    usable: list[Sanitizer] = []
    problems: list[str] = []
    for path in candidates:
        if not os.access(path, os.X_OK):
            problems.append(f"{path} is not executable: chmod -R +x {path.parent.parent}")
            continue
        version = _version(path)
        if version:
            usable.append(Sanitizer(path, version))
        else:
            problems.append(f"{path} --version does not answer")
    if usable:
        return max(usable, key=lambda s: s.version)
    if named and not problems:
        problems.append(f"{ENVIRONMENT}={named} does not exist")
    return Missing(
        "; ".join(problems) or "no compute-sanitizer: pip install nvidia-cuda-sanitizer-api==13.5.25"
    )


def _candidates() -> Iterator[Path]:
    """Existing files that may be the program, each once."""
    seen: set[Path] = set()
    wheels = [Path(entry) / "nvidia" for entry in sys.path if entry]
    places = [path for wheel in wheels for path in sorted(wheel.glob("cu*/bin/compute-sanitizer"))]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if root := os.environ.get(variable):
            places.append(Path(root) / "bin" / "compute-sanitizer")
    if found := shutil.which("compute-sanitizer"):
        places.append(Path(found))
    places.append(Path("/usr/local/cuda/bin/compute-sanitizer"))
    for place in places:
        if place.is_file() and place.resolve() not in seen:
            seen.add(place.resolve())
            yield place


def _version(path: Path) -> Version | None:
    """``Version 2026.4.0.0 (build ...)`` as integers; None when the program does not say."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^Version (\d+(?:\.\d+)+)", answer.stdout, re.MULTILINE)
    return tuple(map(int, found[1].split("."))) if found else None

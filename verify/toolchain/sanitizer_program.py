"""Locates the compute-sanitizer executable and makes it executable."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

from verify.system.publish import publish_folder


def sanitizer_program(roots: list[Path]) -> Path | None:
    """The compute-sanitizer executable itself (not the wheel's launcher script), made executable."""
    given = os.environ.get("VERIFY_SANITIZER")
    places: list[Path] = []
    if given:
        named = Path(given)
        if named.is_file():
            return _executable(named)
        places.extend(sorted(named.rglob("compute-sanitizer/compute-sanitizer")) if named.is_dir() else [])
        places.append(named / "compute-sanitizer")
    for root in roots:
        places.extend(
            [
                root / "compute-sanitizer/compute-sanitizer",
                root / "extras/compute-sanitizer/compute-sanitizer",
            ]
        )
        places.append(root / "bin" / "compute-sanitizer")
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        on_path = shutil.which("compute-sanitizer")
        found = Path(on_path) if on_path else None
    return _executable(found) if found is not None else None


def _executable(tool: Path) -> Path | None:
    """The tool with its executable bits set, or an executable copy; an unpacked wheel lacks the bits."""
    mode = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
    for file in (tool, *(p for p in tool.parent.iterdir() if p.name.startswith("TreeLauncher"))):
        if file.is_file() and not os.access(file, os.X_OK):
            try:
                file.chmod(file.stat().st_mode | mode)
            except OSError:
                return _executable_copy(tool)
    return tool


def _executable_copy(tool: Path) -> Path | None:
    """A copy of the tool's folder in the build cache, where it can be made executable."""
    from verify.toolchain.cache import cache_folder

    target = cache_folder() / "sanitizer" / re.sub(r"[^A-Za-z0-9]+", "_", str(tool.parent.resolve()))[-80:]
    if not (target / tool.name).is_file():
        partial = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copytree(tool.parent, partial, ignore=shutil.ignore_patterns("docs"))
        for file in partial.iterdir():
            if file.is_file():
                file.chmod(0o755)
        if not publish_folder(partial, target):
            shutil.rmtree(partial)
    return target / tool.name if (target / tool.name).is_file() else None

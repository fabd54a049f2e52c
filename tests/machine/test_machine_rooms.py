"""Arrows between the machine's rooms: an include that points back would tie two rooms into one."""

import re
from pathlib import Path

from verify.system.resources import resource_folder
from verify.toolchain.machine_build import FOLDERS

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def included() -> list[tuple[Path, str]]:
    """Every include of the machine's files: the file, from the machine's root, and the path as written."""
    root = resource_folder("machine")
    files = sorted(
        file for room in FOLDERS for file in (root / room).iterdir() if file.suffix in (".cpp", ".hpp")
    )
    return [(file.relative_to(root), path) for file in files for path in INCLUDE.findall(file.read_text())]


def test_includes_are_written_from_the_root() -> None:
    """Fault: a relative include, which breaks when its file moves, and hides which room it uses."""
    root = resource_folder("machine")
    assert [f"{file}: {path}" for file, path in included() if not (root / path).is_file()] == []


def test_includes_point_to_rooms_below() -> None:
    """Fault: a room includes one above it, without which it cannot be read, tested or replaced."""
    back = [
        f"{file}: {path}"
        for file, path in included()
        if FOLDERS.index(Path(path).parts[0]) > FOLDERS.index(file.parts[0])
    ]
    assert back == []

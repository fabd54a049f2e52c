"""The rooms of verify/ stand in the order that pyproject.toml gives, and nothing flows back.

import-linter reads the same contract (ci/lint); here it is held where that tool is not installed.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def name_of(file: Path, root: Path) -> str:
    """``verify.wire.pack``, or ``verify.wire`` for the ``__init__`` of a room."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def arrows_of(root: Path) -> Mapping[str, set[str]]:
    """By module, the modules that it imports: anywhere in its code, and also for types alone."""
    files = {name_of(file, root): file for file in (root / "verify").rglob("*.py")}
    arrows: dict[str, set[str]] = {}
    for module, file in files.items():
        arrows[module] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                inside = [f"{node.module}.{alias.name}" for alias in node.names]
                named = [name if name in files else node.module for name in inside]
            else:
                continue
            arrows[module].update(name for name in named if name in files and name != module)
    return arrows


def faults(arrows: Mapping[str, set[str]], ranks: Mapping[str, int]) -> list[str]:
    """Arrows between rooms that do not point down, and the first circle of modules."""
    found = []
    for module, imported in sorted(arrows.items()):
        for other in sorted(imported):
            here, there = (name.split(".")[1] if "." in name else "" for name in (module, other))
            if here and there and here != there and ranks[there] >= ranks[here]:
                found.append(f"{module} imports {other}")
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        found.append(f"circle: {' -> '.join(error.args[1])}")
    return found


@cache
def order() -> Mapping[str, int]:
    """Each room's height, from pyproject.toml; those of one line have one height."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    return {room.strip(): -height for height, line in enumerate(layers) for room in line.split("|")}


def test_every_arrow_points_down_and_there_is_no_circle() -> None:
    """Fault: a room imports from one above it, or two modules import each other."""
    assert faults(arrows_of(ROOT), order()) == []


def test_every_room_is_in_the_order() -> None:
    """Fault: a new room is missing from the order, so its imports are not checked."""
    inside = list((ROOT / "verify").iterdir())
    rooms = {p.stem for p in inside if p.suffix == ".py" or (p / "__init__.py").is_file()}
    assert rooms - {"__init__"} == set(order())


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("import verify.high.b\n", "", ["verify.low.a imports verify.high.b"]),
        ("def late():\n    from verify.high import b\n", "", ["verify.low.a imports verify.high.b"]),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from verify.high.b import X\n",
            "X = int\n",
            ["verify.low.a imports verify.high.b"],
        ),
        ("", "from verify.low.a import *\n", []),
    ],
)
def test_an_import_is_seen_wherever_it_stands(
    tmp_path: Path, low: str, high: str, expected: list[str]
) -> None:
    """Fault: an import in a function, or for types alone, is overlooked; or a right one is refused."""
    for room, module, text in (("low", "a", low), ("high", "b", high)):
        folder = tmp_path / "verify" / room
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / f"{module}.py").write_text(text)
    assert faults(arrows_of(tmp_path), {"low": 0, "high": 1}) == expected


def test_a_circle_inside_a_room_is_seen(tmp_path: Path) -> None:
    """Fault: two modules of one room import each other."""
    room = tmp_path / "verify" / "low"
    room.mkdir(parents=True)
    (room / "a.py").write_text("from verify.low.b import Y\n")
    (room / "b.py").write_text("def f():\n    from verify.low import a\n")
    (found,) = faults(arrows_of(tmp_path), {"low": 0})
    assert found.startswith("circle: verify.low.")

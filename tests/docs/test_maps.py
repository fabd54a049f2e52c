"""The pages that map the code have its folders, and the glossary its order."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def folders_in(table: str) -> set[str]:
    """The folders that the first cells of a table name."""
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)/`", cell)}


def test_the_map_of_the_package_has_its_rooms_in_order() -> None:
    """Fault: a room that its reader does not find, or one in another place than imports allow."""
    page = (ROOT / "verify" / "README.md").read_text()
    (layers,) = (
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
            "contracts"
        ]
        if contract["type"] == "layers"
    )
    rooms = [name for layer in layers for name in layer.split(" | ") if name != "__main__"]
    assert re.findall(r"`(\w+)/`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))) == rooms


def test_the_map_of_the_machine_has_its_folders() -> None:
    """Fault: a folder of the machine that its reader does not find, or one that is gone."""
    page = (ROOT / "machine" / "README.md").read_text()
    there = {folder.name for folder in (ROOT / "machine").iterdir() if any(folder.glob("*.hpp"))}
    assert folders_in(page) == there


def test_the_glossary_is_in_order_and_short() -> None:
    """Fault: a term that is not where its reader looks, or that is there twice, or an essay."""
    entries = (ROOT / "docs" / "glossary.md").read_text().split("\n\n")[1:]
    terms = [entry.split("**")[1].rstrip(".").lower() for entry in entries]
    assert terms == sorted(set(terms))
    assert max(len(entry.splitlines()) for entry in entries) <= 3

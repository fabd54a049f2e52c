"""Planted faults: reads a kernel's mutants and applies their patches to its production source."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from verify.contract import Contract
from verify.discovery import source_file

FOLDER = Path(__file__).parent
_HUNK = re.compile(r"^@@ .*$", re.MULTILINE)


class PatchError(ValueError):
    """A patch whose old lines do not stand exactly once in the source; the message names patch and hunk."""


@dataclass(frozen=True)
class Mutant:
    """One planted fault. checks: every check that must report it. fixtures: ``-k`` expression that is enough
    to show it (None: all). devices: where it can be seen at all."""

    kernel: str
    name: str
    patch: Path
    fault: str
    checks: tuple[str, ...]
    fixtures: str | None = None
    devices: tuple[str, ...] = ("gpu", "cpu")


def mutants_of(kernel: str) -> tuple[Mutant, ...]:
    """The mutants of a kernel, in file order."""
    folder = FOLDER / kernel
    document = tomllib.loads((folder / "mutants.toml").read_text(encoding="utf-8"))
    return tuple(
        Mutant(
            kernel,
            row["name"],
            folder / row.get("patch", f"{row['name']}.patch"),
            row["fault"],
            tuple(row["checks"]),
            row.get("fixtures"),
            tuple(row.get("devices", ("gpu", "cpu"))),
        )
        for row in document["mutant"]
    )


def apply_patch(text: str, patch: str, name: str) -> str:
    """A source with every hunk of a unified diff applied.

    Line numbers are ignored: the old lines of a hunk (context and removed) must stand exactly once in the
    text, so a patch follows the code when it moves and fails when the code changes. Raises PatchError.
    """
    for number, hunk in enumerate(_HUNK.split(patch)[1:], 1):
        lines = [line for line in hunk.strip("\n").splitlines() if not line.startswith("\\")]
        old = "\n".join(line[1:] for line in lines if line[:1] in ("", " ", "-"))
        new = "\n".join(line[1:] for line in lines if line[:1] in ("", " ", "+"))
        if text.count(old) != 1:
            raise PatchError(
                f"{name}: hunk {number}: its old lines stand {text.count(old)} times in the source"
            )
        text = text.replace(old, new)
    return text


def plant(contract: Contract, mutant: Mutant, folder: Path) -> Contract:
    """The contract of the mutated kernel, whose source is written into ``folder``."""
    original = source_file(contract)
    text = apply_patch(
        original.read_text(encoding="utf-8"), mutant.patch.read_text(encoding="utf-8"), mutant.name
    )
    (folder / contract.source).write_text(text, encoding="utf-8")
    return dataclasses.replace(contract, directory=folder)

"""Planted faults: reads a kernel's mutants and applies their patches to its production source."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify.check.specs import CHECKS
from verify.contract.discovery import source_file
from verify.contract.model import Contract
from verify.toolchain.cache import cached, digest

FOLDER = Path(__file__).parent
DEVICES = ("gpu", "cpu")
_HUNK = re.compile(r"^@@ .*$", re.MULTILINE)
_KEYS = {"name", "patch", "fault", "checks", "gpu", "cpu", "fixtures", "devices", "kind"}


class PatchError(ValueError):
    """A patch whose old lines do not stand exactly once in the source; the message names patch and hunk."""


class MutantError(ValueError):
    """A row of a mutants file that cannot be used; the message names file, mutant and field."""


@dataclass(frozen=True)
class Mutant:
    """One planted fault.

    checks: every check that must report it, on every device. gpu, cpu: further ones for that device.
    fixtures: ``-k`` expression that is enough to show it (None: all). devices: where it can be seen at all.
    kind: what a finding of one of the checks must be called, "" for any name.
    """

    kernel: str
    name: str
    patch: Path
    fault: str
    checks: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    fixtures: str | None = None
    devices: tuple[str, ...] = DEVICES
    kind: str = ""

    def expected(self, device: str) -> tuple[str, ...]:
        """The checks that must report it on a device, empty where it cannot be seen."""
        if device not in self.devices:
            return ()
        return (*self.checks, *(self.gpu if device == "gpu" else self.cpu))


def kernels_with_mutants() -> list[str]:
    """Names of the kernels that have a mutants file."""
    return sorted(p.parent.name for p in FOLDER.glob("*/mutants.toml"))


def mutants_of(kernel: str) -> tuple[Mutant, ...]:
    """The mutants of a kernel, in file order. Raises MutantError."""
    file = FOLDER / kernel / "mutants.toml"
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    return tuple(_mutant(kernel, file, row) for row in document["mutant"])


def _mutant(kernel: str, file: Path, row: dict[str, Any]) -> Mutant:
    at = f"{file}: {row.get('name', '?')}"
    for key in row.keys() - _KEYS:
        raise MutantError(f"{at}: {key}: is not one of {', '.join(sorted(_KEYS))}")
    for key in {"name", "fault"} - row.keys():
        raise MutantError(f"{at}: {key}: is missing")
    lists: dict[str, tuple[str, ...]] = {key: tuple(row.get(key, ())) for key in ("checks", "gpu", "cpu")}
    for key, names in lists.items():
        for name in names:
            if name not in CHECKS:
                raise MutantError(f"{at}: {key}: {name!r} is not one of {', '.join(CHECKS)}")
    mutant = Mutant(
        kernel,
        str(row["name"]),
        file.parent / str(row.get("patch", f"{row['name']}.patch")),
        str(row["fault"]),
        **lists,
        fixtures=str(row["fixtures"]) if "fixtures" in row else None,
        devices=tuple(row.get("devices", DEVICES)),
        kind=str(row.get("kind", "")),
    )
    if not any(mutant.expected(device) for device in DEVICES):
        raise MutantError(f"{at}: checks: name none, so nothing could report it")
    return mutant


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


def mutated_source(contract: Contract, mutant: Mutant) -> str:
    """The kernel's source with the fault in it. Raises PatchError."""
    original = source_file(contract).read_text(encoding="utf-8")
    return apply_patch(original, mutant.patch.read_text(encoding="utf-8"), mutant.name)


def plant(contract: Contract, mutant: Mutant) -> Contract:
    """The contract of the mutated kernel. Raises PatchError."""
    return with_source(contract, mutated_source(contract, mutant))


def with_source(contract: Contract, text: str) -> Contract:
    """The contract of a kernel with another source, which is kept in the build cache.

    The cache, because a harness is kept under the path of its source too: the same source compiles once.
    """

    def write(folder: Path) -> None:
        (folder / contract.source).write_text(text, encoding="utf-8")

    folder, _ = cached("mutant", digest([contract.source, text]), write)
    return dataclasses.replace(contract, directory=folder)

"""The catalogue: faults as patches of a kernel's source, one per row of a table.

Ours are in ``mutants/KERNEL/``, a user's in ``mutants/NAME/`` beside the contract: ``mutants.toml`` with the
rows, a patch for each, and ``equivalent.toml`` with the operators' mutants that are no faults, each with the
reason.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verify.check.specs import CHECKS
from verify.contract.discovery import is_own, source_file
from verify.contract.model import Contract
from verify.mutation.edit import changed_range
from verify.mutation.kinds import Kind
from verify.mutation.mutant import DEVICES, Mutant, Origin
from verify.source.declarations import functions_of
from verify.source.syntax import SyntaxTree, parse
from verify.system.resources import resource_folder

TABLE, EQUIVALENTS = "mutants.toml", "equivalent.toml"
_HUNK = re.compile(r"^@@ .*$", re.MULTILINE)
_KEYS = {
    "name",
    "patch",
    "kind",
    "fault",
    "checks",
    "gpu",
    "cpu",
    "devices",
    "finding",
    "equivalent",
    "public",
}


class PatchError(ValueError):
    """A patch's old lines do not occur exactly once in the source; the message names patch and hunk."""


class CatalogueError(ValueError):
    """A row of a table cannot be used; the message names file, row and field."""


def catalogue_folder(contract: Contract) -> Path:
    """The folder of a contract's catalogue, whether it exists or not."""
    if is_own(contract):
        return resource_folder("mutants") / contract.name
    return contract.directory / "mutants" / contract.name


def catalogue_of(contract: Contract) -> tuple[Mutant, ...]:
    """The mutants of a contract's catalogue, in its order; none without a table.

    Raises CatalogueError, and PatchError for a patch that no longer applies.
    """
    file = catalogue_folder(contract) / TABLE
    if not file.is_file():
        return ()
    original = source_file(contract).read_text(encoding="utf-8")
    tree = parse(original)
    mutants = [_mutant(contract, file, row, original, tree) for row in _rows(file, "mutant")]
    named = {file.parent / str(row.get("patch", f"{row['name']}.patch")) for row in _rows(file, "mutant")}
    if stray := sorted(p.name for p in file.parent.glob("*.patch") if p not in named):
        raise CatalogueError(f"{file}: no row names {', '.join(stray)}")
    return tuple(mutants)


def _rows(file: Path, name: str) -> list[dict[str, Any]]:
    try:
        return list(tomllib.loads(file.read_text(encoding="utf-8")).get(name, []))
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{file}: {error}") from None


def _mutant(contract: Contract, file: Path, row: dict[str, Any], original: str, tree: SyntaxTree) -> Mutant:
    at = f"{file}: {row.get('name', '?')}"
    for key in sorted(row.keys() - _KEYS):
        raise CatalogueError(f"{at}: {key}: is not one of {', '.join(sorted(_KEYS))}")
    for key in sorted({"name", "kind", "fault"} - row.keys()):
        raise CatalogueError(f"{at}: {key}: is missing")
    lists: dict[str, tuple[str, ...]] = {key: tuple(row.get(key, ())) for key in ("checks", "gpu", "cpu")}
    for key, names in lists.items():
        for name in names:
            if name not in CHECKS:
                raise CatalogueError(f"{at}: {key}: {name!r} is not one of {', '.join(CHECKS)}")
    try:
        kind = Kind.named(row["kind"])
    except ValueError as error:
        raise CatalogueError(f"{at}: kind: {error}") from None
    patch = file.parent / str(row.get("patch", f"{row['name']}.patch"))
    if not patch.is_file():
        raise CatalogueError(f"{at}: patch: there is no {patch}")
    changed = apply_patch(original, patch.read_text(encoding="utf-8"), f"{patch}")
    if changed == original:
        raise PatchError(f"{patch}: changes nothing")
    mutant = Mutant(
        contract.name,
        str(row["name"]),
        kind,
        str(row["fault"]),
        changed,
        line_of_change(original, changed),
        Origin.CATALOGUE,
        is_device_only(tree, changed),
        **lists,
        devices=tuple(row.get("devices", DEVICES)),
        finding=str(row.get("finding", "")),
        equivalent=str(row.get("equivalent", "")),
        public=tuple(row.get("public", ())),
    )
    if not mutant.equivalent and not any(mutant.expected(device) for device in DEVICES):
        raise CatalogueError(f"{at}: checks: name none, so nothing could report it")
    return mutant


def apply_patch(text: str, patch: str, name: str) -> str:
    """A source with every hunk of a unified diff applied.

    Line numbers are ignored: the old lines of a hunk (context and removed) must occur exactly once in the
    text, so a patch follows code that moves and fails when the code changes. Raises PatchError.
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


def line_of_change(original: str, changed: str) -> int:
    """The 1-based line of the first difference."""
    start, _ = changed_range(original.encode(), changed.encode())
    return original.encode().count(b"\n", 0, start) + 1


def is_device_only(tree: SyntaxTree, changed: str) -> bool:
    """Whether a changed source differs from the tree's only in the body of one device function."""
    start, end = changed_range(tree.source, changed.encode())
    return any(f.on_device_only and f.holds(start, end) for f in functions_of(tree))


@dataclass(frozen=True)
class Explained:
    """An operator's mutant that is not a fault. text: the source line of its change, without indentation.
    number: which of the operator's mutants on such a line, from 1."""

    operator: str
    text: str
    number: int
    reason: str


def explained_of(contract: Contract) -> tuple[Explained, ...]:
    """The operators' mutants of a contract that are known not to be faults. Raises CatalogueError."""
    file = catalogue_folder(contract) / EQUIVALENTS
    rows = _rows(file, "equivalent") if file.is_file() else []
    found = []
    for row in rows:
        at = f"{file}: {row.get('operator', '?')}"
        if missing := sorted({"operator", "text", "reason"} - row.keys()):
            raise CatalogueError(f"{at}: lacks {', '.join(missing)}")
        if unknown := sorted(row.keys() - {"operator", "text", "number", "reason"}):
            raise CatalogueError(f"{at}: {', '.join(unknown)}: is no field")
        found.append(
            Explained(row["operator"], row["text"].strip(), int(row.get("number", 1)), row["reason"])
        )
    return tuple(found)


def with_reasons(
    mutants: Iterable[Mutant], explained: Sequence[Explained], original: str
) -> tuple[Mutant, ...]:
    """The operators' mutants; those known not to be faults have their reasons.

    Raises CatalogueError for a reason whose mutant no longer exists.
    """
    lines = original.splitlines()
    reasons = {(e.operator, e.text, e.number): e for e in explained}
    used, result = set(), []
    for mutant in mutants:
        operator, _, place = mutant.name.partition("@")
        key = (operator, lines[mutant.line - 1].strip(), int(place.partition(".")[2] or 1))
        if key in reasons:
            used.add(key)
            mutant = replace(mutant, equivalent=reasons[key].reason)
        result.append(mutant)
    for key in reasons.keys() - used:
        raise CatalogueError(f"{EQUIVALENTS}: {key[0]}: no mutant number {key[2]} on a line {key[1]!r}")
    return tuple(result)

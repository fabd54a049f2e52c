"""What is said of the planted faults that change numbers: ``python -m tests.diagnosis.on_mutants [WORD...]``.

The table ``mutants.toml`` beside this file has, for each, the fixture that shows it and words of the right
diagnosis; without words, none is right. Each is built and compared on the CPU device, one at a time, which
takes about a minute for ten. Words choose mutants whose ``kernel/name`` holds one of them.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from verify.check.diagnosed import DIAGNOSIS
from verify.contract.discovery import find_contracts
from verify.device.interface import Device
from verify.device.select import NoDevice, select_device
from verify.gate.gate import run_checks
from verify.gate.prepare import prepare
from verify.gate.selection import Selection
from verify.mutation.catalogue import catalogue_of
from verify.mutation.planting import with_source

TABLE = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Row:
    """One planted fault. words: parts of diagnoses that are right, empty where none is."""

    kernel: str
    name: str
    fixture: str
    words: tuple[str, ...]


def rows(*chosen: str) -> list[Row]:
    """The table, or the rows whose ``kernel/name`` holds one of the words."""
    listed = tomllib.loads(TABLE.read_text(encoding="utf-8"))["mutant"]
    every = [Row(r["kernel"], r["name"], r["fixture"], tuple(r["words"])) for r in listed]
    return [row for row in every if not chosen or any(word in f"{row.kernel}/{row.name}" for word in chosen)]


def said_of(row: Row, device: Device) -> str:
    """The first diagnosis of the mutant, empty where there is none."""
    (contract,) = find_contracts([row.kernel])
    source = next(m.source for m in catalogue_of(contract) if m.name == row.name)
    planted = with_source(contract, source)
    info, chosen = device.info(), Selection((planted,), row.fixture, (), ("compare",))
    ready = prepare(planted, chosen.select, info.architecture, info.sm_count, lambda _: None, False)
    with tempfile.TemporaryDirectory(prefix="verify-diagnosis-") as scratch:
        outcomes = run_checks(ready, device, ("compare",), Path(scratch), chosen, lambda _: None)
    found = (dict(f.details).get(DIAGNOSIS, "") for o in outcomes for f in o.findings)
    return next(filter(None, found), "")


def verdict(row: Row, said: str) -> str:
    """``named``, ``among others``, ``silent``, or ``WRONG``: certain of what it is not."""
    if not said:
        return "silent"
    right = any(word in said for word in row.words)
    if said.startswith("matches"):
        return "named" if right else "WRONG"
    return "among others" if right else "silent"


def main(*chosen: str) -> int:
    """Print the table and the tally; 1 where a diagnosis is certain and wrong."""
    device = select_device("cpu")
    if isinstance(device, NoDevice):
        print(device.reason)
        return 3
    tally: dict[str, int] = {}
    for row in rows(*chosen):
        said = said_of(row, device)
        found = verdict(row, said)
        if row.words or found == "WRONG":
            tally[found] = tally.get(found, 0) + 1
        print(f"{row.kernel}/{row.name}: {found}: {said or 'nothing said'}", flush=True)
    print(", ".join(f"{count} {found}" for found, count in sorted(tally.items())))
    return int("WRONG" in tally)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

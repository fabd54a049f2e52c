"""The matrix of checks, profiles and fills, with reasons, read from ``matrix.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verify.contract.model import Case
from verify.wire.run import Fill, Fills, Run

_FILE = Path(__file__).with_name("matrix.toml")


@dataclass(frozen=True)
class MatrixRow:
    """One check's row: profiles is ``all`` or ``control paths``."""

    check: str
    profiles: str
    fills: tuple[Fill, ...]
    mode: str
    reason: str


@cache
def matrix() -> Mapping[str, MatrixRow]:
    """All rows by check name."""
    document = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {
        check: MatrixRow(check, row["profiles"], tuple(row["fills"]), row["mode"], row["reason"])
        for check, row in document.items()
    }


def cases_for(check: str, cases: Mapping[str, Case]) -> tuple[Case, ...]:
    """The cases of one fixture that a check runs. The first profile always counts as a control path."""
    if matrix()[check].profiles == "all":
        return tuple(cases.values())
    flagged = {p.name for p in next(iter(cases.values())).contract.profiles if p.control_path}
    first = next(iter(cases))
    return tuple(case for profile, case in cases.items() if profile == first or profile in flagged)


def runs_for(check: str, cases: Mapping[str, Case]) -> tuple[Run, ...]:
    """The plain runs of a check over one fixture: one for each case and fill (``once`` and ``live-only``)."""
    row = matrix()[check]
    runs = []
    for case in cases_for(check, cases):
        if row.mode == "live-only":
            runs.append(Run(f"{case.fixture}.{case.profile}.live-only", case, mode="live-only"))
        runs += [filled_run(case, fill) for fill in row.fills]
    return tuple(runs)


def filled_run(case: Case, fill: Fill) -> Run:
    """One ordinary run with the same fill everywhere; its id depends only on case and fill."""
    return Run(f"{case.fixture}.{case.profile}.{fill}", case, fills=Fills(fill, fill, fill, fill))

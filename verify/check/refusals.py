"""Bad input as runs: a base case with what a refusal changes, and what a right launcher does with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verify.case.case import Case
from verify.case.run import Fill, Fills, Run
from verify.check.matrix import cases_for
from verify.check.native import BAD_INPUT
from verify.check.subject import Ran, Subject
from verify.contract import Buffer, Refusal
from verify.finding import Finding
from verify.oracle.formats import format_of


def refusal_runs(subject: Subject, fill: Fill) -> dict[str, list[Run]]:
    """The refusals' runs by the fixture that they start from: the named one, or the first selected one."""
    runs: dict[str, list[Run]] = {fixture: [] for fixture in subject.cases}
    for refusal in subject.contract.refusals:
        fixture = refusal.fixture if refusal.fixture in runs else next(iter(runs))
        base = cases_for("launch", subject.cases[fixture])[0]
        runs[fixture].append(
            Run(
                f"{fixture}.refuse-{refusal.name}",
                refused_case(base, refusal),
                "refuse",
                Fills(fill, fill, fill, None),
                null=refusal.null,
                misalign=tuple(refusal.misalign.items()),
                shrink=tuple(refusal.shrink.items()),
            )
        )
    return runs


def refused_case(base: Case, refusal: Refusal) -> Case:
    """The base case with the refusal's symbols. Lists of one entry a batch row follow the batch.

    Arrays whose view has another shape or element type now are left out: the call never comes to read them.
    """
    symbols: dict[str, Any] = {**base.symbols}
    for name, value in refusal.symbols.items():
        symbols[name] = value if isinstance(value, float) else base.evaluate(value)
    contract = base.contract
    if contract.batch is not None and symbols[contract.batch] != base[contract.batch]:
        rows, were = max(int(symbols[contract.batch]), 0), base[contract.batch]
        for name, value in symbols.items():
            if isinstance(value, tuple) and len(value) == were:
                symbols[name] = tuple(value[row % were] for row in range(rows))
    changed = replace(base, symbols=symbols)
    arrays = {n: a for n, a in base.arrays.items() if _fits(changed, contract.buffer(n), a)}
    return replace(changed, arrays=arrays)


def _fits(case: Case, buffer: Buffer, array: np.ndarray) -> bool:
    item = format_of(case.dtype(buffer)).itemsize
    return array.shape == case.shape(buffer) and array.dtype.itemsize == item


def refusal_findings(subject: Subject, ran: Ran, repeat: str) -> list[Finding]:
    """What the launcher did wrong with one bad input."""
    output, run = ran.output, ran.run
    assert output is not None
    seen: list[tuple[str, str]] = []
    if output.returned == "cudaSuccess":
        seen.append(("bad input accepted", "the launcher returned cudaSuccess"))
    if output.kernels:
        seen.append(("launched on bad input", f"{output.kernels} kernels were launched"))
    if output.intrusion_count:
        first = output.intrusions[0]
        seen.append(
            (
                "wrote on bad input",
                f"{first.count} bytes of {first.buffer} at byte {first.offset} changed, in "
                f"{output.intrusion_count} places in all",
            )
        )
    return [
        Finding(
            "launch",
            subject.contract.name,
            run.case.id,
            kind,
            text,
            BAD_INPUT,
            where=f"refusal {run.id.partition('.refuse-')[2]}",
            repeat=repeat,
            details=(("changed", _changes(subject, run)),),
        )
        for kind, text in seen
    ]


def _changes(subject: Subject, run: Run) -> str:
    """What the refusal changed, for a person."""
    name = run.id.partition(".refuse-")[2]
    refusal = next(r for r in subject.contract.refusals if r.name == name)
    parts = [f"{symbol} = {run.case.symbols[symbol]}" for symbol in refusal.symbols]
    parts += [f"{buffer} is null" for buffer in refusal.null]
    parts += [f"{buffer} moved by {count} bytes" for buffer, count in _items(refusal.misalign)]
    parts += [f"bytes({buffer}) less {count}" for buffer, count in _items(refusal.shrink)]
    return ", ".join(parts)


def _items(changes: Mapping[str, int]) -> list[tuple[str, int]]:
    return list(changes.items())

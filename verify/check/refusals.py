"""Runs with bad input: a base case with a refusal's changes, and the judgement of the launcher's reaction.

A call that two guards reject proves neither of them. So defaults that depend on the changed values change
with them (such as strides with a head dimension), and the workspace is as large as the launcher's own plan
requires for the bad input: if the plan function has lost its guard, it answers, and nothing else is wrong
with the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verify.check.native import BAD_INPUT
from verify.check.subject import Ran, Subject
from verify.contract.entries import Refusal
from verify.contract.expression import ExpressionError
from verify.contract.formats import format_of
from verify.contract.model import Buffer, Case
from verify.finding.finding import Finding
from verify.finding.kind import FaultKind
from verify.fixture.axes import family_of
from verify.fixture.resolve import resolve_symbols
from verify.fixture.schema import Fixture, FixtureError
from verify.harness.plan import PlanError
from verify.wire.run import Fill, Fills, Run

MOST_ROWS = 1 << 12
"""Largest length of a list that follows the batch: the call is rejected before it is read."""


def refusal_runs(subject: Subject, fill: Fill) -> dict[str, list[Run]]:
    """The refusals' runs by the fixture whose outcome includes them.

    A refusal is based on the fixture that it names, or on the contract's first, since what is bad for one
    shape may be valid for another. It is reported with that fixture, or with the first selected one.
    """
    runs: dict[str, list[Run]] = {fixture: [] for fixture in subject.cases}
    cases = [
        refused_case(base, fixture, refusal)
        for refusal in subject.contract.refusals
        for fixture, base in (base_of(refusal, subject.bases),)
    ]
    for refusal, case, plan in zip(subject.contract.refusals, cases, _offers(subject, cases), strict=True):
        runs[case.fixture if case.fixture in runs else next(iter(runs))].append(
            Run(
                f"{case.fixture}.refuse-{refusal.name}",
                with_fitting_arrays(replace(case, plan={**case.plan, **plan})),
                "refuse",
                Fills(fill, fill, fill, None),
                null=refusal.null,
                misalign=tuple(refusal.misalign.items()),
                shrink=tuple(refusal.shrink.items()),
            )
        )
    return runs


def base_of(refusal: Refusal, bases: Mapping[str, tuple[Fixture, Case]]) -> tuple[Fixture, Case]:
    """The fixture and case that a refusal is based on; the contract's bases are in file order."""
    named = (base for name, base in bases.items() if refusal.fixture in (name, family_of(name)))
    return next(named, next(iter(bases.values())))


def refused_case(base: Case, fixture: Fixture, refusal: Refusal) -> Case:
    """The base case with the refusal's symbols, and with the defaults that depend on them.

    Lists with one entry per batch row follow the batch. Raises FixtureError if a buffer cannot be evaluated.
    """
    contract = base.contract
    changed = {
        name: value if isinstance(value, float) else base.evaluate(value)
        for name, value in refusal.symbols.items()
    }
    altered = replace(fixture, symbols={**fixture.symbols, **changed})
    symbols = resolve_symbols(altered, contract, base.plan, instead={**base.symbols, **changed})
    if contract.batch is not None and symbols[contract.batch] != base[contract.batch]:
        rows, were = min(max(int(symbols[contract.batch]), 0), MOST_ROWS), base[contract.batch]
        for name, value in symbols.items():
            if isinstance(value, tuple) and len(value) == were:
                symbols[name] = tuple(value[row % were] for row in range(rows))
    case = replace(base, symbols=symbols)
    for name in (*refusal.null, *refusal.misalign, *refusal.shrink):
        if any(b.name == name for b in contract.buffers) and not case.given(name):
            why = f"{name} is a null pointer in fixture {fixture.name}: name one with fixture="
            raise FixtureError(f"{contract.name}: refusal {refusal.name}: {why}")
    for buffer in contract.buffers:
        try:
            case.shape(buffer), case.strides(buffer)
        except ExpressionError as error:
            raise FixtureError(f"{contract.name}: refusal {refusal.name}: {buffer.name}: {error}") from None
    return case


def with_fitting_arrays(case: Case) -> Case:
    """Drop arrays whose view now has another shape or element type: the call never reads them."""
    arrays = {n: a for n, a in case.arrays.items() if _fits(case, case.contract.buffer(n), a)}
    return replace(case, arrays=arrays)


def _offers(subject: Subject, cases: Sequence[Case]) -> Sequence[Mapping[str, int]]:
    """The launcher's plan for each case, empty if rejected; if one crashes the query, each is asked alone."""
    asked = [case.symbols for case in cases]
    try:
        return subject.offers(asked)
    except PlanError:
        return [_offer(subject, symbols) for symbols in asked]


def _offer(subject: Subject, symbols: Mapping[str, Any]) -> Mapping[str, int]:
    try:
        return subject.offers([symbols])[0]
    except PlanError:
        return {}


def _fits(case: Case, buffer: Buffer, array: np.ndarray) -> bool:
    item = format_of(case.dtype(buffer)).itemsize
    return array.shape == case.shape(buffer) and array.dtype.itemsize == item


def refusal_findings(subject: Subject, ran: Ran, repeat: str) -> list[Finding]:
    """The launcher's faults with one bad input."""
    output, run = ran.output, ran.run
    assert output is not None
    name = run.id.partition(".refuse-")[2]
    refusal = next(r for r in subject.contract.refusals if r.name == name)
    seen: list[tuple[FaultKind, str]] = []
    if output.returned == "cudaSuccess":
        seen.append((FaultKind.ACCEPTED, "the launcher returned cudaSuccess"))
    elif refusal.error not in (None, output.returned):
        returned = f"the launcher returned {output.returned}, the contract promises {refusal.error}"
        seen.append((FaultKind.OTHER_ERROR, returned))
    if output.kernels:
        seen.append((FaultKind.LAUNCHED, f"{output.kernels} kernels were launched"))
    if output.intrusion_count:
        first = output.intrusions[0]
        seen.append(
            (
                FaultKind.WROTE,
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
            where=f"refusal {name}",
            repeat=repeat,
            details=(("changed", _changes(refusal, run)),),
        )
        for kind, text in seen
    ]


def _changes(refusal: Refusal, run: Run) -> str:
    """The refusal's changes, in words."""
    parts = [f"{symbol} = {run.case.symbols[symbol]}" for symbol in refusal.symbols]
    parts += [f"{buffer} is null" for buffer in refusal.null]
    parts += [f"{buffer} moved by {count} bytes" for buffer, count in refusal.misalign.items()]
    parts += [f"bytes({buffer}) less {count}" for buffer, count in refusal.shrink.items()]
    return ", ".join(parts)

"""determinism: repeats under load give the same bits; a row alone gives the same result as in its batch.

The smallest case is also called many times in one process: state that persists between calls (a counter in a
``__device__`` variable, a static of the launcher) may take effect only after a hundred calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from verify.check.drift import beyond_drift, first_apart, promise_of
from verify.check.judge import coordinates, judge_output
from verify.check.matrix import cases_for, filled_run, matrix
from verify.check.native import not_done
from verify.check.schedules import schedule_findings, under_seeds
from verify.check.subject import Ran, Subject
from verify.contract.model import Case
from verify.device.interface import Capability
from verify.finding.finding import Finding, Outcome
from verify.finding.kind import FaultKind
from verify.harness.plan import PlanError
from verify.oracle.expectation import OracleError, expect
from verify.wire.run import Fills, Run

REPEATS = 20
"""Launches of one case on a GPU, each with a different concurrent load."""

MOST_CALLS, FEWEST_CALLS = 300, 100
"""Calls of the smallest case; if it is small, enough to wrap an 8-bit counter."""

CALLED_ELEMENTS = 1 << 20
"""Elements of all these calls together, beyond which the CPU device makes fewer calls."""

MOST_ROWS = 8
"""Rows of a batch that are run alone: the first, the last, and some in between."""

_UNDER_LOAD = "whatever else runs concurrently and in whatever order threads run"
_EACH_CALL = "in every call of a process"
_MEMORY_PROMISE = "a call frees the device memory that it allocates, or allocates it once for all calls"
_ROW_ALONE = "for a row alone and in a batch, with the batch's choices pinned"


@dataclass(frozen=True)
class RowPair:
    """One row of a batch, and the run of that row alone. pinned: with the batch's choices."""

    batch: Run
    row: int
    alone: Run
    pinned: bool


def check_determinism(subject: Subject) -> list[Outcome]:
    """One outcome per fixture: other schedules where seeded, else repeats under load; rows alone."""
    scheduled = subject.can(Capability.SEEDS_SCHEDULES)
    usual: dict[str, list[Run]] = {}
    pairs: dict[str, list[RowPair]] = {}
    refused: dict[str, str] = {}
    for fixture, cases in subject.cases.items():
        usual[fixture] = [_usual_run(case, scheduled) for case in cases_for("determinism", cases)]
        try:
            pairs[fixture] = [pair for run in usual[fixture] for pair in row_pairs(subject, run)]
        except PlanError as error:
            pairs[fixture], refused[fixture] = [], str(error)
    every = [run for listed in usual.values() for run in listed]
    called = many_calls(every, scheduled)
    ran = subject.execute([*every, *(pair.alone for listed in pairs.values() for pair in listed)])
    ran |= subject.execute([called])  # in a separate process, whose first call is the kernel's first
    seeded = under_seeds(subject, every, ran) if scheduled else {}
    counted = {called.case.fixture: called}
    return [
        _judge(subject, f, usual[f], pairs[f], counted.get(f), ran, seeded, refused.get(f, ""))
        for f in subject.cases
    ]


def many_calls(runs: Sequence[Run], scheduled: bool) -> Run:
    """The run that calls the smallest case of these runs many times."""
    smallest = min(runs, key=lambda run: _elements(run.case))
    case = smallest.case
    calls = MOST_CALLS
    if scheduled:
        calls = min(MOST_CALLS, max(FEWEST_CALLS, CALLED_ELEMENTS // max(_elements(case), 1)))
    keep = case.contract.drift > 0
    return Run(
        f"{case.fixture}.{case.profile}.calls", case, "many-calls", smallest.fills, calls, keep_differing=keep
    )


def _elements(case: Case) -> int:
    return sum(prod(case.shape(buffer)) for buffer in case.contract.buffers)


def _usual_run(case: Case, scheduled: bool) -> Run:
    """The run to repeat: on the CPU device with other seeds, else by the harness itself, under load."""
    fill = matrix()["determinism"].fills[0]
    if scheduled:
        return filled_run(case, fill)
    fills = Fills(fill, fill, fill, fill)
    keep = case.contract.drift > 0
    return Run(f"{case.fixture}.{case.profile}.repeat", case, "repeat", fills, REPEATS, keep_differing=keep)


def row_pairs(subject: Subject, run: Run) -> list[RowPair]:
    """For rows of a batch: the row alone, with the batch's choices, and with the launcher's own choices.

    Empty for a contract without a batch symbol, and for a batch of one. Raises PlanError.
    """
    case, contract = run.case, subject.contract
    if contract.batch is None or case[contract.batch] < 2:
        return []
    rows = np.unique(np.linspace(0, case[contract.batch] - 1, MOST_ROWS).astype(int)).tolist()
    pinned = {name: case.evaluate(expression) for name, expression in contract.pinned.items()}
    variants = [True, False] if pinned else [True]
    wanted = [(row, pin, row_symbols(case, row, pinned if pin else {})) for row in rows for pin in variants]
    plans = subject.plans([symbols for _, _, symbols in wanted])
    pairs = []
    for (row, pin, symbols), plan in zip(wanted, plans, strict=True):
        name = f"{case.fixture}.{case.profile}.row{row}{'' if pin else '-free'}"
        alone = Run(name, alone_case(case, row, symbols, plan), fills=run.fills)
        pairs.append(RowPair(run, row, alone, pin))
    return pairs


def row_symbols(case: Case, row: int, pinned: Mapping[str, Any]) -> dict[str, Any]:
    """The case's symbols for one row: a batch of one, and per-row lists reduced to that row's entry."""
    contract = case.contract
    assert contract.batch is not None
    rows = case[contract.batch]
    kinds = {symbol.name: symbol.kind for symbol in contract.declared_symbols}
    symbols = dict(case.symbols)
    for name, value in case.symbols.items():
        if kinds[name] == "ints" and len(value) == rows:
            symbols[name] = (value[row],)
    return {**symbols, contract.batch: 1, **pinned}


def alone_case(case: Case, row: int, symbols: Mapping[str, Any], plan: Mapping[str, int]) -> Case:
    """The case of one row: buffers whose first extent is the batch symbol are sliced to that row."""
    cut = {b.name for b in case.contract.buffers if b.shape[0] == case.contract.batch}
    arrays = {n: array[row : row + 1] if n in cut else array for n, array in case.arrays.items()}
    return replace(case, symbols=symbols, plan=plan, arrays=arrays)


def _judge(
    subject: Subject,
    fixture: str,
    usual: Sequence[Run],
    pairs: Sequence[RowPair],
    called: Run | None,
    ran: Mapping[str, Ran],
    seeded: Mapping[int, Mapping[str, Ran]],
    refused: str,
) -> Outcome:
    name = subject.contract.name
    involved = [ran[run.id] for run in usual] + [ran[pair.alone.id] for pair in pairs]
    involved += [other[run.id] for other in seeded.values() for run in usual]
    involved += [ran[called.id]] if called is not None else []
    if (unfinished := not_done("determinism", subject, fixture, involved)) is not None:
        return unfinished
    repeat = subject.repeat_command("determinism", fixture)
    findings: list[Finding] = []
    if called is not None:
        findings += _memory_findings(subject, ran[called.id], repeat)
    try:
        for run in usual:
            findings += _apart_findings(subject, ran[run.id], FaultKind.NOT_REPEATABLE, _UNDER_LOAD, repeat)
        if called is not None:
            kind = FaultKind.CALLS
            findings += _apart_findings(subject, ran[called.id], kind, _EACH_CALL, repeat)
        for run in usual:
            others = {seed: other[run.id] for seed, other in seeded.items()}
            findings += schedule_findings(subject, ran[run.id], others, repeat)
        for pair in pairs:
            findings += _row_findings(subject, pair, ran, repeat)
    except OracleError as error:
        return Outcome.inconclusive("determinism", name, fixture, str(error))
    if refused and not findings:
        return Outcome.inconclusive("determinism", name, fixture, f"a row alone has no plan: {refused}")
    again = {"schedules": 1 + len(seeded)} if seeded else {"repeats": REPEATS * len(usual)}
    measures = {**again, "rows alone": len(pairs)}
    if called is not None:
        measures["calls"] = called.repeats
    return Outcome.judge("determinism", name, fixture, findings, strict=subject.strict, measures=measures)


def _apart_findings(subject: Subject, ran: Ran, kind: FaultKind, within: str, repeat: str) -> list[Finding]:
    """A finding if a call of a run of several differs from the first by more than the contract allows."""
    apart = first_apart(subject, ran)
    if apart is None:
        return []
    return [
        Finding(
            "determinism",
            subject.contract.name,
            ran.run.case.id,
            kind,
            f"call {apart.repeat + 1} of {ran.run.repeats} differs from the first: {apart.seen}",
            promise_of(subject, within),
            where=apart.where,
            repeat=repeat,
            details=(("mode", ran.run.mode),),
        )
    ]


def _memory_findings(subject: Subject, ran: Ran, repeat: str) -> list[Finding]:
    """A finding if calls after the first kept device memory, on a device whose memory no one else uses."""
    output = ran.output
    assert output is not None
    if not output.held or not subject.can(Capability.OWNS_MEMORY):
        return []
    return [
        Finding(
            "determinism",
            subject.contract.name,
            ran.run.case.id,
            FaultKind.MEMORY_KEPT,
            f"{output.held} bytes more are allocated after {ran.run.repeats} calls than after the first",
            _MEMORY_PROMISE,
            where=f"run {ran.run.id}",
            repeat=repeat,
            details=(("mode", ran.run.mode),),
        )
    ]


def _row_findings(subject: Subject, pair: RowPair, ran: Mapping[str, Ran], repeat: str) -> list[Finding]:
    """Pinned: equal to the batch's row, up to the contract's drift. Not pinned: within the row's bound."""
    alone, batch = ran[pair.alone.id].output, ran[pair.batch.id].output
    assert alone is not None and batch is not None
    case = pair.alone.case
    if not pair.pinned:
        judged = judge_output("determinism", pair.alone, alone, expect(case), repeat)
        return [replace(f, details=(*f.details, ("alone", pair.alone.id))) for f in judged]
    findings = []
    for buffer in case.contract.buffers:
        if buffer.role not in ("out", "inout") or buffer.shape[0] != case.contract.batch:
            continue
        together = batch.outputs[buffer.name]
        with_row = together.copy()
        with_row[pair.row] = alone.outputs[buffer.name][0]
        differs = beyond_drift(subject, pair.batch.case, buffer.name, together, with_row)[pair.row]
        if differs.any():
            at = tuple(int(i) for i in np.argwhere(differs)[0])
            first = f"; first at {list(at)}" if at else ""
            findings.append(
                Finding(
                    "determinism",
                    subject.contract.name,
                    pair.batch.case.id,
                    FaultKind.BATCH,
                    f"row {pair.row} of {buffer.name}: {int(differs.sum())} of {differs.size} elements have "
                    f"different bits alone{first}",
                    promise_of(subject, _ROW_ALONE),
                    where=coordinates(pair.batch.case, buffer.name, (pair.row, *at)),
                    repeat=repeat,
                    details=(("row", str(pair.row)), ("alone", pair.alone.id), ("batch", pair.batch.id)),
                )
            )
    return findings

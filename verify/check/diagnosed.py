"""Adds to findings of wrong outputs a diagnosis of what the outputs match, as a detail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from verify.check.judge import element_mask, like_before, observed_quantities
from verify.check.subject import Ran, Subject
from verify.contract.formats import format_of
from verify.contract.model import Case
from verify.diagnosis.altered import altered
from verify.diagnosis.diagnose import Diagnosis, diagnose
from verify.diagnosis.evidence import Evidence
from verify.finding.finding import Finding
from verify.wire.run import Fills, Run

DIAGNOSIS = "diagnosis"
"""The name of the detail."""

DIAGNOSED_FIXTURES = 3
"""Failing fixtures of a kernel that are diagnosed: one fault shows in many, and each costs two seconds."""


def diagnosis_of(subject: Subject, ran: Sequence[Ran], called: Sequence[Run]) -> Diagnosis | None:
    """What the runs of one fixture match.

    ran: done, the one that shows the fault best first. called: all runs of their job, in order.
    """
    return diagnose(evidence_of(subject, ran, called))


def evidence_of(subject: Subject, ran: Sequence[Ran], called: Sequence[Run]) -> list[Evidence]:
    """The outputs of runs. One whose NaN came from what is dead is run again with numbers there: a NaN says
    that something was read, a number says what."""
    order = {run.id: run.case for run in called}
    before = dict(zip(list(order)[1:], order.values(), strict=False))
    own = [_evidence(subject, one, one.run, before.get(one.run.id)) for one in ran]
    leaking = [one.run for one, found in zip(ran, own, strict=True) if _leaks_nan(found)]
    runs = [_with_numbers(run) for run in leaking]
    again = subject.execute(runs) if runs else {}
    numbers = [
        _evidence(subject, again[run.id], first, None)
        for run, first in zip(runs, leaking, strict=True)
        if again[run.id].done
    ]
    return [*numbers, *own]


_ZERO = Fills("zero", "zero", "zero", "zero")


def _leaks_nan(evidence: Evidence) -> bool:
    """Whether there is a NaN where the reference has none."""
    return any(
        (np.isnan(evidence.seen[name]) & ~np.isnan(quantity.value)).any()
        for name, quantity in evidence.expected.items()
    )


def _with_numbers(run: Run) -> Run:
    """The run with what its profile put into dead elements on the device as well, and zeros elsewhere."""
    case = run.case
    buffers = tuple(
        replace(b, live=None) if format_of(case.dtype(b)).is_float else b for b in case.contract.buffers
    )
    whole = replace(case, contract=replace(case.contract, buffers=buffers))
    return Run(f"{case.fixture}.{case.profile}.numbers", whole, fills=_ZERO)


def _evidence(subject: Subject, one: Ran, run: Run, before: Case | None) -> Evidence:
    """run: whose reference counts. Elements that hold what they held before the call say nothing."""
    output, case = one.output, run.case
    assert output is not None
    expected = subject.expectation(case)
    masks: dict[str, np.ndarray] = {}
    untouched = like_before(case, output, expected)
    for name, quantity in expected.items():
        if quantity.dtype is not None:
            promised = case.mask(case.contract.buffer(name), "promised")
            masks[name] = element_mask(promised, quantity.value.shape)
            masks[name] &= ~untouched.get(name, np.zeros_like(masks[name]))
    held = altered(one.run.case, fill=one.run.fills.dead)
    seen = observed_quantities(case, output)
    return Evidence(held, expected, seen, masks, before.reference if before is not None else None)


def with_diagnosis(findings: Sequence[Finding], diagnosis: Diagnosis | None) -> list[Finding]:
    """The findings, each with the diagnosis behind its other details."""
    if diagnosis is None:
        return list(findings)
    return [replace(f, details=(*f.details, (DIAGNOSIS, str(diagnosis)))) for f in findings]

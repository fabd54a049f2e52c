"""Drift: the differences between two results of the same inputs that a contract does not allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify.check.judge import coordinates
from verify.check.subject import Ran, Subject
from verify.contract.formats import decode
from verify.contract.model import Case


@dataclass(frozen=True)
class Apart:
    """The first call of a run whose outputs differ by more than allowed. seen: the difference, in words."""

    repeat: int
    seen: str
    where: str


def beyond_drift(subject: Subject, case: Case, name: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Promised elements of an output that differ by more than the contract's drift allows.

    one, other: storage arrays of the buffer's view. Without drift, any difference counts; with drift, NaN
    equals NaN. Raises OracleError if the bounds are needed and the oracle contradicts itself.
    """
    differs = (one != other) & case.mask(case.contract.buffer(name), "promised")
    drift = case.contract.drift
    if drift > 0 and differs.any():
        dtype = case.dtype(case.contract.buffer(name))
        x, y = (decode(dtype, array).astype(np.float64) for array in (one, other))
        with np.errstate(invalid="ignore"):
            near = np.abs(x - y) <= drift * subject.expectation(case)[name].bound
        near |= (np.isnan(x) & np.isnan(y)) | (x == y)
        # A packed format has several elements per storage item.
        differs &= ~near.reshape(*one.shape, -1).all(-1)
    return differs


def promise_of(subject: Subject, within: str) -> str:
    """The requirement of a determinism check: the same bits, or the contract's drift.

    within: the circumstances that may vary ("whatever else runs concurrently").
    """
    drift = subject.contract.drift
    if drift > 0:
        return f"the same inputs give outputs that differ by at most {drift:g} of their bound {within}"
    return f"the same inputs give the same bits {within}"


def first_apart(subject: Subject, ran: Ran) -> Apart | None:
    """The first call of a run of several whose outputs differ from the first's by more than allowed."""
    output, run = ran.output, ran.run
    assert output is not None
    if not output.difference_count:
        return None
    if subject.contract.drift <= 0:
        first = output.differences[0]
        seen = f"{first.count} bytes of {first.buffer} at byte {first.offset}"
        return Apart(first.repeat, seen, f"{first.buffer} + {first.offset}")
    for call in output.differing:
        case = (run.captured or run.case) if call.second else run.case
        for name, first_reading in call.first.items():
            apart = beyond_drift(subject, case, name, first_reading, call.other[name])
            if apart.any():
                at = tuple(int(i) for i in np.argwhere(apart)[0])
                seen = f"{int(apart.sum())} of {apart.size} elements of {name}, the first at {list(at)}"
                return Apart(call.repeat, seen, coordinates(case, name, at))
    return None

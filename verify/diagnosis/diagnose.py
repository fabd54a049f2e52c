"""Tests hypotheses against the runs of a fixture and reports those that match, if any."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from verify.contract.hypothesis import Hypothesis, Prediction
from verify.diagnosis.evidence import Evidence
from verify.diagnosis.general import general_hypotheses

SECONDS = 3.0
"""Processor time that one diagnosis may take, give or take one prediction."""

_FEWEST_BITS = 8.0
"""Evidence without which nothing is said at all."""

ENOUGH_BITS = 24.0
"""Evidence that a fault is named for without reserve, beyond what the number of predictions tried costs."""

_PATTERN_BITS = 16.0
"""What it is worth at most that NaN stand where they were predicted: too little to be certain."""

_NAMED = 3
"""Faults that a sentence lists. Of alternatives more would say nothing that helps."""

_REFUSED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError)
"""What a contract's functions raise for inputs that they were not written for."""

_ALIKE = 1e-12
"""Relative difference below which two faults give the same numbers."""


@dataclass(frozen=True)
class Diagnosis:
    """What the outputs match.

    certain: one fault, far from the reference, and nothing was left untried. names: of the hypotheses; says:
    the faults, each as it follows "matches the reference with". Several that are certain give the same
    numbers in every run, so that they are one fault in other words.
    """

    certain: bool
    names: tuple[str, ...]
    says: tuple[str, ...]

    def __str__(self) -> str:
        first, *others = self.says
        if not self.certain:
            return f"consistent with the reference with {', or with '.join(self.says)}"
        same = f"; the same numbers here: {', or '.join(others)}" if others else ""
        return f"matches the reference with {first}{same}"


@dataclass
class _Survivor:
    """A fault that all runs agree with. given: its values by run."""

    name: str
    says: str
    bits: float
    given: Mapping[int, Mapping[str, np.ndarray]]

    def same_numbers(self, other: _Survivor) -> bool:
        """Whether no run can distinguish the two."""
        return all(_alike(given, other.given[run]) for run, given in self.given.items())


def diagnose(runs: Sequence[Evidence], seconds: float = SECONDS) -> Diagnosis | None:
    """The faults that all runs of a fixture agree with, right elements and right runs as well; None for none.

    runs: of one fixture; of those that fail, the one that shows the fault best comes first. Functions of a
    contract that raise are passed over: a diagnosis is no place to report them.
    """
    failing = [run for run in runs if run.fails]
    if not failing:
        return None
    ends = time.thread_time() + seconds
    found: list[_Survivor] = []
    tried, whole = 0, True
    for hypothesis, prediction, first in _predictions(failing):
        if time.thread_time() > ends:
            whole = False
            break
        tried += 1
        if any(s.says == prediction.says for s in found):
            continue
        rest = [run for run in runs if run is not first]
        if (survivor := _tested(hypothesis, prediction, first, rest)) is not None:
            found.append(survivor)
    groups: list[list[_Survivor]] = []
    for survivor in found:
        same = next((group for group in groups if survivor.same_numbers(group[0])), None)
        if same is None:
            groups.append([survivor])
        else:
            same.append(survivor)
    if not 1 <= len(groups) <= _NAMED:
        return None
    named = groups[0][:_NAMED] if len(groups) == 1 else [group[0] for group in groups]
    certain = whole and len(groups) == 1 and bool(named[0].bits >= ENOUGH_BITS + np.log2(tried))
    return Diagnosis(certain, tuple(s.name for s in named), tuple(s.says for s in named))


def _tested(
    hypothesis: Hypothesis, prediction: Prediction, first: Evidence, rest: Sequence[Evidence]
) -> _Survivor | None:
    """The fault, if all runs agree with it. A run that fails must do so for this fault."""
    bits, patterns = _bits(first, prediction)
    if bits == -np.inf:
        return None
    given = {id(first): {**first.case.reference, **prediction.values}}
    for run in rest:
        there = _elsewhere(hypothesis, prediction, run)
        if there is None and run.fails:
            return None
        own = _bits(run, there) if there is not None else (0.0, 0.0)
        bits, patterns = bits + own[0], patterns + own[1]
        if bits == -np.inf:
            return None
        given[id(run)] = {**run.case.reference, **(there.values if there is not None else {})}
    bits += min(patterns, _PATTERN_BITS)
    return _Survivor(hypothesis.name, prediction.says, bits, given) if bits >= _FEWEST_BITS else None


def _elsewhere(hypothesis: Hypothesis, prediction: Prediction, run: Evidence) -> Prediction | None:
    """The same fault in another run; None where it would change nothing."""
    if prediction.elsewhere is None:
        return next((p for p in _predicted(hypothesis, run) if p.says == prediction.says), None)
    try:
        return Prediction(prediction.says, prediction.elsewhere(run.case))
    except _REFUSED:
        return None


def _alike(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> bool:
    return all(_close(np.asarray(a[n]), np.asarray(b[n])) for n in a)


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    """Of float64 sums in two orders: relative to the largest of them."""
    largest = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return a.shape == b.shape and np.allclose(a, b, rtol=_ALIKE, atol=_ALIKE * largest, equal_nan=True)


def _predictions(failing: Sequence[Evidence]) -> Iterator[tuple[Hypothesis, Prediction, Evidence]]:
    """Those of the contract's own hypotheses first, each with the run that it was made from.

    What is solved for is solved for in the run with the most wrong elements as well: the first one may have
    too few to tell.
    """
    first, richest = failing[0], max(failing, key=lambda run: run.wrong_elements)
    own = first.case.contract.hypotheses
    for hypothesis in (*own, _STALE, *general_hypotheses()):
        for prediction in _predicted(hypothesis, first):
            yield hypothesis, prediction, first
        if richest is not first and hypothesis in own:
            for prediction in _predicted(hypothesis, richest):
                if prediction.elsewhere is not None:
                    yield hypothesis, prediction, richest


_STALE = Hypothesis("stale", lambda case, seen: [])
"""The one fault that is not in the case but in what was called before it."""


def _predicted(hypothesis: Hypothesis, run: Evidence) -> Iterator[Prediction]:
    if hypothesis is _STALE and run.before is not None:
        yield Prediction("the answer to the call before", run.before)
    try:
        with np.errstate(all="ignore"):
            yield from hypothesis.predict(run.case, run.seen)
    except _REFUSED:
        return


def _bits(run: Evidence, prediction: Prediction) -> tuple[float, float]:
    try:
        with np.errstate(all="ignore"):
            return run.bits(prediction)
    except _REFUSED:
        return -np.inf, 0.0

"""The verdicts of the field's usual comparisons on the same outputs.

Each is one number for a whole tensor, or one tolerance for all of its elements. They get more than they
usually
have: our fixtures, our data, and our NaN fills in all dead bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from verify.check.judge import observed_quantities
from verify.check.subject import Ran, Subject

Rule = Callable[[np.ndarray, np.ndarray], bool]
"""Whether values pass for a reference; both float64, flat and not empty."""


def nmse(seen: np.ndarray, reference: np.ndarray) -> bool:
    """The normalised mean squared error is at most 5e-4."""
    return bool(np.sum((seen - reference) ** 2) <= 5e-4 * np.sum(reference**2))


def allclose(tolerance: float) -> Rule:
    """Each element is within ``tolerance * (1 + |reference|)``."""
    return lambda seen, reference: bool(
        np.all(np.abs(seen - reference) <= tolerance * (1 + np.abs(reference)))
    )


def twice_bf16(seen: np.ndarray, reference: np.ndarray) -> bool:
    """The largest error is at most twice that of one rounding of the largest element to bf16.

    In the field it is twice that of an implementation in bf16, which is a rounding at the least.
    """
    return bool(np.max(np.abs(seen - reference)) <= 2 * 2.0**-8 * np.max(np.abs(reference)))


def cosine(seen: np.ndarray, reference: np.ndarray) -> bool:
    """The cosine of the angle between them is at least 0.999."""
    lengths = np.linalg.norm(seen) * np.linalg.norm(reference)
    return bool(seen @ reference >= 0.999 * lengths)


RULES: Mapping[str, Rule] = {
    "NMSE 5e-4": nmse,
    "allclose 1e-2": allclose(1e-2),
    "allclose 2e-2": allclose(2e-2),
    "twice bf16": twice_bf16,
    "cosine 0.999": cosine,
}


def caught_by_rules(subject: Subject, ran: Iterable[Ran]) -> dict[str, bool]:
    """By rule, whether it fails on an output of any of the runs. Raises OracleError.

    A failed run fails under every rule.
    """
    caught = dict.fromkeys(RULES, False)
    outputs = {b.name for b in subject.contract.buffers if b.role in ("out", "inout")}
    for one in ran:
        if not one.done or one.output is None:
            return dict.fromkeys(RULES, True)
        observed = observed_quantities(one.run.case, one.output)
        for name, quantity in subject.expectation(one.run.case).items():
            if name in outputs:
                _judge(caught, one, name, observed[name], quantity.value)
    return caught


def _judge(caught: dict[str, bool], one: Ran, name: str, seen: np.ndarray, reference: np.ndarray) -> None:
    mask = np.broadcast_to(one.run.case.live(name), one.run.case.live(name).shape)
    if mask.shape == seen.shape:
        seen, reference = seen[mask], reference[mask]
    seen, reference = seen.ravel(), reference.ravel()
    # Where the reference itself is NaN or infinite none of the rules is defined; people leave those out.
    defined = np.isfinite(reference)
    seen, reference = seen[defined], reference[defined]
    if not seen.size:
        return
    with np.errstate(all="ignore"):
        for rule, passes in RULES.items():
            caught[rule] |= not passes(seen, reference)

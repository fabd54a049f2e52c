"""Decodes with both paths and compares every token.

The oracle decodes greedily on its own. The kernel path is given the oracle's tokens, so that one difference
does not mask the next, and must choose the same token at every step. A step is decided if the oracle's token
leads every other by more than the tolerance: the largest change of such a lead by rounding to bf16 between
the calls, measured on the oracle itself. Below it two correct paths may differ, and the step is reported as a
tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verify.finding.finding import Verdict
from verify.tokens.decoder import Decoder, State
from verify.tokens.device_path import Deviation
from verify.tokens.model import Model
from verify.tokens.operations import Executor

FIRST_TOKEN = 1
DECIDED = 0.95
"""Share of the steps that must be decided for the comparison to prove enough."""


@dataclass(frozen=True)
class Decoded:
    """The oracle's decoding. tokens: the input of each step, and the last output. logits ``[steps, V]``. lead
    ``[steps]``: over the second best token. tolerance: see the module."""

    tokens: tuple[int, ...]
    logits: np.ndarray
    lead: np.ndarray
    tolerance: float

    @property
    def decided(self) -> np.ndarray:
        """Mask of the steps at which every correct path chooses the oracle's token."""
        return self.lead > self.tolerance


@dataclass(frozen=True)
class TokenReport:
    """The result. different: decided steps at which the kernel path chose another token. ties: undecided
    steps. deviations: results outside their bounds. reason: why it is inconclusive."""

    verdict: Verdict
    steps: int
    ties: tuple[int, ...]
    different: tuple[int, ...]
    deviations: tuple[Deviation, ...]
    oracle_tokens: tuple[int, ...]
    kernel_tokens: tuple[int, ...]
    tolerance: float
    smallest_lead: float
    reason: str = ""

    @property
    def lines(self) -> list[str]:
        """The findings, one per line."""
        found = [
            f"step {step}: the kernels choose token {self.kernel_tokens[step]}, "
            f"the oracle {self.oracle_tokens[step]}"
            for step in self.different
        ]
        if self.different:
            before = [d for d in self.deviations if d.position <= self.different[0]]
            cause = str(before[0]) if before else "none; every result is within its bound"
            found.append(f"first result outside its bound up to step {self.different[0]}: {cause}")
        elif self.deviations:
            found += [str(deviation) for deviation in self.deviations[:5]]
        return found


def decode_greedily(model: Model, oracle: Executor, unrounded: Executor) -> Decoded:
    """Decode with two oracles: one rounds as the kernels do and chooses the tokens, one does not round."""
    decoder, state = Decoder(model, oracle), State.empty(model)
    tokens, rows = [FIRST_TOKEN], []
    for step in range(model.shape.steps):
        rows.append(decoder.logits(tokens[-1:], step, state)[0])
        tokens.append(int(rows[-1].argmax()))
    logits = np.array(rows)
    free = Decoder(model, unrounded, "f64").logits(tokens[:-1], 0, State.empty(model))
    leads, free_leads = (_leads(values, tokens[1:]) for values in (logits, free))
    tolerance = float(np.abs(leads - free_leads).max())
    others = np.where(_one_hot(tokens[1:], logits.shape[1]), np.inf, leads)
    return Decoded(tuple(tokens), logits, others.min(1), tolerance)


def compare(
    model: Model, decoded: Decoded, kernels: Executor, deviations: Sequence[Deviation]
) -> TokenReport:
    """Run the kernel path on the oracle's tokens and judge its choices.

    deviations: the list that the kernel path fills while it runs.
    """
    logits = Decoder(model, kernels).logits(decoded.tokens[:-1], 0, State.empty(model))
    chosen = np.where(np.isfinite(logits).all(1), logits.argmax(1), -1)
    wanted = np.array(decoded.tokens[1:])
    decided = decoded.decided
    different = np.flatnonzero(decided & (chosen != wanted))
    left = sorted(deviations, key=lambda d: d.position)
    share = decided.mean()
    if len(different) or left:
        verdict, reason = Verdict.FINDINGS, ""
    elif share < DECIDED:
        verdict = Verdict.INCONCLUSIVE
        reason = (
            f"only {share:.0%} of the steps are decided by more than the tolerance; {DECIDED:.0%} must be"
        )
    else:
        verdict, reason = Verdict.CLEAN, ""
    return TokenReport(
        verdict,
        len(wanted),
        tuple(int(i) for i in np.flatnonzero(~decided)),
        tuple(int(i) for i in different),
        tuple(left),
        tuple(int(t) for t in wanted),
        tuple(int(t) for t in chosen),
        decoded.tolerance,
        float(decoded.lead.min()),
        reason,
    )


def _leads(logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
    """The lead of the step's token over each token, ``[steps, V]``."""
    return logits[np.arange(len(logits)), list(tokens)][:, None] - logits


def _one_hot(tokens: Sequence[int], count: int) -> np.ndarray:
    return np.arange(count) == np.array(tokens)[:, None]

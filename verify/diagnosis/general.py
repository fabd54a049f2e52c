"""Faults that any kernel may have, tried through the contract's own reference."""

from __future__ import annotations

from functools import cache

from verify.contract.hypothesis import Hypothesis
from verify.diagnosis import input_faults, output_faults, symbol_faults


@cache
def general_hypotheses() -> tuple[Hypothesis, ...]:
    """All of them, the quick ones first."""
    return (
        Hypothesis("output", output_faults.outputs),
        Hypothesis("symbol", symbol_faults.symbols),
        Hypothesis("layout", input_faults.layouts),
        Hypothesis("values", input_faults.values),
        Hypothesis("index", input_faults.indices),
    )

"""Token parity judges right: the oracle agrees with itself, and no fault of a path passes.

Faults are planted into a path that computes with the oracle, so that no device is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.contracts.attention import flash_plan
from tests.contracts.matvec import matvec_plan
from verify.contract.model import Contract
from verify.finding.finding import Verdict
from verify.oracle.expectation import expect
from verify.tokens.decoder import Decoder, State
from verify.tokens.device_path import Deviation, deviations
from verify.tokens.model import Model, Shape, build_model
from verify.tokens.operations import RESULT, CaseBuilder, Executor, Operation, Oracle
from verify.tokens.parity import DECIDED, Decoded, compare, decode_greedily


def plans(contract: Contract, symbols: Mapping[str, Any]) -> Mapping[str, int]:
    """The launchers' plans, in Python."""
    if contract.name == "flash_decode":
        return flash_plan.plan(symbols)
    return matvec_plan.plan(contract.name, symbols)


@cache
def builder() -> CaseBuilder:
    return CaseBuilder(plans)


@cache
def decoding() -> tuple[Model, Decoded]:
    model = build_model(Shape())
    return model, decode_greedily(model, Oracle(builder()), Oracle(CaseBuilder(plans, "f64")))


class Judged:
    """A path that computes like the oracle, changes what ``fault`` changes, and judges its results."""

    def __init__(self, fault: Executor | None = None) -> None:
        self.fault = fault or Oracle(builder())
        self.deviations: list[Deviation] = []

    def __call__(self, operation: Operation) -> np.ndarray:
        rows = self.fault(operation)
        if operation.kernel == "flash_decode":
            self.deviations += deviations(operation, builder(), rows)
        return rows


def test_the_oracle_is_decided_and_wraps_every_ring() -> None:
    """Fault: a model whose tokens prove little: too many ties, one token only, or rings that never wrap."""
    model, decoded = decoding()
    assert decoded.decided.mean() >= DECIDED
    assert len(set(decoded.tokens)) >= 8
    local = [a for a in model.shape.layers if a.window]
    assert len(local) == 5 * (len(model.shape.layers) - len(local))
    assert all(model.shape.steps > 2 * a.capacity > 2 * a.window for a in local)


def test_decoding_all_positions_at_once_equals_one_by_one() -> None:
    """Fault: a kernel path that does not make the calls of token by token decoding."""
    model, decoded = decoding()
    logits = Decoder(model, Oracle(builder())).logits(decoded.tokens[:-1], 0, State.empty(model))
    assert np.array_equal(logits, decoded.logits)


@pytest.mark.parametrize("kernel", sorted(RESULT))
def test_bounds_of_all_positions_are_those_of_each_alone(kernel: str) -> None:
    """Fault: a result that is judged by another position's inputs because positions are judged together."""
    model, decoded = decoding()
    seen: list[Operation] = []

    def recorded(operation: Operation) -> np.ndarray:
        seen.append(operation)
        return Oracle(builder())(operation)

    Decoder(model, recorded).logits(decoded.tokens[:-1], 0, State.empty(model))
    operation = next(o for o in seen if o.kernel == kernel)
    together = expect(builder().joint(operation))[RESULT[kernel]]
    for row, case in enumerate(builder().cases(operation)):
        alone = expect(case)[RESULT[kernel]]
        assert np.array_equal(alone.value[0], together.value[row])
        assert np.array_equal(alone.bound[0], together.bound[row])


def test_the_oracle_against_itself_is_clean() -> None:
    """Fault: a comparison that reports right paths."""
    model, decoded = decoding()
    path = Judged()
    report = compare(model, decoded, path, path.deviations)
    assert report.verdict is Verdict.CLEAN
    assert report.kernel_tokens == report.oracle_tokens


@pytest.mark.parametrize("layer", [0, 2, 4])
def test_a_wrong_slot_after_the_wrap_in_one_layer_is_named(layer: int) -> None:
    """Fault: the fault of the article's kind: one layer takes another slot once its ring has wrapped."""

    def wrong_slot(operation: Operation) -> np.ndarray:
        if operation.name != "attention" or operation.layer != layer:
            return Oracle(builder())(operation)
        arrays = []
        for position, given in zip(operation.positions, operation.arrays, strict=True):
            capacity = given["k"].shape[2]
            slots = np.arange(capacity)
            if position >= capacity:
                slots[position % capacity] = (position - 1) % capacity
            arrays.append({**given, "k": given["k"][:, :, slots], "v": given["v"][:, :, slots]})
        return Oracle(builder())(replace(operation, arrays=arrays))

    model, decoded = decoding()
    path = Judged(wrong_slot)
    report = compare(model, decoded, path, path.deviations)
    capacity = model.shape.layers[layer].capacity
    assert report.verdict is Verdict.FINDINGS
    assert report.different
    assert report.deviations[0].place == f"layer {layer}, attention"
    assert report.deviations[0].position == capacity
    assert f"step {capacity}, layer {layer}, attention" in report.lines[-1]


def test_zero_unwritten_and_stale_results_never_pass() -> None:
    """Fault: a rung that passes a path which writes zeros, leaves NaN, or repeats an older result."""
    model, decoded = decoding()

    def zeros(operation: Operation) -> np.ndarray:
        return np.zeros_like(Oracle(builder())(operation))

    def nothing(operation: Operation) -> np.ndarray:
        return np.full_like(Oracle(builder())(operation), np.nan)

    def stale(operation: Operation) -> np.ndarray:
        return np.roll(Oracle(builder())(operation), 1, axis=0)

    for path in (zeros, nothing, stale):
        assert compare(model, decoded, path, []).verdict is Verdict.FINDINGS


def test_too_many_ties_are_inconclusive() -> None:
    """Fault: a pass on steps whose token is not decided."""
    model, decoded = decoding()
    doubtful = replace(decoded, tolerance=float(np.median(decoded.lead)))
    report = compare(model, doubtful, Oracle(builder()), [])
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.reason


def test_results_are_named_for_every_kernel() -> None:
    """Fault: a kernel of the decoder without a result to compare."""
    assert set(RESULT) == set(builder().contracts)

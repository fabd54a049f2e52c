"""The judge of one run: which elements are wrong, and where they are."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.check.twice_kernel import prior_of, right, subject
from verify.check.judge import coordinates, judge_output, like_before, observed_quantities, outside_bound
from verify.contract.compared import Intermediate
from verify.contract.model import Buffer
from verify.oracle.expectation import Quantity, expect
from verify.wire.output import RunOutput
from verify.wire.run import Run

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("seen", "value", "bound", "wrong"),
    [
        (1.5, 1.0, 0.5, False),
        (1.6, 1.0, 0.5, True),
        (NAN, 1.0, 0.5, True),
        (1.0, NAN, 0.5, True),
        (NAN, NAN, 0.5, False),
        (INF, INF, 0.0, False),
        (INF, -INF, 0.0, True),
        (INF, 1.0, 0.5, True),
        (1.0, INF, 0.5, True),
        (1.0, 1.0, NAN, True),
        (9.0, 1.0, INF, False),
        (NAN, 1.0, INF, True),
    ],
)
def test_an_element_is_wrong_outside_its_bound(seen: float, value: float, bound: float, wrong: bool) -> None:
    """Fault: NaN or an infinity passes a comparison of magnitudes, or a right one is flagged."""
    quantity = Quantity("y", np.array([value]), np.array([bound]))
    assert outside_bound(quantity, np.array([seen])).tolist() == [wrong]


def test_coordinates_use_the_contracts_terms() -> None:
    """Fault: a finding whose place only the suite can read."""
    case = subject().cases["small"]["normal"]
    assert coordinates(case, "y", (2, 4)) == "rows 2, columns 4"
    assert coordinates(case, "lse", (2, 4)) == "index [2, 4]"
    axes = {"y": ("batch", "dim")}
    named = dataclasses.replace(case.contract, axes=axes, locate=lambda _, name, at: f"split {at[0]}")
    case = dataclasses.replace(case, contract=named)
    assert coordinates(case, "y", (2, 4)) == "batch 2, dim 4; split 2"


def output(run: Run, y: np.ndarray, workspaces: dict[str, bytes] | None = None) -> RunOutput:
    """What a run left in the output ``y``, over its fill."""
    prior = {"y": prior_of(run)}
    return RunOutput(run.id, "once", "cudaSuccess", 1, 132, {"y": y}, prior, workspaces or {}, {})


def test_an_element_equal_to_its_fill_is_unwritten_only_if_wrong() -> None:
    """Fault: a right value that equals the fill counts as unwritten, or an unwritten one as right."""
    run = Run("r", subject().cases["small"]["normal"])
    expected = expect(run.case)
    assert not like_before(run.case, output(run, right(run)), expected)["y"].any()
    untouched = right(run).copy()
    untouched[1, 3] = prior_of(run)[1, 3]
    assert np.argwhere(like_before(run.case, output(run, untouched), expected)["y"]).tolist() == [[1, 3]]
    found = judge_output("compare", run, output(run, right(run)), expected, "again")
    assert found == []


def test_partials_are_read_at_their_offset_in_the_workspace() -> None:
    """Fault: another part of the workspace is compared in the place of the partials."""
    case = subject().cases["small"]["normal"]
    contract = dataclasses.replace(
        case.contract,
        buffers=(*case.contract.buffers, Buffer("w", "u8", (24,), "workspace")),
        intermediates=(Intermediate("sums", "w", "f32", (2,), "rows * 4"),),
        observe=lambda case, raw: {"twice": 2 * raw["sums"]},
    )
    partial = dataclasses.replace(case, contract=contract)
    held = np.arange(6, dtype=np.float32).tobytes()
    run = Run("r", partial)
    seen = observed_quantities(partial, output(run, right(run), {"w": held}))
    assert seen["twice"].tolist() == [6.0, 8.0]

"""The drawing of a fixture's live band."""

from __future__ import annotations

import numpy as np

from verify.contract.entries import Launcher
from verify.contract.model import Buffer, Case, Contract, Plan
from verify.report.band import draw


def case(live: list[int], edges: list[int] | None = None, slots: int = 8) -> Case:
    """``x[rows, slots]``, of which row r has its slots from 2 on live, ``live[r]`` of them."""

    def mask(case: Case) -> np.ndarray:
        index = np.arange(slots)
        return np.array([(index >= 2) & (index < 2 + count) for count in live])

    plan = None
    if edges is not None:
        plan = Plan(
            "plan",
            "Result",
            ("tile",),
            boundaries=lambda case, row: edges,
            slot=lambda case, position: position % slots,
        )
    contract = Contract(
        name="k",
        source="k.cu",
        symbols=("rows",),
        buffers=(Buffer("x", "f32", ("rows", slots), live=mask), Buffer("y", "f32", ("rows",), "out")),
        entry=Launcher("launch", ("x", "y")),
        reference=lambda case: {},
        error_model=lambda case: {},
        plan=plan,
        batch="rows",
    )
    return Case(contract, "one", "normal", {"rows": len(live)}, {"tile": 2} if edges is not None else {})


def test_live_and_dead_slots_are_drawn_row_by_row() -> None:
    """Fault: a bar is shifted by a slot, or shows the slots of another row."""
    assert list(draw(case([3, 0]))) == [
        "x: 8 slots along axis 1, one character = slot",
        "  row 0   \u00b7\u00b7\u2588\u2588\u2588\u00b7\u00b7\u00b7  3 live",
        "  row 1   \u00b7\u00b7\u00b7\u00b7\u00b7\u00b7\u00b7\u00b7  0 live",
    ]


def test_a_character_for_several_slots_shows_a_partly_live_group() -> None:
    """Fault: a group of which one slot is live looks dead, or wholly live."""
    lines = list(draw(case([3]), width=4))
    assert lines[0] == "x: 8 slots along axis 1, one character = 2 slots"
    assert lines[1] == "  row 0   \u00b7\u2588\u2592\u00b7  3 live"


def test_split_edges_tiles_and_the_wrap_are_marked() -> None:
    """Fault: a mark is at the position instead of its slot, or the wrap is not marked."""
    marks, text = list(draw(case([6], edges=[2, 6, 10])))[2:]
    assert marks == "          > | ' | "
    assert text == "          positions 2..9, 2 of 2 splits non-empty, tile 2, wraps at position 8"

"""An address by its buffer: a wrong element would send a person to the wrong line of the kernel."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.check.twice_kernel import CONTRACT, subject
from verify.check.place import element_at, place_of
from verify.contract.model import Buffer, Case

X, Y = 0x7F0000000000, 0x7F0000100000


def case() -> Case:
    """x: f32 [3, 5] with rows of 8, of which column 4 is dead; y: bf16 [3, 5]."""
    x = Buffer("x", "f32", ("rows", "columns"), strides=(8, 1), live=lambda case: np.arange(5) < 4)
    contract = dataclasses.replace(CONTRACT, buffers=(x, *CONTRACT.buffers[1:]))
    return dataclasses.replace(next(iter(subject().cases["small"].values())), contract=contract)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (X, "x + 0, element [0, 0]"),
        (X + 4 * (8 + 2) + 1, "x + 41, element [1, 2]"),
        (X + 4 * (8 + 4), "x + 48, dead element [1, 4]"),
        (X + 4 * 6, "x + 24, between its rows"),
        (X + 4 * (2 * 8 + 5), "0 bytes past the end of x"),
        (X + 4 * (2 * 8 + 5) + 1, "1 byte past the end of x"),
        (Y + 2 * 14, "y + 28, element [2, 4]"),
        (Y - 8, "8 bytes before y"),
    ],
)
def test_an_address_is_described_by_the_nearest_buffer(address: int, words: str) -> None:
    """Fault: an element of another row is named, or padding or dead bytes are described as live."""
    assert place_of(case(), {"x": X, "y": Y}, f"somewhere ({address:#x})") == f"{words} ({address:#x})"


@pytest.mark.parametrize("address", ["tile + 4 (0x484)", "", "calls + 0"])
def test_other_memory_belongs_to_no_buffer(address: str) -> None:
    """Fault: shared memory, or a record without an address, is described as bytes before a buffer."""
    assert place_of(case(), {"x": X, "y": Y}, address) == ""
    assert place_of(case(), {}, hex(X)) == ""


def test_axes_may_lie_in_any_order() -> None:
    """Fault: a transposed view read as if its last axis were the innermost."""
    assert element_at((2, 3), (1, 2), 5) == (1, 2)
    assert element_at((2, 1, 3), (100, 1, 1), 102) == (1, 0, 2)
    assert element_at((2, 3), (8, 1), 4) is None

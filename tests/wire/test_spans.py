"""From masks to byte spans and back, against the obvious element-by-element way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.wire.spans import LayoutError, allocation_bytes, spans_of


@st.composite
def views(draw: st.DrawFn) -> tuple[np.ndarray, tuple[int, ...], int]:
    """A mask, strides that keep elements apart (permuted and padded), and an item size."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    strides, span = [0] * len(shape), 1
    for axis in draw(st.permutations(range(len(shape)))):
        strides[axis] = span + draw(st.integers(0, 2))
        span = strides[axis] * (shape[axis] - 1) + span
    kept = tuple(1 if draw(st.booleans()) else n for n in shape)
    bits = draw(st.lists(st.booleans(), min_size=int(np.prod(kept)), max_size=int(np.prod(kept))))
    mask = np.broadcast_to(np.array(bits).reshape(kept), shape)
    return mask, tuple(strides), draw(st.sampled_from([1, 2, 4]))


def bytes_of(mask: np.ndarray, strides: tuple[int, ...], itemsize: int) -> set[int]:
    """The selected bytes, one element at a time."""
    starts = [sum(i * s for i, s in zip(at, strides, strict=True)) * itemsize for at in np.argwhere(mask)]
    return {start + b for start in starts for b in range(itemsize)}


@given(views())
def test_runs_are_the_selected_bytes_and_nothing_else(view: tuple[np.ndarray, tuple[int, ...], int]) -> None:
    """Fault: a run that is too long by a padding element, and a mask flattened along a padded axis."""
    mask, strides, itemsize = view
    found = spans_of(mask, strides, itemsize)
    covered = [b for offset, length in found.spans for b in range(offset, offset + length)]
    assert set(covered) == bytes_of(mask, strides, itemsize)
    assert covered == sorted(covered)
    assert all(a + n < b for (a, n), (b, _) in zip(found.spans, found.spans[1:], strict=False)), (
        "not coalesced"
    )


@given(views())
def test_gathered_bytes_lie_in_the_order_of_their_addresses(
    view: tuple[np.ndarray, tuple[int, ...], int],
) -> None:
    """Fault: data in view order under permuted strides: right bytes at wrong addresses."""
    mask, strides, itemsize = view
    dtype = np.dtype(f"uint{8 * itemsize}")
    array = np.arange(mask.size, dtype=dtype).reshape(mask.shape)
    found = spans_of(mask, strides, itemsize)
    memory = {}
    for at in np.argwhere(mask):
        offset = sum(i * s for i, s in zip(at, strides, strict=True)) * itemsize
        for b, value in enumerate(array[tuple(at)].tobytes()):
            memory[offset + b] = value
    assert found.gather(array) == bytes(memory[b] for b in sorted(memory))
    assert np.array_equal(found.scatter(found.gather(array), dtype, mask.shape), np.where(mask, array, 0))


def test_offsets_past_two_to_the_31_are_kept() -> None:
    """Fault: 32-bit offsets in a wide, sparse view."""
    found = spans_of(np.ones((2, 4), bool), (3 << 31, 1), 2)
    assert found.spans.tolist() == [[0, 8], [3 << 32, 8]]
    assert allocation_bytes((2, 4), (3 << 31, 1), 2) == (3 << 32) + 8


def test_a_broadcast_mask_costs_no_memory() -> None:
    """Fault: a mask that is expanded to the view: 2^40 elements here."""
    mask = np.broadcast_to(np.array([True, False]).reshape(2, 1), (2, 1 << 39))
    assert spans_of(mask, (1 << 39, 1), 2).spans.tolist() == [[0, 1 << 40]]


@pytest.mark.parametrize("strides", [(1, 1), (0, 1), (-4, 1)])
def test_impossible_strides_are_refused(strides: tuple[int, int]) -> None:
    """Fault: elements that share bytes, of which only one value could be uploaded."""
    with pytest.raises(LayoutError, match="strides"):
        spans_of(np.ones((3, 2), bool), strides, 4)


def test_an_empty_view_has_no_bytes() -> None:
    assert allocation_bytes((0, 4), (4, 1), 4) == 0
    assert spans_of(np.ones((0, 4), bool), (4, 1), 4).size == 0

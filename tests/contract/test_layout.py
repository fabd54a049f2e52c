"""Where elements lie, and which element lies where: one is the inverse of the other."""

from __future__ import annotations

import numpy as np
import pytest

from verify.contract.layout import elements_at, places


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((3, 4), (4, 1)), ((3, 4), (10, 2)), ((4, 3), (1, 8)), ((1, 5), (0, 1)), ((2, 3, 4), (50, 13, 3))],
)
def test_each_element_is_found_where_it_lies(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Fault: padded or transposed rows are taken for contiguous ones."""
    at = places(shape, strides)
    assert at.shape == shape and at.max() == sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    found, index = elements_at(at, shape, strides)
    assert found.all()
    assert all(np.array_equal(own, want) for own, want in zip(index, np.indices(shape), strict=True))


def test_places_between_and_around_the_rows_hold_no_element() -> None:
    """Fault: a byte of padding, or one beyond the view, is taken for an element of it."""
    shape, strides = (3, 4), (10, 2)
    held = set(places(shape, strides).ravel().tolist())
    found, _ = elements_at(np.arange(-3, 40), shape, strides)
    assert {place for place, one in zip(range(-3, 40), found.tolist(), strict=True) if one} == held


def test_elements_that_share_a_place_are_not_told_apart() -> None:
    """Fault: of rows that lie on each other, one is named as if it were the only one."""
    found, _ = elements_at(np.arange(4), (3, 4), (0, 1))
    assert not found.any()

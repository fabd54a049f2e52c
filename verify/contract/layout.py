"""Where the elements of a view lie in its allocation, and which element lies at a place."""

from __future__ import annotations

import numpy as np


def places(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Where each element of a view is, in storage items from the first one: int64 of the view's shape."""
    at = np.zeros(shape, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        at += (np.arange(extent) * stride).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return at


def elements_at(
    at: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Which elements of a view are at some places: whether there is one, and its index (0 where not)."""
    rest, found = at, at >= 0
    index = [np.zeros_like(at) for _ in shape]
    for axis in sorted((a for a in range(len(shape)) if shape[a] > 1), key=lambda a: -strides[a]):
        if strides[axis] <= 0:
            return np.zeros(at.shape, bool), tuple(index)
        own = np.minimum(rest // strides[axis], shape[axis] - 1)
        index[axis] = np.maximum(own, 0)
        rest = rest - own * strides[axis]
    found = found & (rest == 0)
    return found, tuple(np.where(found, own, 0) for own in index)

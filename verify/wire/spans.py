"""Converts masks over a view to byte spans of its allocation, and arrays to the spans' bytes and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


class LayoutError(ValueError):
    """Impossible strides; the message names them."""


def allocation_bytes(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Bytes from the first element of a view to the end of its last; 0 for an empty view.

    shape, strides: extents and element strides, outermost first. Python integers, so nothing overflows.
    """
    if any(extent <= 0 for extent in shape):
        return 0
    last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    return (last + 1) * itemsize


@dataclass(frozen=True)
class Spans:
    """The selected elements of a view, as byte spans of its allocation.

    spans: int64 [n, 2], byte offset and byte length, ascending and coalesced.
    blocks: indices of selected rows of the view reshaped to [-1, block], in the order of their bytes. block:
    number of adjacent elements that are selected together.
    """

    spans: np.ndarray
    blocks: np.ndarray
    block: int

    @property
    def size(self) -> int:
        """The number of selected bytes."""
        return int(self.spans[:, 1].sum())

    def gather(self, array: np.ndarray) -> bytes:
        """The selected elements of a view-shaped storage array, in the order of their bytes."""
        if not self.blocks.size:
            return b""
        return bytes(np.ascontiguousarray(array).reshape(-1, self.block)[self.blocks].tobytes())

    def scatter(self, data: bytes | memoryview, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
        """A view-shaped array holding ``data`` at the selected elements and zero bits elsewhere."""
        array = np.zeros(tuple(shape), dtype)
        if self.blocks.size:
            values = np.frombuffer(data, dtype).reshape(-1, self.block)
            array.reshape(-1, self.block)[self.blocks] = values
        return array


def spans_of(mask: np.ndarray, strides: Sequence[int], itemsize: int) -> Spans:
    """Byte spans of the True elements of a boolean mask over a view.

    mask: has the view's shape; broadcast axes cost nothing. strides: in elements, none negative. Raises
    LayoutError for a negative stride or overlapping elements.
    """
    if any(s < 0 for s in strides):
        raise LayoutError(f"strides {tuple(strides)}: a stride is negative")
    shape = mask.shape
    if mask.size == 0:
        return Spans(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), 1)
    lead = mask
    block, axis = 1, mask.ndim
    while axis > 0 and (shape[axis - 1] == 1 or strides[axis - 1] == block) and _uniform(lead):
        axis -= 1
        block *= shape[axis]
        lead = lead[..., 0]
    blocks = np.flatnonzero(lead)
    offsets = np.zeros(blocks.shape, np.int64)
    coordinates = np.unravel_index(blocks, lead.shape) if lead.ndim else ()
    for coordinate, stride in zip(coordinates, strides, strict=False):
        offsets += coordinate * np.int64(stride)
    order = np.argsort(offsets, kind="stable")
    blocks, offsets = blocks[order], offsets[order] * itemsize
    length = block * itemsize
    steps = np.diff(offsets)
    if (steps < length).any():
        raise LayoutError(f"strides {tuple(strides)} of shape {shape} make elements overlap")
    starts = np.flatnonzero(np.concatenate([[True], steps != length])) if blocks.size else blocks
    counts = np.diff(np.append(starts, blocks.size))
    return Spans(np.stack([offsets[starts], counts * length], axis=1), blocks, block)


def _uniform(mask: np.ndarray) -> bool:
    """Whether the mask is the same along its last axis."""
    if mask.shape[-1] == 1 or mask.strides[-1] == 0:
        return True
    return bool((mask == mask[..., :1]).all())

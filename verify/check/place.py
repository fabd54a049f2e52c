"""Describes an address in a contract's terms: a buffer and its element, live or dead, or the distance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from verify.contract.formats import format_of
from verify.contract.model import Buffer, Case
from verify.wire.spans import allocation_bytes

REACH = 1 << 40
"""Bytes past a buffer's end within which an address is described by it: an offset may have lost 32 bits."""

NEAR = 1 << 20
"""The same before its start."""

_NAMED = re.compile(r"[A-Za-z_]\w* \+ \d")
"""An address for which the CPU device has already named a variable, such as a ``__device__`` symbol."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


def place_of(case: Case, bases: Mapping[str, int], address: str) -> str:
    """The location of an address among a run's buffers, empty if it belongs to none.

    bases: the device address of each buffer's first byte. address: text that ends with the address.
    """
    found = _ADDRESS.findall(address)
    if not found or _NAMED.match(address):
        return ""
    at = int(found[-1], 16)
    places = [_place(case, case.contract.buffer(name), at - base) for name, base in bases.items()]
    _, words = min((p for p in places if p is not None), default=(0, ""))
    return words and f"{words} ({found[-1]})"


def _place(case: Case, buffer: Buffer, offset: int) -> tuple[int, str] | None:
    """(distance, description) of a byte offset from a buffer's first byte; None if it is too far away."""
    shape, strides = case.shape(buffer), case.strides(buffer)
    itemsize = format_of(case.dtype(buffer)).itemsize
    size = allocation_bytes(shape, strides, itemsize)
    if offset < 0:
        return (-offset, f"{_bytes(-offset)} before {buffer.name}") if -offset <= NEAR else None
    if offset >= size:
        past = offset - size
        return (past + 1, f"{_bytes(past)} past the end of {buffer.name}") if past <= REACH else None
    index = element_at(shape, strides, offset // itemsize)
    if index is None:
        return 0, f"{buffer.name} + {offset}, between its rows"
    dead = buffer.role in ("in", "inout") and not case.live(buffer.name)[index]
    return 0, f"{buffer.name} + {offset}, {'dead ' if dead else ''}element {list(index)}"


def element_at(shape: Sequence[int], strides: Sequence[int], offset: int) -> tuple[int, ...] | None:
    """Index of the element at ``offset`` elements from the first; None for padding between rows."""
    index = [0] * len(shape)
    for axis in sorted((a for a in range(len(shape)) if shape[a] > 1), key=lambda a: -strides[a]):
        index[axis] = min(offset // strides[axis], shape[axis] - 1) if strides[axis] else 0
        offset -= index[axis] * strides[axis]
    return tuple(index) if offset == 0 else None


def _bytes(count: int) -> str:
    return f"{count} byte{'' if count == 1 else 's'}"

"""What of a kernel is compared, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from verify.contract.symbols import Expression


@dataclass(frozen=True)
class Intermediate:
    """A typed view into a workspace (or output) buffer that can be compared: a split partial.

    offset: byte offset expression (usually a plan value). shape: extents, contiguous.
    """

    name: str
    buffer: str
    dtype: str
    shape: tuple[Expression, ...]
    offset: Expression = 0


@dataclass(frozen=True)
class KernelOracle:
    """Another kernel as a parity oracle: it runs on the same arrays, under its own contract.

    kernel: that contract's name; its symbols and buffers are named as this contract's. devices: where it
    runs.
    """

    kernel: str
    devices: tuple[str, ...] = ("gpu",)


class Bounded(Protocol):
    """A quantity and its derived bound, float64 arrays of one shape.

    What a contract gives must be a :class:`verify.oracle.tracked.Tracked`; the oracle stands above this room.
    """

    @property
    def value(self) -> np.ndarray: ...

    @property
    def bound(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Effect:
    """What one fault at each of some positions would do, by query head.

    kind: the position is left out, or taken in although it is dead. row: batch row. heads: slice of the rows
    of a head axis. positions ``[n]``; size ``[heads, n]``: the largest move of any quantity, in units.
    """

    kind: Literal["dropped", "added"]
    row: int
    heads: slice
    positions: np.ndarray
    size: np.ndarray

"""What is compared beyond a kernel's outputs, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from verify.contract.symbols import Expression


@dataclass(frozen=True)
class Intermediate:
    """A typed view into a workspace (or output) buffer that can be compared: a split partial. Contiguous."""

    name: str
    """The key by which ``observe`` gets its array. Example: ``name="m"``"""

    buffer: str
    """The buffer that it is a view of. Example: ``buffer="workspace"``"""

    dtype: str
    """Element type. Example: ``dtype="f32"``"""

    shape: tuple[Expression, ...]
    """Extents, outermost first. Example: ``shape=("rows", "columns")``"""

    offset: Expression = 0
    """Byte offset in the buffer, usually a plan value. Example: ``offset="16*rows"``"""


@dataclass(frozen=True)
class KernelOracle:
    """Another kernel as a parity oracle: it runs on the same arrays, with its own contract."""

    kernel: str
    """That contract's name; its symbols and buffers have the same names as this contract's.
    Example: ``kernel="decode_pipeline"``"""

    machine_code: bool = True
    """Whether it needs machine code, as the kernels of a library do; the CPU device then cannot run it.
    Example: ``machine_code=False``"""


class Bounded(Protocol):
    """A quantity and its derived bound, float64 arrays of one shape.

    Contracts return :class:`verify.oracle.tracked.Tracked`, which this package may not import.
    """

    @property
    def value(self) -> np.ndarray: ...

    @property
    def bound(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Effect:
    """The effect on the output of one fault at each of several positions, by query head."""

    kind: Literal["dropped", "added"]
    """The position is dropped, or included although it is dead. Example: ``kind="dropped"``"""

    row: int
    """Batch row. Example: ``row=0``"""

    heads: slice
    """Rows of a head axis. Example: ``heads=slice(0, 4)``"""

    positions: np.ndarray
    """``[n]``, absolute. Example: ``positions=np.arange(64)``"""

    size: np.ndarray
    """``[heads, n]``: the largest change of any quantity, in units. Example: ``size=np.ones((4, 64))``"""

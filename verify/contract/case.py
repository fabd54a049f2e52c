"""The case: everything about one kernel x fixture x profile that is known before a device is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from verify.contract.expression import evaluate
from verify.contract.formats import decode

if TYPE_CHECKING:
    from verify.contract.model import Buffer, Contract


@dataclass(frozen=True)
class Case:
    """One kernel x fixture x profile.

    symbols: the fixture's values, resolved: int, float, or a tuple of ints for ``ints`` symbols.
    plan: the launcher's decisions for these symbols (empty when the contract has no plan).
    arrays: raw storage arrays by buffer name, of the buffer's view shape and its format's storage dtype
    (``uint16`` for bf16, ...). Elements outside the live mask are meaningless and never reach a device.
    sparse: the allocation is larger than what is worth filling; only live runs and the bytes around them are.
    """

    contract: Contract
    fixture: str
    profile: str
    symbols: Mapping[str, Any]
    plan: Mapping[str, int] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    sparse: bool = False

    @property
    def id(self) -> str:
        """``kernel/fixture/profile``, the name used in reports and on the command line."""
        return f"{self.contract.name}/{self.fixture}/{self.profile}"

    @cached_property
    def values(self) -> dict[str, Any]:
        """Symbols and plan values together: what expressions may name."""
        return {**self.symbols, **self.plan}

    @cached_property
    def reference(self) -> Mapping[str, np.ndarray]:
        """What the contract's reference gives for this case, by quantity; its error model may want it too."""
        return self.contract.reference(self)

    def __getitem__(self, name: str) -> Any:
        """The value of a symbol or plan field."""
        return self.values[name]

    def evaluate(self, expression: int | float | str) -> Any:
        """An expression over this case's symbols and plan. Raises ExpressionError."""
        return evaluate(expression, self.values)

    def dtype(self, buffer: Buffer) -> str:
        """Element type of a buffer, a key of FORMATS.

        A choice out of range, which only bad input has that must be refused, takes the last one.
        """
        if isinstance(buffer.dtype, str):
            return buffer.dtype
        choices = buffer.dtype.choices
        return choices[min(max(int(self[buffer.dtype.symbol]), 0), len(choices) - 1)]

    def given(self, name: str) -> bool:
        """Whether the kernel gets that buffer, and not a null pointer: see ``Buffer.given``."""
        buffer = self.contract.buffer(name)
        return buffer.given is None or bool(self.evaluate(buffer.given))

    def shape(self, buffer: Buffer) -> tuple[int, ...]:
        """View extents of a buffer."""
        return tuple(int(self.evaluate(e)) for e in buffer.shape)

    def strides(self, buffer: Buffer) -> tuple[int, ...]:
        """Element strides of a buffer, contiguous ones made explicit."""
        if buffer.strides is not None:
            return tuple(int(self.evaluate(e)) for e in buffer.strides)
        shape = self.shape(buffer)
        return tuple(int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape)))

    def live(self, name: str) -> np.ndarray:
        """Boolean mask of the view: what the kernel may read (inputs) or must write (outputs)."""
        buffer = self.contract.buffer(name)
        return self.mask(buffer, "promised" if buffer.role == "out" else "live")

    def mask(self, buffer: Buffer, field: Literal["live", "promised"]) -> np.ndarray:
        """What one of a buffer's masks says of its view; all False where the buffer is not given.

        Raises ValueError, naming file and field, for a mask that does not broadcast to the view.
        """
        shape, function = self.shape(buffer), getattr(buffer, field)
        if not self.given(buffer.name):
            return np.broadcast_to(np.zeros(1, bool), shape)
        mask = np.ones(1, bool) if function is None else np.asarray(function(self), bool)
        try:
            return np.broadcast_to(mask, shape)
        except ValueError:
            raise ValueError(
                f"{self.contract.file}: {buffer.name}: {field}: gives a mask of the shape {mask.shape} in "
                f"{self.id}, which does not broadcast to the buffer's {shape}"
            ) from None

    def f64(self, name: str) -> np.ndarray:
        """Float64 values of an input over its view; NaN outside the live mask, so that a reference that
        reads a dead element says so. Raises LookupError for a buffer that is not given."""
        buffer = self.contract.buffer(name)
        decoded = decode(self.dtype(buffer), self.raw(name)).astype(np.float64)
        mask = self.live(name)
        return decoded if mask.all() else np.where(mask, decoded, np.nan)

    def raw(self, name: str) -> np.ndarray:
        """Storage array of an input over its view (integers for ``i32``, bit patterns for floats).
        Raises LookupError for a buffer that is not given."""
        if not self.given(name):
            raise LookupError(f"{self.id}: {name} is a null pointer here: ask case.given({name!r}) first")
        return self.arrays[name]

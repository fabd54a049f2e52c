"""A case with other inputs than those of the run: the reference of it is what a faulty kernel would give."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from verify.contract.formats import decode, encode, format_of
from verify.contract.layout import elements_at, places
from verify.contract.model import Buffer, Case
from verify.wire.fills import fill_table
from verify.wire.run import Fill


@dataclass(frozen=True)
class Altered(Case):
    """A case whose inputs have values that the device did not hold, or that their format cannot hold.

    held: float64 values of inputs over their views. Dead elements stay NaN whatever the symbols say, as the
    device held them.
    """

    held: Mapping[str, np.ndarray] = field(default_factory=dict)

    def f64(self, name: str) -> np.ndarray:
        """The altered values. Raises LookupError for a buffer that is not given."""
        return self.held[name] if name in self.held else super().f64(name)


def altered(
    case: Case,
    values: Mapping[str, np.ndarray] | None = None,
    symbols: Mapping[str, Any] | None = None,
    fill: Fill | None = None,
) -> Altered:
    """A case with other values of some inputs, and of some symbols; plan values stay."""
    held = dict(case.held) if isinstance(case, Altered) else {}
    arrays = dict(case.arrays)
    for buffer in case.contract.buffers:
        name = buffer.name
        if name in arrays and name not in held and not case.live(name).all():
            held[name] = case.f64(name)
    for name, given in (values or {}).items():
        held[name] = given
        dtype = case.dtype(case.contract.buffer(name))
        if not format_of(dtype).is_float:
            arrays[name] = encode(dtype, given)
    return Altered(
        **{f.name: getattr(case, f.name) for f in dataclasses.fields(Case) if f.name not in _REPLACED},
        symbols={**case.symbols, **(symbols or {})},
        arrays=arrays,
        fill=fill or case.fill,
        held=held,
    )


_REPLACED = ("symbols", "arrays", "fill")


def inputs(case: Case) -> list[Buffer]:
    """The buffers that the kernel reads."""
    return [b for b in case.contract.buffers if b.role in ("in", "inout") and b.name in case.arrays]


def read_otherwise(case: Case, buffer: Buffer, strides: tuple[int, ...], offset: int = 0) -> np.ndarray:
    """What a kernel reads that looks for an input at other places: float64 values over the buffer's view.

    strides, offset: in storage items. What is no live element there is the fill; what lies past the end of
    the allocation is taken for the fill as well.
    """
    dtype, shape = case.dtype(buffer), case.shape(buffer)
    found, index = elements_at(offset + places(shape, strides), shape, case.strides(buffer))
    live = np.broadcast_to(case.live(buffer.name), shape)
    raw = case.arrays[buffer.name].view(format_of(dtype).dtype)
    pattern = np.frombuffer(fill_table(dtype, cast(Fill, case.fill)), raw.dtype)[0]
    return decode(dtype, np.where(found & live[index], raw[index], pattern)).astype(np.float64)

"""How a kernel is called: a launcher or a ``__global__`` function, and the calls that it must refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verify.contract.symbols import Expression


@dataclass(frozen=True)
class Launcher:
    """An entry that is a host function: ``cudaError_t name(args...)``.

    args: in call order; each is a buffer's name (its device pointer), a symbol, plan value or expression
    (passed as the C++ parameter's own type), 0 (also a null pointer), ``"stream"``, or ``"bytes(buffer)"``
    (the allocation's size).
    struct: when set, the launcher takes ``(const struct*, cudaStream_t)`` and ``args`` maps fields to values.
    returns_error: False for a launcher that returns void (its errors are then read from the runtime).
    """

    function: str
    args: tuple[Expression, ...] | Mapping[str, Expression]
    struct: str | None = None
    returns_error: bool = True


@dataclass(frozen=True)
class Global:
    """An entry that is a ``__global__`` function, launched by the harness with this geometry.

    function: as it is spelled in C++, template arguments included (``"softmax<float, 256>"``).
    grid, block: one to three expressions. shared: dynamic shared memory in bytes.
    args: as for :class:`Launcher` (without ``"stream"``).
    """

    function: str
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    args: tuple[Expression, ...]
    shared: Expression = 0


Entry = Launcher | Global


@dataclass(frozen=True)
class Refusal:
    """Bad input that must return an error, launch nothing and leave every output untouched.

    symbols: symbol overrides applied to ``fixture`` (None: the contract's first), as expressions over its
    values; symbols that the fixture leaves to their defaults follow. null: buffers passed as null pointers or
    the launcher's struct by its name. misalign: buffer name to bytes added to its pointer. shrink: buffer to
    bytes taken off the size that ``bytes(buffer)`` reports. error: the error's name; None: any will do.
    """

    name: str
    symbols: Mapping[str, Expression | float] = field(default_factory=dict)
    null: tuple[str, ...] = ()
    misalign: Mapping[str, int] = field(default_factory=dict)
    shrink: Mapping[str, int] = field(default_factory=dict)
    fixture: str | None = None
    error: str | None = None

"""How a kernel is called: a launcher or a ``__global__`` function, and the calls that it must reject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verify.contract.symbols import Expression


@dataclass(frozen=True)
class Launcher:
    """An entry that is a host function, ``cudaError_t name(args...)``; it may return ``int``."""

    function: str
    """Its C++ spelling, namespace and template arguments included (each a name or an integer).
    Example: ``function="scale_rows_launch"``"""

    args: tuple[Expression, ...] | Mapping[str, Expression]
    """In call order; each is a buffer's name (its device pointer), a symbol, plan value or expression
    (converted to the C++ parameter's type), 0 (also a null pointer), ``"stream"``, or ``"bytes(buffer)"``
    (the allocation's size). With ``struct``, a mapping from its fields to such values.
    Example: ``args=("x", "y", "rows", "2*columns", "bytes(y)", "stream")``"""

    struct: str | None = None
    """When set, the launcher takes ``(const struct*, cudaStream_t)``, and ``args`` maps the struct's fields.
    Example: ``struct="scale_rows_args"``"""

    returns_error: bool = True
    """False for a launcher that returns nothing; its errors are then read from the runtime.
    Example: ``returns_error=False``"""


@dataclass(frozen=True)
class Global:
    """An entry that is a ``__global__`` function, launched by the harness with this geometry."""

    function: str
    """Its C++ spelling, template arguments included (each a name or an integer).
    Example: ``function="softmax<float, 256>"``"""

    grid: tuple[Expression, ...]
    """Blocks, in one to three dimensions. Example: ``grid=("ceil_div(columns, 128)", "rows")``"""

    block: tuple[Expression, ...]
    """Threads of a block, in one to three dimensions. Example: ``block=(128,)``"""

    args: tuple[Expression, ...]
    """As for ``Launcher``, without ``"stream"``. Example: ``args=("x", "y", "columns")``"""

    shared: Expression = 0
    """Dynamic shared memory of a block, in bytes; above 48 KB the harness sets the kernel's attribute for it.
    Example: ``shared="4*columns"``"""


Entry = Launcher | Global


@dataclass(frozen=True)
class Refusal:
    """Bad input that must return an error, launch nothing and leave every output unchanged."""

    name: str
    """The name in reports. Example: ``name="no-rows"``"""

    symbols: Mapping[str, Expression | float] = field(default_factory=dict)
    """Symbol overrides applied to ``fixture``, as expressions over its values; defaults that depend on them
    are recomputed.
    Example: ``symbols={"rows": 0}``"""

    null: tuple[str, ...] = ()
    """Buffers passed as null pointers, or the launcher's struct by its name. Example: ``null=("x",)``"""

    misalign: Mapping[str, int] = field(default_factory=dict)
    """By buffer, bytes added to its pointer. Example: ``misalign={"x": 8}``"""

    shrink: Mapping[str, int] = field(default_factory=dict)
    """By buffer, bytes subtracted from the size that ``bytes(buffer)`` reports.
    Example: ``shrink={"x": 1}``"""

    fixture: str | None = None
    """The fixture that it is based on; None: the contract's first. Example: ``fixture="padded-rows"``"""

    error: str | None = None
    """The name of the error that must be returned; None: any error.
    Example: ``error="cudaErrorInvalidValue"``"""

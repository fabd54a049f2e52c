"""The contract API: what a kernel promises, on one screen of Python.

A contract is a frozen value. Nothing here touches a GPU, a file or a compiler; the other packages read these
types and act on them. Sizes are *expressions*: integers, or strings over the fixture's symbols and the plan
(``"NH*D"``, ``"3*tile - 1"``), see :mod:`verify.contract.expression`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from mpmath import mpf

    from verify.contract.case import Case
    from verify.contract.profile import Profile
    from verify.oracle.tracked import Tracked
    from verify.oracle.visibility import Effect

Expression = int | str
Role = Literal["in", "out", "inout", "workspace"]
OverRead = Literal["strict", "masked"]
SymbolKind = Literal["int", "float", "ints"]


@dataclass(frozen=True)
class Symbol:
    """One value that a fixture gives: a shape, a window, a list of lengths.

    kind: ``int``, ``float``, or ``ints`` (a list of integers, such as one length a batch row).
    default: expression used when a fixture is silent; None makes the symbol required.
    minimum / choices: what the schema check accepts.
    doc: one line, shown by ``verify list`` and in schema errors.
    """

    name: str
    kind: SymbolKind = "int"
    default: Expression | float | None = None
    minimum: int | None = None
    choices: tuple[int, ...] = ()
    doc: str = ""


@dataclass(frozen=True)
class DtypeChoice:
    """An element type that a symbol chooses: its value is the index into ``choices``."""

    symbol: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Buffer:
    """One device buffer: an exact-size allocation that the kernel gets a pointer to.

    dtype: element type, a key of :data:`verify.contract.formats.FORMATS` (``bf16``, ``f32``, ``i32``...), or
    one that a symbol chooses (:class:`DtypeChoice`); ``Case.dtype`` says which it is.
    shape: extents of the view, outermost first. strides: elements from one index to the next, same length as
    ``shape``; None means contiguous. The allocation ends with the last element of the view.
    align: bytes that the base pointer is aligned to, no more: an allocation is placed so that it has exactly
    the promised alignment when a device can do so.
    live: for inputs, a function from the case to a boolean mask that broadcasts to ``shape``: True where the
    kernel may read. It sees the case's arrays (lengths, a block table), not the symbols alone. None: all.
    promised: for outputs, likewise, the elements that the kernel must write. None: all of the view.
    overread: overrides the contract's rule for this buffer.
    given: for an optional argument, an expression over symbols. Where it is 0 the kernel gets a null pointer,
    ``bytes(buffer)`` is 0, and ``case.given(name)`` is False. None: the argument is never null.
    """

    name: str
    dtype: str | DtypeChoice
    shape: tuple[Expression, ...]
    role: Role = "in"
    strides: tuple[Expression, ...] | None = None
    align: int = 16
    live: Callable[[Case], np.ndarray] | None = None
    promised: Callable[[Case], np.ndarray] | None = None
    overread: OverRead | None = None
    given: Expression | None = None
    doc: str = ""


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
class Plan:
    """How the launcher's decisions are asked for, on the host, without a launch.

    call: a C++ expression-bodied snippet is never taken from a fixture; this names a function of the source
    with the signature ``cudaError_t function(const struct*, int sm_count, result*)`` where ``struct`` is the
    launcher's argument struct, or ``cudaError_t function(args..., result*)`` when ``args`` is given.
    fields: the integer members of ``result`` that become symbols (``tile``, ``num_splits``, ...).
    boundaries: from (case symbols with plan values, batch row) to the split edges as absolute positions,
    ascending, first = low edge of the live band, last = its end. The suite checks that they cover the band
    exactly once.
    promised: field -> expression over symbols and fields that it must equal ({"grid": "ceil_div(N, 16)"}).
    slot: from (case, absolute position) to the slot that holds it, to draw and name positions.
    """

    function: str
    result: str
    fields: tuple[str, ...]
    args: tuple[Expression, ...] | None = None
    boundaries: Callable[[Case, int], list[int]] | None = None
    promised: Mapping[str, Expression] = field(default_factory=dict)
    slot: Callable[[Case, int], int] | None = None


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


@dataclass(frozen=True)
class KernelOracle:
    """Another kernel as a parity oracle: it runs on the same arrays, under its own contract.

    kernel: that contract's name; its symbols and buffers are named as this contract's. devices: where it
    runs.
    """

    kernel: str
    devices: tuple[str, ...] = ("gpu",)


@dataclass(frozen=True)
class Contract:
    """What one kernel promises. See the fields; ``docs/contracts.md`` is the tutorial.

    reference: case -> {quantity: float64 array}. The truth, by formulae independent of the kernel's own.
    error_model: case -> {quantity: Tracked}: the same quantities computed with
    :class:`verify.oracle.tracked.Tracked` arithmetic, rounding where the kernel rounds; its ``bound`` is the
    tolerance of each element. A quantity is an output buffer's name or a key of ``observe``.
    observe: from (case, raw intermediate arrays) to comparable invariants ({"partial_out": O / l, ...}).
    exact: (profile, quantity) pairs that are compared for bit equality.
    drift: how far outputs may move when dead bytes or the schedule change, in units of their bound; 0 means
    bit-identical.
    batch: the symbol that counts independent rows; buffers whose first extent is that symbol are sliced for
    the row-alone-against-batch determinism test. None: no such test, and the report says so.
    pinned: symbol overrides that pin every data-independent choice for that test ({"splits": "num_splits"}).
    captured_at: symbols whose values live in device memory only (lengths), with the value that a CUDA graph
    is captured at before it is replayed at the fixture's; empty: the graph test replays at the same values.
    row_reads: buffer -> expression: how often each live row (last dimension) is read in one launch, for the
    traffic check; ``row`` may be a function from the case to an integer array over the rows.
    instantiations: what the compiler makes of the kernel's templates, by name, each with an expression over
    symbols and plan that is true where it runs ({"attend<64>": "D == 64"}). The report says which ones ran;
    one that no fixture runs makes the verdict inconclusive.
    effects: (case, unit of every quantity) -> what a dropped or an added position would do, for visibility
    (:mod:`verify.oracle.visibility`); None: visibility is reported as not available.
    exact_reference: (case, quantity, index) -> that element as an mpmath number; None: no mpmath rung.
    parity: op-parity oracles by name: a function from the case to {quantity: Tracked}, whose bound is the
    oracle's own distance from the truth, or another kernel (:class:`KernelOracle`).
    axes: quantity -> names of its axes, for messages ({"out": ("batch", "head", "dim")}).
    locate: (case, quantity, index) -> further coordinates of an element ("split 2, positions 128..191, slots
    0..63"), for messages.
    directory, file: where the contract stands, set when it is loaded. Two contracts may have one name: what
    is kept by contract is kept by its file.
    """

    name: str
    source: str
    symbols: tuple[Symbol | str, ...]
    buffers: tuple[Buffer, ...]
    entry: Entry | tuple[Entry, ...]
    reference: Callable[[Case], dict[str, np.ndarray]]
    error_model: Callable[[Case], dict[str, Tracked]]
    profiles: tuple[Profile, ...] = ()
    plan: Plan | None = None
    intermediates: tuple[Intermediate, ...] = ()
    observe: Callable[[Case, dict[str, np.ndarray]], dict[str, np.ndarray]] | None = None
    exact: tuple[tuple[str, str], ...] = ()
    overread: OverRead = "strict"
    drift: float = 0.0
    refusals: tuple[Refusal, ...] = ()
    batch: str | None = None
    pinned: Mapping[str, Expression] = field(default_factory=dict)
    captured_at: Mapping[str, Expression] = field(default_factory=dict)
    row_reads: Mapping[str, Expression | Callable[[Case], np.ndarray]] = field(default_factory=dict)
    instantiations: Mapping[str, Expression] = field(default_factory=dict)
    architectures: tuple[str, ...] = ("sm_80", "sm_90")
    nvcc_flags: tuple[str, ...] = ()
    effects: Callable[[Case, Mapping[str, np.ndarray]], Iterable[Effect]] | None = None
    exact_reference: Callable[[Case, str, tuple[int, ...]], mpf] | None = None
    parity: Mapping[str, Callable[[Case], dict[str, Tracked]] | KernelOracle] = field(default_factory=dict)
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    locate: Callable[[Case, str, tuple[int, ...]], str] | None = None
    directory: Path = Path()
    file: Path = Path()

    def symbol(self, name: str) -> Symbol | None:
        """The declared symbol of that name, or None."""
        return next((s for s in self.declared_symbols if s.name == name), None)

    @property
    def declared_symbols(self) -> tuple[Symbol, ...]:
        """Symbols with bare names (``"rows"``) promoted to required positive integers."""
        return tuple(Symbol(s, minimum=1) if isinstance(s, str) else s for s in self.symbols)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The launches of one call, in order."""
        return tuple(self.entry) if isinstance(self.entry, tuple | list) else (self.entry,)

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name. Raises KeyError with the known names."""
        for candidate in self.buffers:
            if candidate.name == name:
                return candidate
        raise KeyError(f"{self.name} has no buffer {name!r}; it has {[b.name for b in self.buffers]}")

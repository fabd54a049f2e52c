"""The contract API: what a kernel promises, on one screen of Python.

A contract is a frozen value. Nothing here touches a GPU, a file or a compiler; the other packages read these
types and act on them. Sizes are *expressions*: integers, or strings over the fixture's symbols and the plan
(``"NH*D"``, ``"3*tile - 1"``), see :mod:`verify.contract.expression`.

A contract holds functions of a case and a case holds its contract, so the types that name each other are
together here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from verify.contract.compared import Bounded, Effect, Intermediate, KernelOracle
from verify.contract.entries import Entry, Refusal
from verify.contract.expression import evaluate
from verify.contract.formats import decode
from verify.contract.returned import array
from verify.contract.symbols import DtypeChoice, Expression, Symbol

if TYPE_CHECKING:
    from mpmath import mpf

Role = Literal["in", "out", "inout", "workspace"]
OverRead = Literal["strict", "masked"]


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
class Profile:
    """One way to fill the inputs.

    generate: (case without arrays, generator) -> {buffer: real values over the view}, float64 or integers.
    Values are rounded to the buffer's format afterwards, so the reference sees what the kernel sees. Raw
    storage arrays (the format's storage dtype with a name ending in ``:raw``) are taken as they are.
    pins: one sentence: which faults this profile makes visible.
    control_path: the data takes a path through the kernel of its own, so the tools run it too; the first
    profile of a contract always counts as one.
    """

    name: str
    generate: Callable[[Case, np.random.Generator], dict[str, np.ndarray]]
    pins: str
    control_path: bool = False


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
    error_model: Callable[[Case], Mapping[str, Bounded]]
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
    parity: Mapping[str, Callable[[Case], Mapping[str, Bounded]] | KernelOracle] = field(default_factory=dict)
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

        Raises ReturnedError for a mask that does not broadcast to the view.
        """
        shape, function = self.shape(buffer), getattr(buffer, field)
        if not self.given(buffer.name):
            return np.broadcast_to(np.zeros(1, bool), shape)
        if function is None:
            return np.broadcast_to(np.ones(1, bool), shape)
        return array(function(self), bool, f"{self.contract.file}: {buffer.name}: {field}: {self.id}", shape)

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

"""The contract API: a kernel's specification on one screen of Python.

A contract is immutable data. Nothing here uses a GPU, a file or a compiler; the other packages act on these
types. Sizes are *expressions*: integers, or strings over the fixture's symbols and the plan (``"NH*D"``,
``"3*tile - 1"``), see :mod:`verify.contract.expression`.

A contract holds functions of a case and a case holds its contract, so both are defined here.
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
from verify.contract.hypothesis import Hypothesis
from verify.contract.returned import array
from verify.contract.symbols import DtypeChoice, Expression, Symbol

if TYPE_CHECKING:
    from mpmath import mpf

Role = Literal["in", "out", "inout", "workspace"]
OverRead = Literal["strict", "masked"]


@dataclass(frozen=True)
class Buffer:
    """One device buffer: an allocation of exactly the needed size, to which the kernel gets a pointer."""

    name: str
    """The name in expressions, the reference and reports. Example: ``name="x"``"""

    dtype: str | DtypeChoice
    """Element type, a key of :data:`verify.contract.formats.FORMATS`, or a choice by a symbol.
    Example: ``dtype="bf16"``"""

    shape: tuple[Expression, ...]
    """Extents of the view, outermost first. Example: ``shape=("rows", "columns")``"""

    role: Role = "in"
    """``in``, ``out``, ``inout`` (an input whose new value is compared), or ``workspace``.
    Example: ``role="out"``"""

    strides: tuple[Expression, ...] | None = None
    """Stride of each extent in elements; None: contiguous. The allocation ends with the last element of the
    view.
    Example: ``strides=("2*columns", 1)``"""

    align: int = 16
    """Alignment of the base pointer in bytes, a power of two. Where the device allows, the allocation has
    exactly this alignment and no larger one.
    Example: ``align=4``"""

    live: Callable[[Case], np.ndarray] | None = None
    """For inputs, a function from the case to a boolean mask that broadcasts to ``shape``: True where the
    kernel may read. It sees the case's arrays (lengths, a block table), not the symbols alone. None:
    everywhere.
    Example: ``live=lambda case: np.arange(case["columns"]) < 3``"""

    promised: Callable[[Case], np.ndarray] | None = None
    """For outputs, a mask likewise: True where the kernel must write; nothing else may change. None:
    everywhere.
    Example: ``promised=lambda case: np.arange(case["columns"]) < 3``"""

    overread: OverRead | None = None
    """Overrides the contract's rule for this buffer. Example: ``overread="masked"``"""

    given: Expression | None = None
    """For an optional argument, an expression over symbols. Where it is 0 the kernel gets a null pointer,
    ``bytes(buffer)`` is 0, and ``case.given(name)`` is False. None: the argument is never null.
    Example: ``given="rows > 1"``"""

    doc: str = ""
    """A remark for readers of the contract. Example: ``doc="low nibble first"``"""


@dataclass(frozen=True)
class Plan:
    """A host function that returns the launcher's decisions without a launch."""

    function: str
    """``cudaError_t function(const struct*, int sm_count, result*)``, where ``struct`` is the launcher's,
    or ``cudaError_t function(args..., result*)`` when ``args`` is given.
    Example: ``function="softmax_plan"``"""

    result: str
    """The struct that it fills. Example: ``result="softmax_plan_result"``"""

    fields: tuple[str, ...]
    """Integer members of ``result``, which expressions may use.
    Example: ``fields=("tile", "num_splits")``"""

    args: tuple[Expression, ...] | None = None
    """As for ``Launcher``, with ``"sm_count"`` for the number of multiprocessors; None: the launcher's
    struct.
    Example: ``args=("x", "rows", "sm_count")``"""

    boundaries: Callable[[Case, int], list[int]] | None = None
    """A function of the case and a batch row that returns the split edges as absolute positions, ascending,
    from the start of the live band to its end. The suite checks that they cover the band exactly once.
    Example: ``boundaries=lambda case, row: [0, 64, 128]``"""

    promised: Mapping[str, Expression] = field(default_factory=dict)
    """By field, the expression over symbols and fields that it must equal.
    Example: ``promised={"tile": 32}``"""

    slot: Callable[[Case, int], int] | None = None
    """A function of the case and an absolute position that returns its slot, to draw and name positions.
    Example: ``slot=lambda case, position: position % case["capacity"]``"""


@dataclass(frozen=True)
class Profile:
    """One way to fill the inputs."""

    name: str
    """The name in reports and in ``exact``. Example: ``name="normal"``"""

    generate: Callable[[Case, np.random.Generator], dict[str, np.ndarray]]
    """A function of the case, without arrays, and a generator that returns real values of every input over
    its view, float64 or integers. They are then rounded to the buffer's format, so reference and kernel get
    the same inputs. A name that ends in ``:raw`` stands for storage bits, which are used unchanged.
    Example: ``generate=lambda case, g: {"x": g.standard_normal((case["rows"], case["columns"]))}``"""

    pins: str
    """One sentence: the faults that this profile makes visible. Example: ``pins="Wrong arithmetic."``"""

    control_path: bool = False
    """The data drives the kernel through a control path of its own, so the tools run this profile too; the
    first profile of a contract always counts as one.
    Example: ``control_path=True``"""


@dataclass(frozen=True)
class Contract:
    """The specification of one kernel."""

    name: str
    """A lower-case identifier; the fixtures are in ``NAME.toml``. Example: ``name="row_softmax"``"""

    source: str
    """The production file, beside the contract. Example: ``source="row_softmax.cu"``"""

    symbols: tuple[Symbol | str, ...]
    """The values that a fixture assigns; a bare name is a required positive integer.
    Example: ``symbols=("rows", "columns", Symbol("eps", "float", default=1e-5))``"""

    buffers: tuple[Buffer, ...]
    """Every pointer that the kernel gets.
    Example: ``buffers=(Buffer("x", "f32", ("rows",)), Buffer("y", "f32", ("rows",), "out"))``"""

    entry: Entry | tuple[Entry, ...]
    """The function to call, or several, which are called in order on one stream.
    Example: ``entry=Launcher("k_launch", ("x", "y", "rows", "stream"))``"""

    reference: Callable[[Case], dict[str, np.ndarray]]
    """The true values by quantity, float64, by formulae independent of the kernel's.
    Example: ``reference=lambda case: {"y": 2 * case.f64("x")}``"""

    error_model: Callable[[Case], Mapping[str, Bounded]]
    """The same quantities in :class:`verify.oracle.tracked.Tracked` arithmetic, rounding where the kernel
    rounds; its ``bound`` is the tolerance of each element. A quantity is an output's name or a key of
    ``observe``.
    Example: ``error_model=lambda case: {"y": 2 * t.exact(case.f64("x"))}``"""

    profiles: tuple[Profile, ...] = ()
    """Ways to fill the inputs; empty: the default ones, for floating-point inputs only.
    Example: ``profiles=(Profile("ones", lambda case, g: {"x": np.ones(case["rows"])}, "Wrong counts."),)``"""

    plan: Plan | None = None
    """How the launcher's decisions are queried. Example: ``plan=Plan("k_plan", "k_result", ("tile",))``"""

    intermediates: tuple[Intermediate, ...] = ()
    """Partial results in a workspace; they require ``observe``.
    Example: ``intermediates=(Intermediate("m", "x", "f32", ("rows",)),)``"""

    observe: Callable[[Case, dict[str, np.ndarray]], dict[str, np.ndarray]] | None = None
    """A function of the case and the intermediates' values that returns quantities that do not depend on the
    kernel's choices.
    Example: ``observe=lambda case, raw: {"lse": raw["m"] + np.log(raw["l"])}``"""

    exact: tuple[tuple[str, str], ...] = ()
    """(Profile, quantity) pairs that are compared for bit equality.
    Example: ``exact=(("integers", "y"),)``"""

    overread: OverRead = "strict"
    """``strict``: dead elements may not be read; ``masked``: they may, inside their allocation, but must not
    reach an output.
    Example: ``overread="masked"``"""

    drift: float = 0.0
    """How far outputs may change when dead bytes, the schedule, concurrent work or the rest of the batch
    change, in units of their bound; 0: not by a bit.
    Example: ``drift=1.0``"""

    refusals: tuple[Refusal, ...] = ()
    """Bad input that must be rejected, one for each guard.
    Example: ``refusals=(Refusal("null", null=("x",)),)``"""

    batch: str | None = None
    """The symbol that counts independent rows; buffers whose first extent is this symbol are sliced to run
    rows alone. None: not tested, and the report says so.
    Example: ``batch="rows"``"""

    pinned: Mapping[str, Expression] = field(default_factory=dict)
    """Symbol overrides that fix every data-independent choice for that test.
    Example: ``pinned={"columns": "columns"}``"""

    captured_at: Mapping[str, Expression] = field(default_factory=dict)
    """Symbols whose values exist only in device memory (lengths), with the values at which a CUDA graph is
    captured before it is replayed at the fixture's; empty: it is replayed at the same values.
    Example: ``captured_at={"rows": 1}``"""

    row_reads: Mapping[str, Expression | Callable[[Case], np.ndarray]] = field(default_factory=dict)
    """By buffer, how often each live row (last dimension) is read in one call, for the check traffic: an
    expression, or a function of the case that returns integers over the rows.
    Example: ``row_reads={"x": 3}``"""

    instantiations: Mapping[str, Expression] = field(default_factory=dict)
    """The kernel's template instantiations, by any name, each with an expression that is true where it runs.
    The report counts those that ran; if no fixture runs one, the verdict is inconclusive.
    Example: ``instantiations={"attend<64>": "columns == 64"}``"""

    architectures: tuple[str, ...] = ("sm_80", "sm_90")
    """The architectures that the CPU device verifies in turn; a GPU verifies its own. From sm_80 on.
    Example: ``architectures=("sm_90a",)``"""

    nvcc_flags: tuple[str, ...] = ()
    """Further options of the compiler, one word each; folders of ``-I`` are relative to the contract.
    Example: ``nvcc_flags=("-Iinclude", "-DHEADS=16")``"""

    effects: Callable[[Case, Mapping[str, np.ndarray]], Iterable[Effect]] | None = None
    """A function of the case and the unit of every quantity that returns the effects of dropped and added
    positions; None: visibility is reported as not available.
    Example: ``effects=lambda case, unit: [Effect("dropped", 0, slice(1), np.arange(1), np.ones((1, 1)))]``"""

    hypotheses: tuple[Hypothesis, ...] = ()
    """Faults of this op for which a failing comparison is tested, before those that any kernel may have.
    Example: ``hypotheses=(Hypothesis("zero", lambda case, seen: [Prediction("0", {"y": np.zeros(1)})]),)``"""

    exact_reference: Callable[[Case, str, tuple[int, ...]], mpf] | None = None
    """A function of the case, a quantity and an index that returns the element as an mpmath number; None: no
    mpmath rung.
    Example: ``exact_reference=lambda case, quantity, index: 2 * mpf(case.f64("x")[index])``"""

    parity: Mapping[str, Callable[[Case], Mapping[str, Bounded]] | KernelOracle] = field(default_factory=dict)
    """Op-parity oracles by name: a function of the case that returns quantities, whose bound is the oracle's
    own error, or another kernel.
    Example: ``parity={"library": KernelOracle("library_softmax")}``"""

    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By quantity, the names of its axes, for messages. Example: ``axes={"y": ("row", "column")}``"""

    locate: Callable[[Case, str, tuple[int, ...]], str] | None = None
    """A function of the case, a quantity and an index that returns further coordinates for messages.
    Example: ``locate=lambda case, quantity, index: f"tile {index[-1] // 32}"``"""

    directory: Path = Path()
    """The folder of the contract, set when it is loaded; do not pass it.
    Example: ``directory=Path("my_kernels")``"""

    file: Path = Path()
    """The contract's file, likewise. Two contracts may have the same name, so anything stored per contract
    is keyed by its file.
    Example: ``file=Path("my_kernels/row_softmax_contract.py")``"""

    def symbol(self, name: str) -> Symbol | None:
        """The declared symbol ``name``, or None."""
        return next((s for s in self.declared_symbols if s.name == name), None)

    @property
    def declared_symbols(self) -> tuple[Symbol, ...]:
        """Symbols with bare names (``"rows"``) promoted to required positive integers."""
        return tuple(Symbol(s, minimum=1) if isinstance(s, str) else s for s in self.symbols)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The launches that make up one call, in order."""
        return tuple(self.entry) if isinstance(self.entry, tuple | list) else (self.entry,)

    def buffer(self, name: str) -> Buffer:
        """The buffer ``name``. Raises KeyError with the known names."""
        for candidate in self.buffers:
            if candidate.name == name:
                return candidate
        raise KeyError(f"{self.name} has no buffer {name!r}; it has {[b.name for b in self.buffers]}")


@dataclass(frozen=True)
class Case:
    """One kernel x fixture x profile: the argument of a contract's functions.

    A profile's ``generate`` gets it without arrays; every other function gets it complete.
    """

    contract: Contract
    """The contract. Example: ``case.contract.buffer("y")``"""

    fixture: str
    """The fixture's name. Example: ``case.fixture``"""

    profile: str
    """The profile's name. Example: ``case.profile``"""

    symbols: Mapping[str, Any]
    """The fixture's values, resolved: int, float, or a tuple of ints. Example: ``case.symbols["rows"]``"""

    plan: Mapping[str, int] = field(default_factory=dict)
    """The launcher's decisions for these symbols; empty without a plan. Example: ``case.plan``"""

    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Storage arrays by buffer, with its view's shape and its format's storage type (``uint16`` for bf16).
    Elements outside the live mask are undefined and never reach a device.
    Example: ``case.arrays["x"]``"""

    sparse: bool = False
    """The allocations are too large to fill entirely: only live runs and their surroundings are filled.
    Example: ``case.sparse``"""

    fill: str = "nan"
    """The fill of dead bytes in the run that a hypothesis is tested against: ``nan`` or ``zero``.
    Example: ``case.fill``"""

    @property
    def id(self) -> str:
        """``kernel/fixture/profile``, the name used in reports and on the command line."""
        return f"{self.contract.name}/{self.fixture}/{self.profile}"

    @cached_property
    def values(self) -> dict[str, Any]:
        """Symbols and plan values together: the names that expressions may use."""
        return {**self.symbols, **self.plan}

    @cached_property
    def reference(self) -> Mapping[str, np.ndarray]:
        """The result of the contract's reference for this case, by quantity, computed once."""
        return self.contract.reference(self)

    def __getitem__(self, name: str) -> Any:
        """The value of a symbol or plan field."""
        return self.values[name]

    def evaluate(self, expression: int | float | str) -> Any:
        """Evaluate an expression over this case's symbols and plan. Raises ExpressionError."""
        return evaluate(expression, self.values)

    def dtype(self, buffer: Buffer) -> str:
        """Element type of a buffer, a key of FORMATS.

        An index out of range, which occurs only in bad input that must be rejected, gives the last choice.
        """
        if isinstance(buffer.dtype, str):
            return buffer.dtype
        choices = buffer.dtype.choices
        return choices[min(max(int(self[buffer.dtype.symbol]), 0), len(choices) - 1)]

    def given(self, name: str) -> bool:
        """Whether the kernel gets that buffer rather than a null pointer: see ``Buffer.given``."""
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
        """One of a buffer's masks over its view; all False where the buffer is not given.

        Raises ReturnedError for a mask that does not broadcast to the view.
        """
        shape, function = self.shape(buffer), getattr(buffer, field)
        if not self.given(buffer.name):
            return np.broadcast_to(np.zeros(1, bool), shape)
        if function is None:
            return np.broadcast_to(np.ones(1, bool), shape)
        return array(function(self), bool, f"{self.contract.file}: {buffer.name}: {field}: {self.id}", shape)

    def f64(self, name: str) -> np.ndarray:
        """Float64 values of an input over its view; NaN outside the live mask, which exposes a reference that
        reads a dead element. Raises LookupError for a buffer that is not given."""
        buffer = self.contract.buffer(name)
        decoded = decode(self.dtype(buffer), self.raw(name)).astype(np.float64)
        mask = self.live(name)
        return decoded if mask.all() else np.where(mask, decoded, np.nan)

    def raw(self, name: str) -> np.ndarray:
        """Storage array of an input over its view (integers for ``i32``, bit patterns for floats).
        Raises LookupError for a buffer that is not given."""
        if not self.given(name):
            raise LookupError(f"{self.id}: {name} is a null pointer here: check case.given({name!r}) first")
        return self.arrays[name]

"""A run: one execution of a case by the harness, with the fills and the mode that a check asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from verify.contract.model import Case

Fill = Literal["nan", "inf", "huge", "stale", "zero"]
FILLS: tuple[Fill, ...] = get_args(Fill)

Mode = Literal[
    "once",
    "live-only",
    "repeat",
    "many-calls",
    "second-call",
    "graph",
    "late-producer",
    "two-streams",
    "two-threads",
    "refuse",
]


@dataclass(frozen=True)
class Fills:
    """What the bytes hold that a right kernel never depends on.

    dead: dead elements and padding of inputs. workspace, output: prior contents. shared: what a pre-kernel
    leaves in the shared memory of every SM; None leaves it alone.
    nan is a quiet NaN of the element's format, inf its infinity (the largest value where it has none), huge
    its largest finite value, stale a plausible value hashed from the element's index.
    """

    dead: Fill = "nan"
    workspace: Fill = "nan"
    output: Fill = "nan"
    shared: Fill | None = "nan"


@dataclass(frozen=True)
class Run:
    """One execution. id is unique in its pack and safe as a file name.

    mode:
      once           fill, upload, launch, synchronise, read back.
      live-only      nothing is written but the live elements (initcheck: a fill would count as a write).
      repeat         ``repeats`` launches from the same inputs under load; outputs compared bit for bit.
      many-calls     ``repeats`` launches on the same workspace and outputs, until one gives other bits than
                     the first; what is input and output at once is filled again before each.
      second-call    launches twice on the same workspace and outputs; what is input and output at once is
                     filled again between them, nothing else; reads the second.
      graph          captures the call on ``captured``'s data, uploads this case's data, replays, reads.
      late-producer  inputs are written by a kernel on the same stream that sleeps first.
      two-streams    the call runs on two streams at once with separate buffers; both are read and compared.
      two-threads    the same from two host threads, one in the entry while the other is about to launch.
      refuse         calls with the refusal's bad argument; expects an error, no launch, outputs untouched.
    keep_differing: outputs of calls that differ from the first are kept, for a contract that allows drift.
    null, misalign, shrink: the refusal's changes to the arguments, by buffer name.
    """

    id: str
    case: Case
    mode: Mode = "once"
    fills: Fills = field(default_factory=Fills)
    repeats: int = 1
    captured: Case | None = None
    keep_differing: bool = False
    null: tuple[str, ...] = ()
    misalign: tuple[tuple[str, int], ...] = ()
    shrink: tuple[tuple[str, int], ...] = ()

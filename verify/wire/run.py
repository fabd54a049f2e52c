"""A run: one execution of a case by the harness, with the fills and the mode that a check requests."""

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
    """The contents of bytes on which a correct kernel never depends.

    dead: dead elements and padding of inputs. workspace, output: prior contents. shared: what a preceding
    kernel leaves in the shared memory of every SM; None: no such kernel runs.
    nan is a quiet NaN of the element's format, inf its infinity (its largest value if it has none), huge its
    largest finite value, stale a plausible value chosen by a hash of the element's index.
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
      live-only      only the live elements are written (initcheck: a fill would count as a write).
      repeat         ``repeats`` launches from the same inputs under load; outputs compared bit for bit.
      many-calls     ``repeats`` launches on the same workspace and outputs, until one differs from the
                     first; inout buffers are filled again before each.
      second-call    launches twice on the same workspace and outputs, first with ``captured``'s
                     inputs if given, which are then replaced; reads back the second's outputs.
      graph          captures the call on ``captured``'s data, uploads this case's data, replays, reads back.
      late-producer  inputs are written by a kernel on the same stream, after a delay.
      two-streams    the call runs on two streams concurrently, ``repeats`` times, with separate buffers, the
                     second's with ``captured``'s data if given; each round must give the same outputs.
      two-threads    the same from two host threads, one inside the entry while the other is about to launch.
      refuse         calls with the refusal's bad argument; expects an error, no launch, unchanged outputs.
    keep_differing: keep outputs of calls that differ from the first, for a contract that allows drift.
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

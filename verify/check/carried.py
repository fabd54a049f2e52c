"""State that a kernel carries from call to call: a tool reports a sequence of runs, and none of them alone.

A counter in a ``__device__`` variable, a static pointer in the launcher: the call that shows the fault needs
those before it. The shortest beginning of the sequence that is still reported ends with that call, and is
found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from verify.device.interface import ToolRecord
from verify.wire.run import Run

MOST_SEARCHES = 3
"""Records of one tool whose call is looked for; each search runs a tool some seven times."""

CALLS_BEFORE = "after"
"""The detail of a finding that says how many calls it takes to show it; reproductions repeat them all."""


@dataclass(frozen=True)
class Carried:
    """A record that needs the calls before it. run: the one that shows it. before: how many come before."""

    run: Run
    record: ToolRecord
    before: int

    @property
    def detail(self) -> tuple[str, str]:
        """For the finding."""
        calls = "1 call" if self.before == 1 else f"{self.before} calls"
        return (
            CALLS_BEFORE,
            f"{calls} before it in the same process, and silent without: unless the schedule decides, the "
            "kernel keeps something from call to call, as in a __device__ variable or in a static variable",
        )


def record_key(record: ToolRecord) -> str:
    """What makes two records the same fault, wherever they were seen."""
    return record.function or record.kind


def find_carried(
    runs: Sequence[Run], records_of: Callable[[int], Sequence[ToolRecord]], key: str
) -> Carried | None:
    """The run with which a record first shows; None when the sequence, run again, does not show it.

    records_of: what a tool reports over the first ``n`` runs in one process. No run alone reports it.
    """

    if len(runs) < 2:
        return None

    def shown(count: int) -> ToolRecord | None:
        return next((r for r in records_of(count) if record_key(r) == key), None)

    silent, reported, seen = 1, len(runs), None
    while reported - silent > 1:
        middle = (silent + reported) // 2
        if (record := shown(middle)) is not None:
            reported, seen = middle, record
        else:
            silent = middle
    seen = seen or shown(reported)
    return Carried(runs[reported - 1], seen, reported - 1) if seen is not None else None

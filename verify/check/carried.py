"""Finds faults caused by state that persists between calls: a tool reports the sequence, but no run alone.

With a counter in a ``__device__`` variable or a static pointer in the launcher, the faulty call needs the
preceding ones. The shortest prefix of the sequence that is still reported ends with that call, and is found
by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from verify.device.interface import ToolRecord
from verify.wire.run import Run

MOST_SEARCHES = 3
"""Records per tool for which the call is searched; each search runs the tool about seven times."""

CALLS_BEFORE = "after"
"""Name of the detail with the number of calls needed to reproduce; reproductions repeat them all."""


@dataclass(frozen=True)
class Carried:
    """A record that needs preceding calls. run: the run that shows it. before: the number of calls before."""

    run: Run
    record: ToolRecord
    before: int

    @property
    def detail(self) -> tuple[str, str]:
        """For the finding."""
        calls = "1 call" if self.before == 1 else f"{self.before} calls"
        return (
            CALLS_BEFORE,
            f"{calls} before it in the same process, and not reported without: unless it depends on the "
            "schedule, the kernel keeps state between calls, as in a __device__ or static variable",
        )


def record_key(record: ToolRecord) -> str:
    """The key by which two records are the same fault."""
    return record.function or record.kind


def find_carried(
    runs: Sequence[Run], records_of: Callable[[int], Sequence[ToolRecord]], key: str
) -> Carried | None:
    """The first run at which a record appears; None if it does not appear when the sequence is repeated.

    records_of: the tool's records for the first ``n`` runs in one process. No single run has the record.
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

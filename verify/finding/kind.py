"""The kinds of fault that the suite's own checks report, each with its family.

A finding of a checking tool keeps the tool's own name for its kind, which is none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum


class Family(Enum):
    """What a fault is about. One fault in a kernel often appears as several kinds of one family."""

    OUTPUTS = "wrong outputs"
    READS = "wrong reads"
    WRITES = "wrong writes"
    PLAN = "wrong plan"
    END = "does not end properly"
    REFUSAL = "bad input not refused"
    ERRORS = "errors not reported"
    MEMORY = "memory kept"
    ORACLE = "another implementation disagrees"


class FaultKind(StrEnum):
    """A short stable name, as used in findings, JSON and suppressions."""

    family: Family

    def __new__(cls, words: str, family: Family) -> FaultKind:
        """Create the member named ``words``."""
        member = str.__new__(cls, words)
        member._value_ = words
        member.family = family
        return member

    OUTSIDE_BOUND = "outside the bound", Family.OUTPUTS
    NOT_BIT_EQUAL = "not bit-equal", Family.OUTPUTS
    WRONG_NAN = "NaN where none belongs", Family.OUTPUTS
    MISSING_NAN = "no NaN where one belongs", Family.OUTPUTS
    UNWRITTEN = "unwritten output", Family.OUTPUTS
    DEAD_BYTES = "output depends on dead bytes", Family.OUTPUTS
    BATCH = "row depends on its batch", Family.OUTPUTS
    SCHEDULE = "depends on the schedule", Family.OUTPUTS
    NOT_REPEATABLE = "not repeatable", Family.OUTPUTS
    CALLS = "depends on the number of calls", Family.OUTPUTS
    STREAMS = "streams disturb each other", Family.OUTPUTS
    THREADS = "threads disturb each other", Family.OUTPUTS

    DEAD_ROW = "dead row read", Family.READS
    ROW_READS = "row not read as often as promised", Family.READS
    PADDING = "padding read", Family.READS

    WRITE_OUTSIDE = "write outside the promised bytes", Family.WRITES

    SPLITS = "split boundaries do not cover the band", Family.PLAN
    PLAN_FIELD = "plan field not as promised", Family.PLAN

    HANG = "hang", Family.END
    FAULT = "fault", Family.END
    HANG_ON_BAD_INPUT = "hang on bad input", Family.END
    FAULT_ON_BAD_INPUT = "fault on bad input", Family.END

    ACCEPTED = "bad input accepted", Family.REFUSAL
    OTHER_ERROR = "bad input refused by another error", Family.REFUSAL
    LAUNCHED = "launched on bad input", Family.REFUSAL
    WROTE = "wrote on bad input", Family.REFUSAL

    SWALLOWED = "launch error swallowed", Family.ERRORS
    NO_RECOVERY = "no recovery after an error", Family.ERRORS
    FAULT_AFTER_ERROR = "fault after a failed call", Family.ERRORS

    MEMORY_KEPT = "device memory kept", Family.MEMORY

    DISAGREES = "disagrees with", Family.ORACLE
    """Followed by the oracle's name."""
    OTHER_TOKEN = "another token", Family.ORACLE


HANGS = (FaultKind.HANG, FaultKind.HANG_ON_BAD_INPUT)
_FAMILIES: Mapping[str, Family] = {kind.value: kind.family for kind in FaultKind}


def family_of_kind(kind: str) -> Family | None:
    """The family of a finding's kind; None for a tool's own name."""
    if kind.startswith(f"{FaultKind.DISAGREES} "):
        return Family.ORACLE
    return _FAMILIES.get(kind)

"""A mutant: a kernel with one planted fault, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from verify.mutation.kinds import Kind

DEVICES = ("gpu", "cpu")


class Origin(StrEnum):
    """Where a mutant comes from."""

    CATALOGUE = "catalogue"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Mutant:
    """One planted fault.

    kernel: the contract's name. name: unique in its kernel. fault: a sentence. source: the whole changed
    source. line: 1-based, of the first change. device_only: only bodies of device functions differ, so that
    the host code is the original's. checks: every check that must report it, on every device; gpu, cpu:
    further ones on that device. devices: where it can be seen at all. finding: what a finding of one of the
    checks must be called, empty for any. equivalent: why it is no fault, empty where it is one. public:
    reports of the same fault elsewhere.
    """

    kernel: str
    name: str
    kind: Kind
    fault: str
    source: str
    line: int
    origin: Origin
    device_only: bool = False
    checks: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    devices: tuple[str, ...] = DEVICES
    finding: str = ""
    equivalent: str = ""
    public: tuple[str, ...] = ()

    def expected(self, device: str) -> tuple[str, ...]:
        """The checks that must report it on a device, empty where it cannot be seen or none is named."""
        if device not in self.devices:
            return ()
        return (*self.checks, *(self.gpu if device == "gpu" else self.cpu))


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNDECIDED = "undecided"
    """No check reported it, and not all could be asked: the gate would not pass it, but for no fault of
    its."""
    TIMED_OUT = "timed out"
    """It did not end, and nothing else was reported of it."""
    NOT_COMPILED = "not compiled"
    EQUIVALENT = "equivalent"
    """Its device code and its host code are the original's."""
    EXPLAINED = "equivalent by reasoning"
    NOT_VISIBLE = "not visible here"
    """Only another device can show it."""


@dataclass(frozen=True)
class Kill:
    """The first finding of one check. fixture: that it came on, with the data profile."""

    check: str
    finding: str
    fixture: str
    seen: str
    architecture: str


@dataclass(frozen=True)
class Result:
    """One mutant's end.

    kills: by check, in the order in which they came. silent: checks that had to report it and did not; known
    only where all checks were asked. caught: by rule of comparison of the field, whether it would have
    reported the same outputs; empty where compare's outputs are not there. reason: why it is undecided or not
    compiled.
    """

    kernel: str
    name: str
    fate: Fate
    kills: tuple[Kill, ...] = ()
    silent: tuple[str, ...] = ()
    caught: Mapping[str, bool] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0

    @property
    def killers(self) -> tuple[str, ...]:
        """The checks that reported it, the first one first."""
        return tuple(k.check for k in self.kills)

    def as_json(self) -> dict[str, Any]:
        """For a program, and for the journal."""
        return {
            "kernel": self.kernel,
            "mutant": self.name,
            "fate": str(self.fate),
            "kills": [vars(k) for k in self.kills],
            "silent": list(self.silent),
            "caught": dict(self.caught),
            "reason": self.reason,
            "seconds": round(self.seconds, 2),
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Result:
        """What :meth:`as_json` has made. Raises KeyError, TypeError or ValueError for anything else."""
        return cls(
            row["kernel"],
            row["mutant"],
            Fate(row["fate"]),
            tuple(Kill(**k) for k in row["kills"]),
            tuple(row["silent"]),
            dict(row["caught"]),
            row["reason"],
            float(row["seconds"]),
        )


def named_twice(mutants: Sequence[Mutant]) -> list[str]:
    """Names that two mutants of one kernel have."""
    names = [(m.kernel, m.name) for m in mutants]
    return sorted({f"{kernel} {name}" for kernel, name in names if names.count((kernel, name)) > 1})

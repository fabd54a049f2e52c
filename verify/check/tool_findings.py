"""Findings from the records of a checking tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verify.check.place import place_of
from verify.check.showing import SCHEDULE
from verify.check.subject import Subject
from verify.device.interface import Tool, ToolRecord
from verify.finding.finding import Finding, Severity
from verify.wire.run import Run

SANITIZER = "compute-sanitizer"
"""The key of the tools' version among a device's versions; the CPU device has none."""

_DEAD = "the contract declares these bytes dead: an element outside live=, or padding between rows"
PROMISED: Mapping[Tool, str] = {
    "memcheck": "no byte outside a buffer is accessed; under the strict rule no dead byte either",
    "initcheck": "nothing depends on unwritten memory",
    "racecheck": "two threads access the same byte, one of them writing, only with a barrier in between",
    "synccheck": "every thread that a barrier or mask includes reaches it",
}


def distinct_faults(records: Iterable[ToolRecord]) -> list[ToolRecord]:
    """The records without those that follow from others.

    A racecheck analysis record sums up hazard records, so it is dropped if there is one at its line. A failed
    CUDA call after an invalid access is a consequence of that access.
    """
    listed = list(records)
    hazards = {r.source for r in listed if "hazard" in r.kind}
    located = any(r.source is not None for r in listed)
    return [
        r
        for r in listed
        if not (r.kind == "race" and r.source in hazards)
        and not (located and r.source is None and "CUDA API call" in r.kind)
    ]


def record_finding(
    subject: Subject,
    tool: Tool,
    fixture: str | None,
    run: Run,
    record: ToolRecord,
    bases: Mapping[str, int],
    seed: int,
    *more: tuple[str, str],
) -> Finding:
    """fixture: the one that reproduces it, None if all are needed. bases: the run's buffer addresses."""
    where = f"thread {record.thread} of block {record.block}" if record.block and record.thread else ""
    called = [("called at", ", from ".join(map(str, record.inlined_at)))] if record.inlined_at else []
    scheduled = [(SCHEDULE, str(seed))] if seed else []
    details = [
        *more,
        *scheduled,
        *called,
        *((f"access {number}", text) for number, text in enumerate(record.accesses, 1)),
    ]
    if record.address:
        details.append(("address", place_of(run.case, bases, record.address) or record.address))
    chosen = f" -k {fixture}" if fixture else ""
    if version := subject.device.info().versions.get(SANITIZER):
        details.append(("tool", f"{SANITIZER} {version}"))
    return Finding(
        tool,
        subject.contract.name,
        run.case.id,
        record.kind,
        _DEAD if "no registered live region" in record.message else record.message,
        PROMISED[tool],
        severity=Severity(record.severity),
        source=record.source,
        function=record.function,
        where=where,
        repeat=(
            f"python -m verify sanitize --tool {tool} {subject.argument}{chosen} "
            f"--device {subject.device.name}{f' --seeds {seed + 1}' if seed else ''}"
        ),
        details=tuple(details),
    )

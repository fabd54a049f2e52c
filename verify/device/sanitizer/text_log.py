"""compute-sanitizer's text log: the summary line, and records with what the XML lacks (level, remark).

Format: the manual's chapters "Understanding ... reports". A record is a head line with indented ones below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from verify.device.interface import Tool, ToolRecord
from verify.device.sanitizer.log import Access, Frame, blamed, race_record
from verify.finding.finding import Severity

PREFIX = "========="

_ERROR_SUMMARY = re.compile(r"^ERROR SUMMARY: ([\d,]+) errors?")
_RACE_SUMMARY = re.compile(
    r"^RACECHECK SUMMARY: [\d,]+ hazards? displayed \(([\d,]+) errors?, ([\d,]+) warnings?\)"
)
_NOT_A_RECORD = re.compile(r"^(COMPUTE-SANITIZER|(ERROR|RACECHECK|LEAK) SUMMARY:|Info:)")
_CUT = re.compile(r"errors were not printed")
_NOTE = re.compile(
    r"process didn't terminate|Target application|Internal Sanitizer Error|No attachable process"
    r"|Detected overflow of tracked|[Uu]nable to|not supported|[Ff]ailed to|[Tt]imed? ?out"
)
_LEVEL = re.compile(r"^(ERROR|Error|WARNING|Warning):\s*")
_WARP_LEVEL = re.compile(r"^\(Warp Level Programming\)\s*")
_THREAD = re.compile(r"^by thread (\(\d+,\d+,\d+\)) in block (\(\d+,\d+,\d+\))")
_ADDRESS = re.compile(r"^(?:Address|Access to) (0x[0-9a-fA-F]+)")
_HAZARD = re.compile(
    r"^Potential (\w+) hazard detected(?: \((.+)\))? at __shared__ (0x[0-9a-fA-F]+)"
    r" in block (\(\d+,\d+,\d+\))"
)
_HAZARD_ACCESS = re.compile(r"^(\w+) Thread (\(\d+,\d+,\d+\)) at (.+)$")
_RACE = re.compile(r"^Race reported between (\w+) access at (.+)$")
_RACE_OTHER = re.compile(r"^and (\w+) access at (.+?)(?: \[([\d,]+) hazards?\])?$")
_DEVICE_FRAME = re.compile(r"^Device Frame: ?(.+)$")


@dataclass(frozen=True)
class TextSummary:
    """The lines of a log that are not records. errors, warnings: None without a summary line.

    notes: lines about the run itself ("process didn't terminate successfully"), each a reason for doubt.
    """

    summary: str = ""
    errors: int | None = None
    warnings: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextRecord:
    """One record, and its level according to the tool (the record's own severity may be higher)."""

    level: Severity
    record: ToolRecord


@dataclass
class _Block:
    head: str
    lines: list[str] = field(default_factory=list)


def text_summary(path: Path) -> TextSummary:
    """Summary line and notes of a log. Lines without the prefix, the program's own, are skipped."""
    summary, errors, warnings = "", None, None
    notes: list[str] = []
    for block in _blocks(path):
        if _CUT.search(block.head):
            continue
        if found := _ERROR_SUMMARY.match(block.head):
            summary, errors, warnings = block.head, _number(found[1]), 0
        elif found := _RACE_SUMMARY.match(block.head):
            summary, errors, warnings = block.head, _number(found[1]), _number(found[2])
        elif _NOTE.search(block.head):
            notes.append(block.head)
    return TextSummary(summary, errors, warnings, tuple(notes))


def text_records(tool: Tool, path: Path) -> Iterator[TextRecord]:
    """The records of a log, one by one, in order."""
    for block in _blocks(path):
        head = block.head
        if _NOT_A_RECORD.match(head) or _NOTE.search(head):
            continue
        found = _LEVEL.match(head)
        warning = found is not None and found[1].lower() == "warning"
        level = Severity.WARNING if warning else Severity.ERROR
        yield TextRecord(level, _record(tool, _LEVEL.sub("", head), level, block.lines))


def _blocks(path: Path) -> Iterator[_Block]:
    """Head lines with the indented lines that belong to each."""
    block: _Block | None = None
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if not line.startswith(PREFIX):
                continue
            body = line[len(PREFIX) :]
            if body.startswith("    ") and block is not None:
                block.lines.append(body.strip())
                continue
            if block is not None:
                yield block
            block = _Block(body.strip()) if body.strip() else None
    if block is not None:
        yield block


def _record(tool: Tool, head: str, severity: Severity, lines: list[str]) -> ToolRecord:
    if _WARP_LEVEL.match(head):
        # The tool only warns, but since Volta the threads of a warp are not ordered.
        head, severity = _WARP_LEVEL.sub("", head), Severity.ERROR
    if found := _RACE.match(head):
        return _race(tool, severity, found, lines)
    if found := _HAZARD.match(head):
        return _hazard(tool, severity, found, lines)
    frames: list[Frame] = []
    thread = block = address = ""
    kind = head.rstrip(".").replace("Barrier error detected. ", "Barrier error: ")
    details: list[str] = []
    for line in lines:
        if found := _THREAD.match(line):
            thread, block = found[1], found[2]
        elif line.startswith("at "):
            frames.append(Frame.parse(line[3:]))
        elif found := _DEVICE_FRAME.match(line):
            frames.append(Frame.parse(found[1]))
        elif not line.startswith(("Saved host backtrace", "Host Frame")):
            address = address or (found[1] if (found := _ADDRESS.match(line)) else "")
            details.append(line)
    place = blamed(frames)
    return ToolRecord(
        tool,
        kind,
        "; ".join([kind, *details]),
        severity,
        place.function if place else None,
        place.source if place else None,
        thread,
        block,
        address,
        tuple(map(str, frames)) if len(frames) > 1 else (),
    )


def _race(tool: Tool, severity: Severity, head: re.Match[str], lines: list[str]) -> ToolRecord:
    """An analysis record: the first access, and the others with their counts of hazards."""
    accesses = [Access(head[1], (Frame.parse(head[2]),))]
    hazards = 0
    for line in lines:
        if found := _RACE_OTHER.match(line):
            accesses.append(Access(found[1], (Frame.parse(found[2]),)))
            hazards += _number(found[3] or "1")
    return race_record(tool, severity, "race", accesses, f"{hazards} hazards")


def _hazard(tool: Tool, severity: Severity, head: re.Match[str], lines: list[str]) -> ToolRecord:
    """A hazard record: two threads, the earlier access first, each with its device frames below it."""
    accesses: list[Access] = []
    values = ""
    for line in lines:
        if found := _HAZARD_ACCESS.match(line):
            accesses.append(Access(found[1], (Frame.parse(found[3]),), found[2]))
        elif (found := _DEVICE_FRAME.match(line)) and accesses:
            last = accesses[-1]
            accesses[-1] = Access(last.direction, (*last.frames, Frame.parse(found[1])), last.thread)
        elif line.startswith("Current Value"):
            values = line
    kind = f"{head[1]} hazard" + (f" ({head[2]})" if head[2] else "")
    return race_record(tool, severity, kind, accesses, values, block=head[4], address=head[3])


def _number(text: str) -> int:
    return int(text.replace(",", ""))

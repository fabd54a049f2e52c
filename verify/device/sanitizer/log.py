"""The contents of a compute-sanitizer log, independent of the format that it was read from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from verify.device.interface import Tool, ToolRecord
from verify.finding.finding import Severity, SourceLine

TOOLKIT_PATH = re.compile(r"/(?:include|cccl|targets)/|\.hpp$")
"""Headers of the toolkit: a frame there locates the instruction, but the caller is to blame."""

_LOCATION = re.compile(
    r"^(?P<function>.+?)(?:\+(?P<offset>0x[0-9a-fA-F]+))?(?: in (?P<file>.+):(?P<line>\d+))?$"
)


@dataclass(frozen=True)
class Frame:
    """One location in the code: the function, and the source line if the build has line information."""

    function: str
    source: SourceLine | None = None

    def __str__(self) -> str:
        return f"{self.function} in {self.source}" if self.source else self.function

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(text: str) -> Frame:
        """From ``void ns::kernel<float>(int *)+0x90 in file.cu:41``: function ``kernel``, line 41."""
        found = _LOCATION.match(text.strip())
        if found is None:
            return Frame(text.strip())
        source = SourceLine(found["file"], int(found["line"])) if found["file"] else None
        return Frame(bare_name(found["function"].strip()), source)


@dataclass(frozen=True)
class Access:
    """One access of a race: direction ("Write"), frames, innermost first, and thread if known."""

    direction: str
    frames: tuple[Frame, ...]
    thread: str = ""

    def __str__(self) -> str:
        who = f" by thread {self.thread}" if self.thread else ""
        return f"{self.direction}{who} at {blamed(self.frames)}"


@dataclass(frozen=True)
class SanitizerLog:
    """The content of one log.

    errors, warnings: according to the tool's summary line; None without a summary.
    seen: the number of records of (error, warning) level, to compare with the summary.
    notes: lines about the run itself ("process didn't terminate successfully"), each a reason for doubt.
    """

    records: tuple[ToolRecord, ...]
    summary: str = ""
    errors: int | None = None
    warnings: int | None = None
    seen: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()


def bare_name(demangled: str) -> str:
    """``kernel`` of ``void ns::kernel<float, (int)64>(const T1 *)``, or the text itself."""
    text = demangled.replace("<unnamed>", "unnamed").replace("(anonymous namespace)", "unnamed")
    depth, kept = 0, ""
    for letter in text:
        if letter == "(" and depth == 0:
            break
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and letter != ">":
            kept += letter
    words = re.split(r"::|\s+", kept.strip())
    return words[-1] or demangled


def blamed(frames: Iterable[Frame]) -> Frame | None:
    """The innermost frame that is not in a header of the toolkit; the innermost one if all are."""
    listed = list(frames)
    own = [f for f in listed if f.source is not None and not TOOLKIT_PATH.search(f.source.file)]
    return own[0] if own else listed[0] if listed else None


def race_record(
    tool: Tool,
    severity: Severity,
    kind: str,
    accesses: Sequence[Access],
    remark: str = "",
    block: str = "",
    address: str = "",
) -> ToolRecord:
    """A record of two or more accesses, located at the last one, which lacks the ordering."""
    place = blamed(frame for access in reversed(accesses) for frame in access.frames)
    where = f" on shared memory {address} in block {block}" if address else ""
    message = f"{kind}{where}: {' and '.join(map(str, accesses))}"
    return ToolRecord(
        tool,
        kind,
        f"{message}; {remark}" if remark else message,
        severity,
        place.function if place else None,
        place.source if place else None,
        accesses[-1].thread if accesses else "",
        block,
        address,
        tuple(map(str, accesses)),
    )


def collapse(records: Iterable[ToolRecord]) -> tuple[ToolRecord, ...]:
    """One record for each distinct fault (kind, location, both locations of a race), with their number."""
    first: dict[object, ToolRecord] = {}
    count: dict[object, int] = {}
    for record in records:
        places = tuple(re.sub(r" by thread \(\d+,\d+,\d+\)", "", access) for access in record.accesses)
        key = (record.tool, record.kind, record.severity, record.function, record.source, places, record.run)
        first.setdefault(key, record)
        count[key] = count.get(key, 0) + 1
    return tuple(_with_count(record, count[key]) for key, record in first.items())


def _with_count(record: ToolRecord, count: int) -> ToolRecord:
    return record if count == 1 else replace(record, message=f"{record.message} ({count} such records)")

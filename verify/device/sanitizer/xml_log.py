"""Reads compute-sanitizer's XML log (``--xml --save``).

Its locations are unambiguous, but it has less than the text: no level and no remark on hazard records.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from verify.device.interface import Tool, ToolRecord
from verify.device.sanitizer.log import Access, Frame, blamed, race_record
from verify.finding.finding import Severity, SourceLine


def xml_records(tool: Tool, path: Path) -> Iterator[ToolRecord]:
    """The records of a log, read and released one by one. Raises ValueError if the file is not such a log.

    One missing barrier can mean many thousand hazards, so the whole tree is never in memory.
    """
    root: ET.Element | None = None
    try:
        for event, element in ET.iterparse(path, events=("start", "end")):
            if root is None:
                root = element
                if element.tag != "ComputeSanitizerOutput":
                    raise ValueError(f"{path.name}: not a compute-sanitizer log: its root is {element.tag}")
            elif event == "end" and element.tag == "record":
                yield _record(tool, element)
                root.clear()
    except ET.ParseError as problem:
        raise ValueError(f"{path.name}: not a complete compute-sanitizer log: {problem}") from None


def _record(tool: Tool, element: ET.Element) -> ToolRecord:
    severity = Severity.WARNING if _text(element, "level").lower() == "warning" else Severity.ERROR
    kind = _text(element, "kind")
    if kind == "Hazard":
        return _hazard(tool, severity, element)
    if kind == "Analysis":
        return _race(tool, severity, element)
    frames = _frames(element)
    place = blamed(frames)
    text = _text(element, "what/text") or _text(element, "what/exception") or kind
    if detail := _text(element, "what/type"):
        text = f"{text}: {detail}"
    return ToolRecord(
        tool,
        text,
        text,
        severity,
        place.function if place else None,
        place.source if place else None,
        _index(element.find("who/threadIdx")),
        _index(element.find("who/blockIdx")),
        _text(element, "what/address"),
        tuple(map(str, frames)) if len(frames) > 1 else (),
    )


def _hazard(tool: Tool, severity: Severity, element: ET.Element) -> ToolRecord:
    threads = [e for e in (element.find("what/thread0"), element.find("what/thread1")) if e is not None]
    accesses = [Access(_text(t, "access"), _frames(t), _index(t.find("threadIdx"))) for t in threads]
    return race_record(
        tool,
        severity,
        f"{_text(element, 'what/common/type')} hazard",
        accesses,
        block=_index(element.find("what/common/blockIdx")),
        address=_text(element, "what/common/address"),
    )


def _race(tool: Tool, severity: Severity, element: ET.Element) -> ToolRecord:
    ends = [*element.findall("what/source"), *element.findall("what/destination")]
    hazards = sum(int(_text(end, "count") or 0) for end in ends)
    accesses = [Access(_text(end, "direction"), _frames(end)) for end in ends]
    return race_record(tool, severity, "race", accesses, f"{hazards} hazards")


def _frames(element: ET.Element) -> tuple[Frame, ...]:
    """Device frames, innermost first: ``where``, then the device stack."""
    return tuple(
        Frame(_text(frame, "func"), _source(frame))
        for frame in [*element.findall("where"), *element.findall("deviceStack/frame")]
    )


def _source(frame: ET.Element) -> SourceLine | None:
    path = _text(frame, "path")
    return SourceLine(path, int(_text(frame, "line") or 0)) if path else None


def _index(element: ET.Element | None) -> str:
    """``(x,y,z)`` of a thread or block index, empty if there is none."""
    if element is None:
        return ""
    return "(" + ",".join(_text(element, axis) or "0" for axis in "xyz") + ")"


def _text(element: ET.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()

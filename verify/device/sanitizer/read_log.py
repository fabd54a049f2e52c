"""Reads the logs of one compute-sanitizer process: text and XML, which have the same records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from verify.device.interface import Tool, ToolRecord
from verify.device.sanitizer.log import SanitizerLog, collapse
from verify.device.sanitizer.text_log import text_records, text_summary
from verify.device.sanitizer.xml_log import xml_records
from verify.finding.finding import Severity


def read_logs(tool: Tool, text: Path, xml: Path) -> SanitizerLog | None:
    """One log from both files; None if the tool wrote no text log, which has the summary line.

    The XML has each record's location, the text its level and remark. If the XML is malformed or has other
    records (a process that crashes leaves it incomplete), only the text is used.
    """
    if not text.is_file():
        return None
    printed = text_summary(text)
    levels: list[Severity] = []
    try:
        records = collapse(_merged(tool, text, xml, levels))
    except ValueError:
        levels.clear()
        records = collapse(_from_text(tool, text, levels))
    seen = (levels.count(Severity.ERROR), levels.count(Severity.WARNING))
    return SanitizerLog(records, printed.summary, printed.errors, printed.warnings, seen, printed.notes)


def _from_text(tool: Tool, text: Path, levels: list[Severity]) -> Iterator[ToolRecord]:
    for entry in text_records(tool, text):
        levels.append(entry.level)
        yield entry.record


def _merged(tool: Tool, text: Path, xml: Path, levels: list[Severity]) -> Iterator[ToolRecord]:
    """Each text record with its location from the XML. Raises ValueError if they do not match."""
    if not xml.is_file():
        raise ValueError(f"{xml.name}: was not written")
    for entry, placed in zip_longest(text_records(tool, text), xml_records(tool, xml)):
        if entry is None or placed is None:
            raise ValueError(f"{xml.name}: has other records than {text.name}")
        levels.append(entry.level)
        yield replace(
            entry.record,
            function=placed.function,
            source=placed.source,
            thread=placed.thread,
            block=placed.block,
            address=placed.address,
            accesses=placed.accesses,
        )

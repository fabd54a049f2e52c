"""Known false alarms as data (``suppressions.toml``): each with its reason and the day it stops to count."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from verify.device.interface import TOOLS, ToolRecord
from verify.device.sanitizer.options import Version

OWN_FILE = Path(__file__).with_name("suppressions.toml")
FILE_NAME = OWN_FILE.name
"""What the file beside a user's contract is called."""

_REQUIRED = {"tool", "kernel", "file", "line", "reason", "expires"}
_OPTIONAL = {"kind", "since", "until"}


class SuppressionError(ValueError):
    """A suppression file that cannot be used: one line that names file, entry and field."""


@dataclass(frozen=True)
class Suppression:
    """One known false alarm.

    kernel, kind: regular expressions, searched in the record's function and kind. file: the end of the source
    path. line: its line, or 0 for all of the file. since, until: first and last tool version that it is for.
    expires: the last day on which it counts; after it, the record is a finding again.
    """

    tool: str
    kernel: str
    file: str
    line: int
    reason: str
    expires: date
    kind: str = ""
    since: Version = (0,)
    until: Version = (9999,)

    def covers(self, record: ToolRecord, version: Version, today: date) -> bool:
        """Whether this record is the known false alarm, for this tool version, today."""
        return (
            record.tool == self.tool
            and today <= self.expires
            and self.since <= version[: len(self.since)]
            and version[: len(self.until)] <= self.until
            and re.search(self.kernel, record.function or "") is not None
            and re.search(self.kind, record.kind) is not None
            and record.source is not None
            and record.source.file.endswith(self.file)
            and self.line in (0, record.source.line)
        )

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        return f"{self.tool} in {self.kernel} at {self.file}{line} until {self.expires}: {self.reason}"


def load_suppressions(*files: Path) -> tuple[Suppression, ...]:
    """All entries of the files that exist, in order. Raises SuppressionError."""
    return tuple(entry for file in files if file.is_file() for entry in _load(file))


def suppressions_of(contract_directory: Path) -> tuple[Suppression, ...]:
    """The entries that hold for a contract: ours, and those beside it. Raises SuppressionError."""
    return load_suppressions(OWN_FILE, contract_directory / FILE_NAME)


def suppression_notes(suppressions: Iterable[Suppression], today: date) -> tuple[str, ...]:
    """One line an entry, for every report; one that has expired says so."""
    return tuple(
        f"{'suppressed' if today <= entry.expires else 'expired suppression'}: {entry}"
        for entry in suppressions
    )


def unsuppressed(
    records: Iterable[ToolRecord], suppressions: Sequence[Suppression], version: Version, today: date
) -> tuple[ToolRecord, ...]:
    """The records that no suppression covers."""
    return tuple(r for r in records if not any(s.covers(r, version, today) for s in suppressions))


def _load(file: Path) -> Iterable[Suppression]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise SuppressionError(f"{file}: {problem}") from None
    for number, entry in enumerate(document.get("suppression", []), 1):
        place = f"{file}: suppression {number}"
        if missing := sorted(_REQUIRED - entry.keys()):
            raise SuppressionError(f"{place}: lacks {', '.join(missing)}")
        if unknown := sorted(entry.keys() - _REQUIRED - _OPTIONAL):
            raise SuppressionError(f"{place}: has no field {', '.join(unknown)}")
        if entry["tool"] not in TOOLS:
            raise SuppressionError(f"{place}: tool: is not one of {', '.join(TOOLS)}")
        if not isinstance(entry["expires"], date):
            raise SuppressionError(f"{place}: expires: must be a date, like 2027-06-30")
        if not isinstance(entry["line"], int) or not entry["reason"].strip():
            raise SuppressionError(f"{place}: line must be an integer and reason a sentence")
        for name in ("kernel", "kind"):
            try:
                re.compile(entry.get(name, ""))
            except re.error as problem:
                raise SuppressionError(f"{place}: {name}: {problem}") from None
        versions = {name: _version(place, name, entry[name]) for name in ("since", "until") if name in entry}
        yield Suppression(**{**entry, **versions})


def _version(place: str, name: str, text: str) -> Version:
    if not re.fullmatch(r"\d+(\.\d+)*", str(text)):
        raise SuppressionError(f"{place}: {name}: must be a version, like 2026.4")
    return tuple(map(int, str(text).split(".")))

"""Suppresses known false alarms listed in ``suppressions.toml``, each with a reason and an expiry date."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from verify.check.matrix import matrix
from verify.device.interface import ToolRecord
from verify.device.sanitizer.options import Version
from verify.finding.finding import Finding, Outcome, Severity, SourceLine, Verdict

OWN_FILE = Path(__file__).with_name("suppressions.toml")
FILE_NAME = OWN_FILE.name
"""The name of the file beside a user's contract."""

_FIRST: Version = (0,)
_LAST: Version = (9999,)
_REQUIRED = {"tool", "kernel", "file", "line", "reason", "expires"}
_OPTIONAL = {"kind", "since", "until"}


class SuppressionError(ValueError):
    """A suppression file cannot be used; one line that names file, entry and field."""


@dataclass(frozen=True)
class Suppression:
    """One known false alarm.

    tool: a check, on any device. kernel, kind: regular expressions, searched in the function and kind of the
    record. file: the end of the source path. line: its line, or 0 for the whole file. since, until: first and
    last compute-sanitizer version to which it applies; with either, it applies to no other device. expires:
    the last day on which it applies; afterwards, the record is a finding again.
    """

    tool: str
    kernel: str
    file: str
    line: int
    reason: str
    expires: date
    kind: str = ""
    since: Version = _FIRST
    until: Version = _LAST

    def covers(self, record: ToolRecord, version: Version | None, today: date) -> bool:
        """Whether the entry suppresses a record today. version: compute-sanitizer's, if it ran."""
        own = (self.tool, "api") if self.tool == "memcheck" else (self.tool,)
        return (
            record.tool in own
            and self.holds(version, today)
            and record.source is not None
            and self._names(record.function or "", record.kind, record.source)
        )

    def covers_finding(self, finding: Finding, production: Path, today: date) -> bool:
        """Whether the entry suppresses a finding of a check without a tool; most of these have no line."""
        return (
            finding.check == self.tool
            and self.holds(None, today)
            and self._names(
                finding.function or finding.kernel,
                finding.kind,
                finding.source or SourceLine(str(production), 0),
            )
        )

    def holds(self, version: Version | None, today: date) -> bool:
        """Whether the entry applies to a version of compute-sanitizer, or (None) to a device without one."""
        if version is None:
            return today <= self.expires and (self.since, self.until) == (_FIRST, _LAST)
        return (
            today <= self.expires
            and self.since <= version[: len(self.since)]
            and version[: len(self.until)] <= self.until
        )

    def _names(self, function: str, kind: str, source: SourceLine) -> bool:
        return (
            re.search(self.kernel, function) is not None
            and re.search(self.kind, kind) is not None
            and source.file.endswith(self.file)
            and self.line in (0, source.line)
        )

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        return f"{self.tool} in {self.kernel} at {self.file}{line} until {self.expires}: {self.reason}"


def load_suppressions(*files: Path) -> tuple[Suppression, ...]:
    """All entries of the files that exist, in order. Raises SuppressionError."""
    return tuple(entry for file in files if file.is_file() for entry in _load(file))


def suppressions_of(contract_directory: Path) -> tuple[Suppression, ...]:
    """The entries that apply to a contract: ours, and those beside it. Raises SuppressionError."""
    return load_suppressions(OWN_FILE, contract_directory / FILE_NAME)


def suppression_notes(
    suppressions: Iterable[Suppression], today: date, outcomes: Sequence[Outcome] = ()
) -> tuple[str, ...]:
    """One line per entry, for every report: in force, expired, or unused although its check ran."""
    used = {text for outcome in outcomes for text in outcome.suppressed}
    ran = {o.check for o in outcomes if o.verdict is not Verdict.NOT_RUN}

    def note(entry: Suppression) -> str:
        if today > entry.expires:
            return f"expired suppression: {entry}"
        if entry.tool in ran and str(entry) not in used:
            return f"suppression that matched nothing: {entry}"
        return f"suppressed: {entry}"

    return tuple(map(note, suppressions))


def unsuppressed(
    records: Iterable[ToolRecord],
    suppressions: Sequence[Suppression],
    version: Version | None,
    today: date,
    used: set[str] | None = None,
) -> tuple[ToolRecord, ...]:
    """The records that no suppression covers. used: gets the entries that covered one."""
    kept = []
    for record in records:
        covering = [str(s) for s in suppressions if s.covers(record, version, today)]
        if used is not None:
            used.update(covering)
        if not covering:
            kept.append(record)
    return tuple(kept)


def without_suppressed(
    outcome: Outcome, suppressions: Sequence[Suppression], production: Path, today: date, strict: bool
) -> Outcome:
    """The outcome of a check without a tool, minus suppressed findings."""
    covering = {
        finding: [str(s) for s in suppressions if s.covers_finding(finding, production, today)]
        for finding in outcome.findings
    }
    kept = tuple(finding for finding in outcome.findings if not covering[finding])
    if len(kept) == len(outcome.findings):
        return outcome
    bad = any(finding.severity is Severity.ERROR or strict for finding in kept)
    verdict = Verdict.CLEAN if outcome.verdict is Verdict.FINDINGS and not bad else outcome.verdict
    used = tuple(dict.fromkeys(text for texts in covering.values() for text in texts))
    return replace(outcome, verdict=verdict, findings=kept, suppressed=(*outcome.suppressed, *used))


def _load(file: Path) -> Iterable[Suppression]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise SuppressionError(f"{file}: {problem}") from None
    for number, entry in enumerate(document.get("suppression", []), 1):
        place = f"{file}: suppression {number}"
        if missing := sorted(_REQUIRED - entry.keys()):
            raise SuppressionError(f"{place}: missing {', '.join(missing)}")
        if unknown := sorted(entry.keys() - _REQUIRED - _OPTIONAL):
            raise SuppressionError(f"{place}: unknown field {', '.join(unknown)}")
        if entry["tool"] not in matrix():
            raise SuppressionError(f"{place}: tool: is not one of {', '.join(matrix())}")
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

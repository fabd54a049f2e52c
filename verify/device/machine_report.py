"""The CPU device's report as data: one JSON file per process, written by ``machine/report/json.cpp``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from verify.device.interface import ToolRecord
from verify.finding.finding import Severity, SourceLine

Dim3 = tuple[int, int, int]


class ReportError(ValueError):
    """A report cannot be read; one line."""


@dataclass(frozen=True)
class Site:
    """One location of a finding.

    kernel: demangled, "" for the host. source: innermost first, then where it was inlined; empty without
    ``-lineinfo``. ptx: the instruction. thread, block: None if the finding is not about a single thread.
    """

    kernel: str
    host: str
    source: tuple[SourceLine, ...]
    ptx_line: int
    ptx: str
    block: Dim3 | None
    thread: Dim3 | None

    def __str__(self) -> str:
        place = ", inlined at ".join(map(str, self.source)) or (
            f"PTX line {self.ptx_line}" * bool(self.ptx_line)
        )
        where = f" at {place}" if place else ""
        who = f" by thread {_spelled(self.thread)} in block {_spelled(self.block)}" if self.thread else ""
        return f"{self.kernel or self.host or 'the host'}{where}{who}"


@dataclass(frozen=True)
class MachineFinding:
    """One fault. check: memcheck, initcheck, racecheck, synccheck or api. count: occurrences here."""

    check: str
    warning: bool
    kind: str
    message: str
    remedy: str
    address: str
    count: int
    sites: tuple[Site, ...]

    def record(self, run: str | None = None) -> ToolRecord:
        """The finding as a ToolRecord, the type that both devices share."""
        first = self.sites[0] if self.sites else None
        return ToolRecord(
            self.check,
            self.kind,
            "; to mend it: ".join(part for part in (self.message, self.remedy) if part),
            Severity.WARNING if self.warning else Severity.ERROR,
            (first.kernel or None) if first else None,
            first.source[0] if first and first.source else None,
            _spelled(first.thread) if first and first.thread else "",
            _spelled(first.block) if first and first.block else "",
            self.address,
            tuple(str(site) for site in self.sites[1:]),
            run,
            first.source[1:] if first else (),
        )


@dataclass(frozen=True)
class MachineReport:
    """The findings in all processes of one program, and the proof that the checks ran.

    refusal: why nothing could be verified, "" otherwise. cut_short: the signal that killed a process, ""
    otherwise. log_lost: why the text could not be added to the log file, "" otherwise. other_kernels: kernels
    that ran but do not match ``--kernel-name``. work: counters by name (``kernels``,
    ``thread_instructions``, ``bytes_checked``, ...). by_class: warp instructions by class. traffic: one entry
    per launch, as in the JSON, if the traffic tool ran. text: the JSON itself.
    """

    tools: tuple[str, ...]
    architecture: str
    seed: int
    program: str
    refusal: str
    findings: tuple[MachineFinding, ...]
    notes: tuple[str, ...]
    work: Mapping[str, int]
    by_class: Mapping[str, int] = field(default_factory=dict)
    traffic: tuple[Mapping[str, Any], ...] = ()
    text: str = ""
    cut_short: str = ""
    log_lost: str = ""
    other_kernels: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        return sum(not finding.warning for finding in self.findings)

    @property
    def warnings(self) -> int:
        return sum(finding.warning for finding in self.findings)

    @property
    def launches(self) -> int:
        """Launches of kernels that ran to completion."""
        return self.work.get("kernels", 0)

    @property
    def named_launches(self) -> int:
        """Of these, the launches of kernels that match ``--kernel-name``; all without it."""
        return self.work.get("named_kernels", 0)

    @property
    def summary(self) -> str:
        """The line that proves that the checks ran."""
        work = self.work
        return (
            f"{work.get('kernels', 0)} kernels, {work.get('thread_instructions', 0)} thread instructions, "
            f"{work.get('bytes_checked', 0)} bytes checked: {self.errors} errors, {self.warnings} warnings"
        )


def read_report(file: Path) -> MachineReport:
    """Read a report. Raises ReportError, naming the file, if it is not one."""
    text = file.read_text(errors="replace")
    try:
        data = json.loads(text)
        work = {key: value for key, value in data["work"].items() if isinstance(value, int)}
        return MachineReport(
            tuple(data["tools"]),
            data["architecture"],
            data["seed"],
            data["program"],
            data["refused"],
            tuple(_finding(one) for one in data["findings"]),
            tuple(data["notes"]),
            work,
            data["work"].get("by_class", {}),
            tuple(data["traffic"]),
            text,
            data.get("cut_short", ""),
            data.get("log_lost", ""),
            tuple(data.get("other_kernels", ())),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(
            f"{file}: not a report of the CPU device ({type(error).__name__}: {error})"
        ) from None


def merge_reports(reports: Sequence[MachineReport]) -> MachineReport | None:
    """One report for all processes of a program; None if there is none.

    A process that only started others (no kernel, no finding) is ignored.
    """
    worked = [one for one in reports if one.launches or one.findings or one.refusal] or list(reports)
    if not worked:
        return None
    if len(worked) == 1:
        return worked[0]
    first = worked[0]
    return replace(
        first,
        refusal=next((one.refusal for one in worked if one.refusal), ""),
        findings=tuple(finding for one in worked for finding in one.findings),
        notes=tuple(dict.fromkeys(note for one in worked for note in one.notes)),
        work=_added([one.work for one in worked]),
        by_class=_added([one.by_class for one in worked]),
        traffic=tuple(entry for one in worked for entry in one.traffic),
        cut_short=next((one.cut_short for one in worked if one.cut_short), ""),
        log_lost=next((one.log_lost for one in worked if one.log_lost), ""),
        other_kernels=tuple(dict.fromkeys(name for one in worked for name in one.other_kernels)),
        text="[" + ",".join(one.text.strip() for one in worked) + "]\n",
    )


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for one in counts for name in one)
    return {name: sum(one.get(name, 0) for one in counts) for name in names}


def _finding(data: Mapping[str, Any]) -> MachineFinding:
    return MachineFinding(
        data["check"],
        data["level"] == "warning",
        data["kind"],
        data["message"],
        data["remedy"],
        data["address"],
        data["count"],
        tuple(_site(one) for one in data["sites"]),
    )


def _site(data: Mapping[str, Any]) -> Site:
    return Site(
        data["kernel"],
        data.get("host", ""),
        tuple(SourceLine(line["file"], line["line"]) for line in data["source"]),
        data["ptx_line"],
        data["ptx"],
        _dim3(data.get("block")),
        _dim3(data.get("thread")),
    )


def _dim3(value: Sequence[int] | None) -> Dim3 | None:
    return (value[0], value[1], value[2]) if value else None


def _spelled(value: Dim3 | None) -> str:
    return f"({value[0]},{value[1]},{value[2]})" if value else ""

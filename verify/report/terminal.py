"""Prints a report to a terminal: a table of fixtures and checks, the findings, and the verdict line."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from verify.check.specs import CHECKS
from verify.finding.finding import Finding, Outcome, Severity, Verdict
from verify.finding.kind import Family, family_of_kind
from verify.report.report import KernelReport, Report, counts
from verify.system.printable import printable

_CELL = {
    Verdict.CLEAN: ("clean", "green"),
    Verdict.FINDINGS: ("FOUND", "bold red"),
    Verdict.INCONCLUSIVE: ("unsure", "bold yellow"),
    Verdict.NOT_RUN: ("not run", "yellow"),
}
SHOWN_FINDINGS = 1
"""Per kernel and fault; the others are usually the same fault in other fixtures and checks."""

_FOLDED = (Family.OUTPUTS, Family.READS)
"""Families in which one fault can appear as several kinds in one fixture."""


def print_report(report: Report, console: Console, verbose: bool = False) -> None:
    """Print table, findings, reasons, notes, verdict. verbose: every finding, not only one per fault."""
    for kernel in report.kernels:
        console.print(_table(kernel, report.checks))
        _print_rungs(kernel, console)
    _print_findings(report.findings, console, verbose)
    _print_reasons(report.outcomes, console)
    for note in report.notes:
        console.print(f"note: {note}", style="dim", markup=False, highlight=False)
    console.print(verdict_line(report))


def verdict_line(report: Report) -> Text:
    """The last line: the verdict, its basis, and the duration."""
    tally = counts(report.outcomes)
    kernels = ", ".join(dict.fromkeys(k.kernel for k in report.kernels)) or "nothing"
    architectures = ", ".join(dict.fromkeys(k.architecture for k in report.kernels))
    device = f"{report.device.name} ({architectures})" if report.device else "no device"
    words = {Verdict.FINDINGS: "with findings"}
    parts = [f"{n} {words.get(v, v)}" for v, n in tally.items() if n]
    warnings = sum(f.severity is Severity.WARNING for f in report.findings)
    if errors := len(report.findings) - warnings:
        parts.append(f"{errors} finding{'s' if errors > 1 else ''}")
    if warnings:
        parts.append(f"{warnings} warning{'s' if warnings > 1 else ''}")
    shown = ", ".join(parts) or "nothing ran"
    text = f"{str(report.verdict).upper()}: {kernels} on {device}: checks of fixtures: {shown}"
    return Text(f"{text} in {report.seconds:.1f} s", style=_CELL[report.verdict][1])


def _table(kernel: KernelReport, checks: tuple[str, ...]) -> Table:
    present = [c for c in CHECKS if c in checks or any(o.check == c for o in kernel.outcomes)]
    table = Table(
        title=Text(f"{kernel.kernel}  ({kernel.source}, {kernel.architecture})"),
        title_justify="left",
        pad_edge=False,
        box=SIMPLE_HEAD,
    )
    table.add_column("fixture", no_wrap=True)
    for check in present:
        table.add_column(check, no_wrap=True)
    by_cell: dict[tuple[str, str], Outcome] = {(o.fixture, o.check): o for o in kernel.outcomes}
    for fixture in kernel.pins:
        cells = [_cell(by_cell.get((fixture, check))) for check in present]
        table.add_row(fixture, *cells)
    return table


def _cell(outcome: Outcome | None) -> Text:
    if outcome is None:
        return Text("-", style="dim")
    word, style = _CELL[outcome.verdict]
    warnings = sum(f.severity is Severity.WARNING for f in outcome.findings)
    if outcome.verdict is Verdict.FINDINGS:
        word = f"{word} {len(outcome.findings)}"
    elif warnings:
        word = f"{word} {warnings}w"
    return Text(word, style=style)


def _print_rungs(kernel: KernelReport, console: Console) -> None:
    for rung, text in kernel.rungs.items():
        console.print(f"  {rung}: {text}", markup=False, highlight=False)
    if kernel.instantiations:
        console.print(f"  instantiations: {kernel.instantiations}", markup=False, highlight=False)


def _print_findings(findings: Iterable[Finding], console: Console, verbose: bool) -> None:
    alike: dict[tuple[str, str, Severity], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.kernel, finding.kind, finding.severity), []).append(finding)
    groups = list(alike.values()) if verbose else _folded(alike.values())
    hidden = 0
    for group in groups:
        shown = group if verbose else group[:SHOWN_FINDINGS]
        hidden += len(group) - len(shown)
        for finding in shown:
            console.print()
            console.print(finding_text(finding), markup=True, highlight=False, soft_wrap=True)
        if len(shown) < len(group):
            console.print(f"  also      {_places(group)}", markup=False, highlight=False, soft_wrap=True)
    if hidden:
        console.print(f"\n{hidden} more findings of the same faults: --verbose or --json shows all")


def _folded(groups: Iterable[list[Finding]]) -> list[list[Finding]]:
    """Merge kinds of the same family into one group, if the group includes all their fixtures."""
    kept: list[list[Finding]] = []
    for group in groups:
        family = _family(group)
        fixtures = {_fixture(f) for f in group}
        same = [k for k in kept if family is not None and _family(k) == family]
        first = next((k for k in same if fixtures <= {_fixture(f) for f in k}), None)
        if first is None:
            kept.append(list(group))
        else:
            first += group
    return kept


def _family(group: list[Finding]) -> tuple[str, Family, Severity] | None:
    """The group's kernel, family and severity; None for a kind that is never merged."""
    first = group[0]
    family = family_of_kind(first.kind)
    return (first.kernel, family, first.severity) if family in _FOLDED else None


def _fixture(finding: Finding) -> str:
    """The fixture of a finding, the second part of its case."""
    return (*finding.case.split("/"), "")[1]


def _places(group: list[Finding]) -> str:
    """The number of findings of a fault, their kinds, checks and number of cases."""
    cases = len({f.case for f in group})
    checks = ", ".join(dict.fromkeys(f.check for f in group))
    others = dict.fromkeys(f.kind for f in group if f.kind != group[0].kind)
    kinds = f"; also as {', '.join(others)}" if others else ""
    counted = f"{len(group)} of this fault in all, in {cases} case{'s' if cases > 1 else ''}"
    return f"{counted}, under {checks}{kinds}"


def finding_text(finding: Finding) -> str:
    """A finding as text, with rich markup on its first line."""
    style = "bold red" if finding.severity is Severity.ERROR else "bold yellow"
    head = f"[{style}]{finding.check} {finding.severity}[/]: {escape(finding.kind)} in {escape(finding.case)}"
    lines = [head]
    if finding.source is not None:
        at = f"{finding.source}" + (f" in {finding.function}" if finding.function else "")
        lines.append(f"  source    {escape(at)}")
    elif finding.function:
        lines.append(f"  function  {escape(finding.function)}")
    if finding.where:
        lines.append(f"  where     {escape(finding.where)}")
    lines += [
        f"  seen      {escape(_indented(finding.seen))}",
        f"  promised  {escape(_indented(finding.promised))}",
    ]
    lines += [f"  {name:<9} {escape(_indented(text))}" for name, text in finding.details]
    if finding.repeat:
        lines.append(f"  repeat    {escape(finding.repeat)}")
    if finding.folder:
        lines.append(f"  folder    {escape(finding.folder)}")
    return printable("\n".join(lines))


def _indented(text: str) -> str:
    """A message with its further lines aligned under the first."""
    return text.replace("\n", "\n            ")


def _print_reasons(outcomes: Iterable[Outcome], console: Console) -> None:
    """Print why verdicts are missing, one line per reason, however many fixtures share it."""
    grouped: dict[tuple[Verdict, str], list[str]] = {}
    for outcome in outcomes:
        if outcome.verdict in (Verdict.NOT_RUN, Verdict.INCONCLUSIVE):
            place = f"{outcome.check} {outcome.fixture}"
            grouped.setdefault((outcome.verdict, outcome.reason), []).append(place)
    for (verdict, reason), where in grouped.items():
        places = ", ".join(where[:3]) + (f" and {len(where) - 3} more" if len(where) > 3 else "")
        console.print(f"{verdict}: {places}: {reason}", style="yellow", markup=False, highlight=False)

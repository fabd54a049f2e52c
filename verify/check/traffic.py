"""traffic: each live row is read exactly as often as the contract says, dead rows never (CPU device)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import gcd, prod

import numpy as np

from verify.check.judge import coordinates
from verify.check.matrix import cases_for, filled_run, matrix
from verify.check.native import not_done
from verify.check.subject import Ran, Subject
from verify.contract.formats import format_of
from verify.contract.model import Buffer, Case
from verify.contract.returned import array
from verify.device.cpu import ALSO, ROW_BYTES
from verify.device.interface import Capability, Execution, RunStatus
from verify.finding.finding import Finding, Outcome
from verify.finding.kind import FaultKind
from verify.wire.run import Run

_PROMISE = "each live row is read exactly as often as the contract says, and dead rows never"


def check_traffic(subject: Subject) -> list[Outcome]:
    """One outcome per fixture; none for a contract without ``row_reads``.

    A process counts in cells of one size, so fixtures with the same cell size share a process.
    """
    if not subject.contract.row_reads:
        return []
    if not subject.can(Capability.COUNTS_READS):
        why = "only the CPU device counts reads: --device cpu"
        return [Outcome.not_run("traffic", subject.contract.name, f, why) for f in subject.cases]
    fill = matrix()["traffic"].fills[0]
    runs = {
        fixture: [filled_run(case, fill) for case in cases_for("traffic", cases)]
        for fixture, cases in subject.cases.items()
    }
    by_cell: dict[int, list[Run]] = defaultdict(list)
    for listed in runs.values():
        for run in listed:
            by_cell[cell_bytes(run.case)].append(run)
    executions: dict[str, Execution] = {}
    for cell, listed in by_cell.items():
        options = {ALSO: "traffic", ROW_BYTES: str(cell)}
        execution = subject.start(listed, f"traffic-{cell}", options=options)
        executions |= dict.fromkeys((run.id for run in listed), execution)
    return [_judge(subject, fixture, listed, executions) for fixture, listed in runs.items()]


def cell_bytes(case: Case) -> int:
    """The largest size in bytes that divides all row lengths and row offsets of the counted buffers."""
    sizes = []
    for name in case.contract.row_reads:
        buffer = case.contract.buffer(name)
        width = format_of(case.dtype(buffer)).itemsize
        shape, strides = case.shape(buffer), case.strides(buffer)
        sizes += [width * shape[-1] * strides[-1], *(width * stride for stride in strides[:-1])]
    return gcd(*sizes)


def row_bytes_read(
    case: Case, buffer: Buffer, cells: Mapping[str, int], cell: int
) -> tuple[np.ndarray, int, int]:
    """Bytes read of each row (shape without the last extent); bytes read outside all rows, and the first of
    their offsets.

    cells: byte offset -> bytes read of that cell.
    """
    width = format_of(case.dtype(buffer)).itemsize
    shape, strides = case.shape(buffer), case.strides(buffer)
    starts = np.zeros(shape[:-1], np.int64)
    for axis, (extent, stride) in enumerate(zip(shape[:-1], strides[:-1], strict=True)):
        steps = np.arange(extent, dtype=np.int64) * stride * width
        starts += steps.reshape([-1 if i == axis else 1 for i in range(len(shape) - 1)])
    flat = starts.reshape(-1)
    order = np.argsort(flat, kind="stable")
    offsets = np.array([int(offset) for offset in cells], np.int64)
    amounts = np.array(list(cells.values()), np.int64)
    place = np.searchsorted(flat[order], offsets, side="right") - 1
    inside = (place >= 0) & (offsets - flat[order][np.maximum(place, 0)] < shape[-1] * width)
    read = np.zeros(flat.size, np.int64)
    np.add.at(read, order[place[inside]], amounts[inside])
    outside = offsets[~inside]
    return read.reshape(starts.shape), int(amounts[~inside].sum()), int(outside.min()) if outside.size else 0


def _judge(subject: Subject, fixture: str, runs: list[Run], executions: Mapping[str, Execution]) -> Outcome:
    name = subject.contract.name
    ran = [Ran(run, executions[run.id].results[run.id], None) for run in runs]
    unended = [r for r in ran if r.result.status is not RunStatus.DONE]
    if unended and (unfinished := not_done("traffic", subject, fixture, unended)) is not None:
        return unfinished
    doubt = next((d for run in runs if (d := executions[run.id].doubt)), "")
    if doubt:
        return Outcome.inconclusive("traffic", name, fixture, doubt)
    repeat = subject.repeat_command("traffic", fixture)
    findings: list[Finding] = []
    measures: dict[str, int] = defaultdict(int)
    for run in runs:
        counters = executions[run.id].counters
        for buffer in subject.contract.buffers:
            for count, amount in counters.get(f"{run.id}/{buffer.name}", {}).items():
                measures[count] += amount
        for counted in filter(run.case.given, subject.contract.row_reads):
            cells = counters.get(f"{run.id}/{counted}/read", {})
            findings += _row_findings(subject, run.case, counted, cells, repeat)
            measures["rows"] += prod(run.case.shape(subject.contract.buffer(counted))[:-1])
    return Outcome.judge("traffic", name, fixture, findings, strict=subject.strict, measures=dict(measures))


def _row_findings(
    subject: Subject, case: Case, name: str, cells: Mapping[str, int], repeat: str
) -> list[Finding]:
    """Findings about rows of one buffer that were read too often, too rarely, or although they are dead."""
    buffer = subject.contract.buffer(name)
    read, astray, first_astray = row_bytes_read(case, buffer, cells, cell_bytes(case))
    live = case.live(name).sum(axis=-1) * format_of(case.dtype(buffer)).itemsize
    declared = subject.contract.row_reads[name]
    given = declared(case) if callable(declared) else case.evaluate(declared)
    times = array(given, None, f"{subject.contract.file}: row_reads: {name}", read.shape)
    findings = []
    for kind, wrong in (
        (FaultKind.DEAD_ROW, (live == 0) & (read > 0)),
        (FaultKind.ROW_READS, (live > 0) & (read != live * times)),
    ):
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            promised = int(live[at] * times[at])
            seen = f"{int(read[at])} bytes of {name}{list(at)} were read, {promised} promised"
            findings.append(
                Finding(
                    "traffic",
                    subject.contract.name,
                    case.id,
                    kind,
                    f"{seen}; {int(wrong.sum())} of {wrong.size} rows",
                    _PROMISE,
                    where=coordinates(case, name, at),
                    repeat=repeat,
                )
            )
    if astray:
        findings.append(
            Finding(
                "traffic",
                subject.contract.name,
                case.id,
                FaultKind.PADDING,
                f"{astray} bytes of {name} between its rows were read, the first at byte {first_astray}",
                _PROMISE,
                where=f"{name} + {first_astray}",
                repeat=repeat,
            )
        )
    return findings

"""memcheck, initcheck, racecheck, synccheck: a tool on all cases in one process, then each suspect alone.

A tool's record does not name its run, so one process for all cases is the fast path: if it reports nothing
and proves that it ran, every fixture is clean. Otherwise each suspect run is repeated in a process of its
own, which gives its findings. On the CPU device this may be repeated under other schedules: the first one
under which a fixture is not clean gives its outcome.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from functools import partial

from verify.check.carried import MOST_SEARCHES, Carried, find_carried, record_key
from verify.check.matrix import matrix, runs_for
from verify.check.subject import Subject, run_seconds
from verify.check.suppress import suppressions_of, unsuppressed
from verify.check.tool_findings import SANITIZER, distinct_faults, record_finding
from verify.device.cpu import ALSO, SEED
from verify.device.interface import Capability, Execution, RunStatus, Tool, ToolRecord
from verify.finding.finding import Outcome, Verdict
from verify.wire.run import Run

PROCESSES = max(2, min(8, os.cpu_count() or 2))
"""Suspects repeated concurrently, over all tools: most of a tool's time is its startup."""


SLOWDOWN = 2.5
"""The time limit of a run under a tool as a multiple of a native run's."""

FEW_RECORDS, MOST_RECORDS = 500, 2_000
"""Records printed for all cases together, which only show that there is a fault, and for one case alone.

Racecheck gives a record for each byte, so one missing barrier can print gigabytes; the summary line still
counts all, and a log with fewer records than its summary counts is never clean.
"""


def check_tools(subject: Subject, tools: Sequence[Tool]) -> list[Outcome]:
    """One outcome for each tool and fixture; the tools run concurrently.

    If the device lets several tools observe one run, tools with the same runs share them.
    """
    groups: dict[object, list[Tool]] = {}
    for tool in tools:
        row = matrix()[tool]
        same_runs = (row.profiles, row.mode, row.fills) if subject.can(Capability.TOOLS_TOGETHER) else tool
        groups.setdefault(same_runs, []).append(tool)
    seeds = range(subject.seeds or 1) if subject.can(Capability.SEEDS_SCHEDULES) else (0,)
    with ThreadPoolExecutor(len(groups)) as side_by_side, ThreadPoolExecutor(PROCESSES) as alone:

        def check_seeds(group: Sequence[Tool]) -> list[Outcome]:
            return over_schedules(check_group(subject, group, alone, seed) for seed in seeds)

        outcomes = side_by_side.map(check_seeds, groups.values())
        return [outcome for listed in outcomes for outcome in listed]


def over_schedules(outcomes: Iterable[Sequence[Outcome]]) -> list[Outcome]:
    """Merge the outcomes of successive schedules into one for each tool and fixture.

    The first outcome that is not clean is kept, but findings take precedence. A clean outcome counts the
    schedules.
    """
    kept: dict[tuple[str, str], Outcome] = {}
    for schedules, listed in enumerate(outcomes, 1):
        for outcome in listed:
            key = (outcome.check, outcome.fixture)
            before = kept.get(key)
            if before is None or _rank(outcome) > _rank(before):
                kept[key] = outcome
        if schedules > 1:
            for key, outcome in kept.items():
                if outcome.verdict is Verdict.CLEAN:
                    kept[key] = replace(outcome, measures={**outcome.measures, "schedules": schedules})
    return list(kept.values())


def _rank(outcome: Outcome) -> int:
    return {Verdict.CLEAN: 0, Verdict.FINDINGS: 2}.get(outcome.verdict, 1)


def check_group(subject: Subject, tools: Sequence[Tool], alone: Executor, seed: int = 0) -> list[Outcome]:
    """One outcome for each tool and fixture, for tools that share processes.

    alone: runs the suspects. seed: of the schedule, on a device with seeded schedules.
    """
    tripwires = {tool: subject.device.tripwire(tool) for tool in tools}
    runs = {f: tuple(map(_undirtied, runs_for(tools[0], cases))) for f, cases in subject.cases.items()}
    every = [run for fixture_runs in runs.values() for run in fixture_runs]
    under = partial(_under, subject, tools, seed)
    batch = under(every, "batch")
    suspects = _suspects(every, batch)
    if suspects:
        subject.progress(f"{subject.contract.name}: {', '.join(tools)}: repeating {len(suspects)} runs alone")
    executions: dict[str, Execution] = dict.fromkeys((run.id for run in every), batch)
    executions |= zip(
        (run.id for run in suspects),
        alone.map(partial(_alone, under, batch), suspects),
        strict=True,
    )
    for run in suspects:
        # Concurrent tools share the memory: a run that did not fit may fit alone.
        if executions[run.id].results[run.id].status is RunStatus.REFUSED_MEMORY:
            executions[run.id] = under([run], run.id)
    outcomes = []
    beginnings: dict[int, Execution] = {}
    for tool in tools:
        general = [] if tripwires[tool].ok else [tripwires[tool].reason]
        carried = []
        for number, lost in enumerate(_unrepeated(tool, batch, [executions[run.id] for run in suspects])):
            found = None
            if number < MOST_SEARCHES:
                subject.progress(f"{subject.contract.name}: {tool}: searching for the faulty call")
                records = partial(_records_of_first, under, tool, every, beginnings)
                found = find_carried(every, records, record_key(lost))
            if found is not None:
                carried.append(found)
            else:
                general.append(f"{tool} on all cases reported what no single case reproduces: {lost.message}")
        outcomes += [
            _judge(subject, tool, fixture, fixture_runs, executions, batch, general, carried, seed)
            for fixture, fixture_runs in runs.items()
        ]
    return outcomes


def _alone(under: Callable[..., Execution], batch: Execution, run: Run) -> Execution:
    return under([run], run.id, again=batch.results[run.id].status is RunStatus.TIMEOUT)


def _records_of_first(
    under: Callable[..., Execution],
    tool: Tool,
    runs: Sequence[Run],
    known: dict[int, Execution],
    count: int,
) -> list[ToolRecord]:
    """A tool's records for the first ``count`` runs in one process."""
    if count not in known:
        known[count] = under(runs[:count], f"first-{count}")
    return _records(tool, known[count])


def _undirtied(run: Run) -> Run:
    """The run without the pre-kernel that fills shared memory: a tool sees the read itself."""
    return replace(run, fills=replace(run.fills, shared=None))


def _suspects(runs: Sequence[Run], batch: Execution) -> list[Run]:
    """Runs whose verdict does not follow from the batch.

    A record may belong to any run. Without records, only failed runs are suspect, unless a crashed process
    leaves the others in doubt; a doubt although every run succeeded is the tool's own, and would only recur.
    """
    statuses = {run.id: batch.results[run.id].status for run in runs}
    # A hung run is only repeated if the tool may have reported something about it.
    idle = (RunStatus.LEFT_OUT,) if batch.records else (RunStatus.LEFT_OUT, RunStatus.TIMEOUT)
    tried = [run for run in runs if statuses[run.id] not in idle]
    if all(statuses[run.id] is RunStatus.NOT_RUN for run in tried):
        return []
    if batch.records or (batch.doubt and any(status is not RunStatus.DONE for status in statuses.values())):
        return tried
    return [run for run in tried if statuses[run.id] is not RunStatus.DONE]


def _unrepeated(tool: Tool, batch: Execution, alone: Sequence[Execution]) -> list[ToolRecord]:
    """Records of the batch whose function (or kind) no single run reports; they must not get lost."""
    seen = {record_key(r) for execution in alone for r in _records(tool, execution)}
    lost = {record_key(r): r for r in reversed(_records(tool, batch)) if record_key(r) not in seen}
    return list(lost.values())


def _records(tool: Tool, execution: Execution) -> list[ToolRecord]:
    """The tool's own records, and for memcheck also failed runtime calls, which belong to no tool."""
    also = ("api",) if tool == "memcheck" else ()
    return [record for record in execution.records if record.tool in (tool, *also)]


def _under(
    subject: Subject, tools: Sequence[Tool], seed: int, runs: Sequence[Run], name: str, again: bool = False
) -> Execution:
    """Execute runs in one process under the tools; known false alarms are removed from the records."""
    options = {ALSO: ",".join(tools[1:])} if len(tools) > 1 else {}
    if seed:
        options[SEED] = str(seed)
    if subject.can(Capability.LIMITS_RECORDS):
        options["print-limit"] = str(MOST_RECORDS if len(runs) == 1 else FEW_RECORDS)
    limit = SLOWDOWN * run_seconds()
    folder = f"{'-'.join(tools)}-{f'schedule-{seed}-' if seed else ''}{name}"
    execution = subject.start(runs, folder, tools[0], options, timeout=limit, again=again)
    if not execution.records:
        return execution
    version = subject.device.info().versions.get(SANITIZER)
    known = suppressions_of(subject.contract.directory)
    number = tuple(map(int, version.split("."))) if version is not None else None
    records = unsuppressed(execution.records, known, number, date.today(), subject.suppressed)
    return replace(execution, records=records)


def _judge(
    subject: Subject,
    tool: Tool,
    fixture: str,
    runs: Sequence[Run],
    executions: Mapping[str, Execution],
    batch: Execution,
    general: Sequence[str],
    carried: Sequence[Carried],
    seed: int,
) -> Outcome:
    """The verdict: findings first; without an error among them, the reasons why no records prove nothing.

    general: doubts about every fixture. carried: records that need preceding calls, of any fixture.
    """
    own = {run.id for run in runs}
    findings = [
        record_finding(subject, tool, None, found.run, found.record, {}, seed, found.detail)
        for found in carried
        if found.run.id in own
    ]
    doubts: list[str] = []
    short: list[str] = []
    for run in runs:
        execution = executions[run.id]
        result = execution.results[run.id]
        records = [] if execution is batch else _records(tool, execution)
        bases = execution.buffers.get(run.id, {})
        findings += [
            record_finding(subject, tool, fixture, run, r, bases, seed) for r in distinct_faults(records)
        ]
        if result.status is RunStatus.LEFT_OUT:
            short.append(result.error)
        elif result.status is RunStatus.REFUSED_MEMORY:
            short.append(f"{run.case.id} {result.error}")
        elif result.status is RunStatus.NOT_RUN:
            short.append(result.error or execution.doubt)
        elif result.status is not RunStatus.DONE and not records:
            doubts.append(f"{run.case.id} under {tool}: {result.error}, and {tool} reported nothing")
        elif execution.doubt and not records:
            doubts.append(f"{run.case.id}: {execution.doubt}")
    doubts += general
    measures = {"runs": len(runs), "seconds": sum({id(e): e.seconds for e in _of(runs, executions)}.values())}
    judged = Outcome.judge(
        tool, subject.contract.name, fixture, findings, strict=subject.strict, measures=measures
    )
    if judged.verdict is Verdict.FINDINGS or not (doubts or short):
        return judged
    verdict = Verdict.INCONCLUSIVE if doubts else Verdict.NOT_RUN
    return replace(judged, verdict=verdict, reason=(doubts or short)[0])


def _of(runs: Sequence[Run], executions: Mapping[str, Execution]) -> list[Execution]:
    return [executions[run.id] for run in runs]

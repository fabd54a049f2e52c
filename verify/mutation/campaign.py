"""Runs many mutants side by side, one process per core, and saves each result as it comes."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from verify.contract.model import Contract
from verify.device.interface import Device
from verify.finding.finding import Outcome, Verdict
from verify.gate.selection import Selection
from verify.gate.side_by_side import run_kernels
from verify.mutation.journal import Journal, context_of, key_of, suite_digest
from verify.mutation.mutant import Fate, Mutant, Result
from verify.mutation.worker import Request, Setup, Worker, WorkerLostError, start_worker
from verify.system.process_group import end_descendants
from verify.system.progress import Progress
from verify.toolchain.cache import digest


class UncleanError(ValueError):
    """The original kernel is not clean, so a report of a mutant would prove nothing."""


@dataclass(frozen=True)
class Options:
    """How mutants are tried. architecture: None for the contracts' own. every: ask all checks. jobs:
    processes."""

    architecture: str | None = None
    every: bool = False
    jobs: int = 1


@dataclass(frozen=True)
class Campaign:
    """All mutants with their ends, in order. known: how many results came from the journal."""

    mutants: tuple[Mutant, ...]
    results: tuple[Result, ...]
    known: int
    seconds: float


@dataclass
class _State:
    """The state that the threads share."""

    waiting: list[int]
    results: dict[int, Result]
    lock: threading.Lock = field(default_factory=threading.Lock)
    telling: dict[str, Counter[str]] = field(default_factory=dict)
    """By kernel, how many mutants each fixture has shown."""
    done: int = 0
    failed: bool = False


def usual_jobs() -> int:
    """One process per core."""
    return len(os.sched_getaffinity(0))


def run_campaign(
    contracts: Sequence[Contract],
    mutants: Sequence[Mutant],
    device: Device,
    options: Options,
    journal: Journal,
    progress: Progress,
) -> Campaign:
    """Run all mutants of the contracts except those whose results the journal holds.

    Raises UncleanError if an original kernel is not clean, and BlamedError for errors that no mutant causes.
    """
    started = time.monotonic()
    suite = suite_digest()
    contexts = {c.name: context_of(c, device, options.architecture, suite) for c in contracts}
    files = {c.name: str(c.file) for c in contracts}
    keys = [key_of(contexts[m.kernel], m, options.every) for m in mutants]
    found = [journal.result(key, m) for key, m in zip(keys, mutants, strict=True)]
    results = {n: result for n, result in enumerate(found) if result is not None}
    state = _State([n for n in range(len(mutants)) if n not in results], results)
    for result in results.values():
        _note(state, result)
    known = len(results)
    if state.waiting:
        wanted = {mutants[n].kernel for n in state.waiting}
        _require_clean(
            [c for c in contracts if c.name in wanted], device, options, contexts, journal, progress
        )
        began = time.monotonic()
        setup = Setup(device.name, options.architecture, options.every)
        jobs = max(1, min(options.jobs, len(state.waiting)))

        def work(_: int) -> None:
            try:
                _work(state, mutants, keys, files, setup, journal, progress, began)
            except BaseException:
                state.failed = True
                raise

        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(work, range(jobs)))
            except BaseException:
                state.failed = True
                end_descendants()  # otherwise the pool would wait for the remaining mutants
                raise
    ordered = tuple(state.results[n] for n in range(len(mutants)))
    return Campaign(tuple(mutants), ordered, known, time.monotonic() - started)


def _work(
    state: _State,
    mutants: Sequence[Mutant],
    keys: Sequence[str],
    files: dict[str, str],
    setup: Setup,
    journal: Journal,
    progress: Progress,
    began: float,
) -> None:
    """One thread with a worker of its own, until nothing waits."""
    with ExitStack() as stack:
        worker = stack.enter_context(start_worker(setup))
        while (number := _next(state)) is not None:
            mutant = mutants[number]
            request = Request(files[mutant.kernel], mutant, _likely(state, mutant.kernel))
            try:
                result = worker.run(request, progress)
            except WorkerLostError:
                worker = stack.enter_context(start_worker(setup))
                result = _once_more(worker, request, progress)
                if result.fate is Fate.UNDECIDED:
                    worker = stack.enter_context(start_worker(setup))
            journal.write(keys[number], result)
            with state.lock:
                state.results[number] = result
                state.done += 1
                _note(state, result)
                progress(_line(state, result, len(mutants), time.monotonic() - began))


def _once_more(worker: Worker, request: Request, progress: Progress) -> Result:
    """Retry once if the process ended, since another program may have killed it."""
    try:
        return worker.run(request, progress)
    except WorkerLostError as error:
        mutant = request.mutant
        return Result(mutant.kernel, mutant.name, Fate.UNDECIDED, reason=str(error))


def _next(state: _State) -> int | None:
    with state.lock:
        return state.waiting.pop(0) if state.waiting and not state.failed else None


def _likely(state: _State, kernel: str) -> tuple[str, ...]:
    with state.lock:
        return tuple(name for name, _ in state.telling.get(kernel, Counter[str]()).most_common(2))


def _note(state: _State, result: Result) -> None:
    if result.kills:
        counter = state.telling.setdefault(result.kernel, Counter())
        counter[result.kills[0].fixture.partition("/")[0]] += 1


def _line(state: _State, result: Result, total: int, seconds: float) -> str:
    """Called under the lock."""
    left = total - len(state.results)
    wait = seconds / state.done * left
    time_left = f", about {wait:.0f} s left" if wait < 100 else f", about {wait / 60:.0f} min left"
    time_left = time_left if left else ""
    killed = sum(r.fate is Fate.KILLED for r in state.results.values())
    by = f" by {result.killers[0]}" if result.killers else f": {result.reason}" if result.reason else ""
    what = f"{result.kernel} {result.name} {result.fate}{by} ({result.seconds:.1f} s)"
    return f"{len(state.results)} of {total} tried, {killed} killed{time_left}; {what}"


def _require_clean(
    contracts: Sequence[Contract],
    device: Device,
    options: Options,
    contexts: dict[str, str],
    journal: Journal,
    progress: Progress,
) -> None:
    """Raises UncleanError unless a full run of each right kernel is clean. It is run once for a journal."""
    keys = {c.name: digest([contexts[c.name], "clean"]) for c in contracts}
    unknown = tuple(c for c in contracts if not journal.is_clean(keys[c.name]))
    if not unknown:
        return
    progress(f"the right kernels first: {', '.join(c.name for c in unknown)}")

    def say(text: str) -> None:
        if ": " in text:  # of a kernel, not of one of its many runs
            progress(text)

    report = run_kernels(Selection(unknown, architecture=options.architecture), device, "", say)
    unclean = [o for kernel in report.kernels for o in kernel.outcomes if o.verdict is not Verdict.CLEAN]
    if unclean:
        first = unclean[0]
        more = f" and {len(unclean) - 1} more" if len(unclean) > 1 else ""
        raise UncleanError(f"the right kernel is not clean, so no mutant is run: {_summary(first)}{more}")
    for contract in unknown:
        journal.write_clean(keys[contract.name])


def _summary(outcome: Outcome) -> str:
    what = outcome.findings[0].seen if outcome.findings else outcome.reason
    return f"{outcome.kernel} {outcome.fixture} {outcome.check}: {outcome.verdict}: {what}"

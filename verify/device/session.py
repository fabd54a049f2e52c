"""Runs harness processes over a pack until every run has a result: done, fault, timeout, or not run and why.

The harness prints one marker per line (``@begin RUN``, ``@launched RUN kernels=N``, ``@done RUN``,
``@error RUN text``, ``@refused RUN name``, ``@fault RUN text``, ``@buffer RUN NAME ADDRESS``). If a process
crashes or hangs, its current run is charged, and a new process continues with the rest; so one bad case costs
only that case. This module knows nothing about GPUs or tools: the device provides the command line of each
process.
"""

from __future__ import annotations

import contextlib
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verify.device.interface import Job, RunResult, RunStatus
from verify.device.markers import TAIL_LINES, ProcessState
from verify.system.guard import guarded
from verify.system.process_group import end_group
from verify.system.progress import Progress

STARTUP_SECONDS = 120.0
"""Added to the limit before the first marker: loading the driver, the tool and the modules."""

LOOK_AGAIN_SECONDS = 1.0
"""How often a silent run is checked against results that have arrived meanwhile."""

AFTER_A_HANG = 6
"""After a run hung, the limit of the session's other runs is divided by this: the finding is made."""


@dataclass(frozen=True)
class Command:
    """One process to start: its argument vector and its whole environment."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class ProcessEnd:
    """How one process of a session ended.

    code: exit status, negative for a signal. killed: it was killed for exceeding its limit.
    tail: last lines that were not markers, standard error last. settled: runs that got their result in it.
    begun: runs that it started. stderr: the file with its standard error.
    """

    command: tuple[str, ...]
    code: int
    killed: bool
    begun: tuple[str, ...]
    settled: tuple[str, ...]
    tail: tuple[str, ...]
    stderr: Path
    seconds: float

    @property
    def cause(self) -> str:
        """The signal or exit code, and the last line of output, for messages."""
        if self.killed:
            how = "killed for exceeding its time limit"
        elif self.code < 0:
            with contextlib.suppress(ValueError):
                return _with_tail(f"killed by {signal.Signals(-self.code).name}", self.tail)
            how = f"killed by signal {-self.code}"
        else:
            how = f"exit code {self.code}"
        return _with_tail(how, self.tail)


@dataclass(frozen=True)
class Session:
    """The results of all runs of a job, and of its processes, in order.

    faults: by run, the texts of its ``@fault`` markers (from the launch-fault interposer). buffers: by run,
    the device address of each buffer, from its ``@buffer`` markers.
    """

    results: Mapping[str, RunResult]
    faults: Mapping[str, tuple[str, ...]]
    buffers: Mapping[str, Mapping[str, int]]
    processes: tuple[ProcessEnd, ...]
    seconds: float


def harness_command(job: Job, runs: Sequence[str], *, regions: bool = True) -> tuple[str, ...]:
    """The harness's command line for these runs of the pack.

    regions: tell a memory checker which bytes of each buffer may be accessed; free without one.
    """
    only = [word for run in runs for word in ("--only", run)]
    closed = () if regions else ("--no-regions",)
    return (str(job.binary), "run", "--pack", str(job.pack), "--out", str(job.out), *closed, *only)


def run_session(
    job: Job,
    command_for: Callable[[int, Sequence[str]], Command],
    progress: Progress | None = None,
) -> Session:
    """Execute every run of ``job.runs``, in as many processes as necessary.

    command_for: the command line for a process number and the ids of the outstanding runs.
    progress: called with the id of each run as it begins. Runs that ``job.skip`` names are skipped. A process
    that settles no run is retried once; after a second such process the outstanding runs are reported as not
    run, with the cause.
    """
    started = time.monotonic()
    job.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, RunResult] = {}
    processes: list[ProcessEnd] = []
    faults: dict[str, tuple[str, ...]] = {}
    buffers: dict[str, Mapping[str, int]] = {}
    idle = 0
    while True:
        for run in job.runs:
            if run not in results and (why := job.skip(run, results)):
                results[run] = RunResult(run, RunStatus.LEFT_OUT, error=why)
        if not (pending := [run for run in job.runs if run not in results]):
            break
        index = len(processes)
        hung = any(result.status is RunStatus.TIMEOUT for result in results.values())
        limit = max(1.0, job.timeout / AFTER_A_HANG) if hung else job.timeout
        end, state = _one_process(job, index, pending, command_for(index, pending), limit, progress)
        _charge(job, end, state, results)
        faults |= {run: tuple(lines) for run, lines in state.faults.items()}
        buffers |= state.buffers
        settled = tuple(run for run in pending if run in results)
        processes.append(
            ProcessEnd(
                end.command, end.code, end.killed, end.begun, settled, end.tail, end.stderr, end.seconds
            )
        )
        idle = 0 if settled else idle + 1
        if idle == 2:
            for run in job.runs:
                results.setdefault(run, RunResult(run, RunStatus.NOT_RUN, error=f"not started: {end.cause}"))
    ordered = {run: results[run] for run in job.runs}
    return Session(ordered, faults, buffers, tuple(processes), time.monotonic() - started)


def _one_process(
    job: Job, index: int, pending: Sequence[str], command: Command, limit: float, progress: Progress | None
) -> tuple[ProcessEnd, ProcessState]:
    """Start one process, read its markers until it ends or times out, and end its whole group."""
    state = ProcessState(frozenset(pending))
    stderr = job.out / f"process-{index}.stderr"
    started = time.monotonic()
    with stderr.open("wb") as errors:
        starting = guarded(
            command.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(command.environment),
            bufsize=0,
            start_new_session=True,
        )
        with contextlib.ExitStack() as until_its_end:
            try:
                process = until_its_end.enter_context(starting)
            except OSError as problem:
                state.tail.append(f"cannot start {command.argv[0]}: {problem.strerror}")
                end = ProcessEnd(command.argv, 127, False, (), (), tuple(state.tail), stderr, 0.0)
                return end, state
            try:
                killed = _follow(process, state, limit, job, progress)
            finally:
                end_group(process)
    tail = (*state.tail, *_last_lines(stderr))[-TAIL_LINES:]
    seconds = time.monotonic() - started
    code = -signal.SIGKILL if process.returncode is None else process.returncode
    end = ProcessEnd(command.argv, code, killed, tuple(state.begun), (), tail, stderr, seconds)
    return end, state


def _follow(
    process: subprocess.Popen[bytes],
    state: ProcessState,
    limit: float,
    job: Job,
    progress: Progress | None,
) -> bool:
    """Read standard output until it closes and the process ends; True if the process must be killed.

    Each marker restarts the clock, so the limit applies to one run, however many the process executes; it is
    re-evaluated periodically, since other processes may meanwhile learn how long runs take. A run that
    ``skip`` names is abandoned.
    """
    assert process.stdout is not None
    last_marker = time.monotonic()
    deadline = last_marker + limit + STARTUP_SECONDS
    buffered = b""
    descriptor = process.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if state.current is not None:
                state.limit = min(limit, job.limit(state.current))
                deadline = last_marker + state.limit
            left = deadline - time.monotonic()
            if not selector.select(max(0.0, min(left, LOOK_AGAIN_SECONDS))):
                if left <= LOOK_AGAIN_SECONDS:
                    return True
                if state.current is not None and (why := job.skip(state.current, {})):
                    state.given_up = why
                    return True
                continue
            chunk = process.stdout.read(1 << 16)
            *lines, buffered = (buffered + chunk).split(b"\n")
            for raw in lines if chunk else [*lines, buffered]:
                line = raw.decode(errors="replace").rstrip("\r")
                if state.read(line):
                    last_marker = time.monotonic()
                    deadline = last_marker + limit
                    while state.took:
                        job.took(*state.took.pop())
                    if progress is not None and "@begin " in line:
                        progress(state.begun[-1])
            if not chunk:
                break
    try:
        process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return True
    return False


def _charge(job: Job, end: ProcessEnd, state: ProcessState, results: dict[str, RunResult]) -> None:
    """Record the results of the runs that this process settled, and charge the run in which it failed."""
    for run, (status, text) in state.ends.items():
        output: Path | None = job.out / f"{run}.out"
        if status is RunStatus.DONE and output is not None and not output.is_file():
            output = None
            if not text:
                status, text = RunStatus.FAULT, "the harness reported done but wrote no output"
        kept = output if status is RunStatus.DONE else None
        results.setdefault(run, RunResult(run, status, kept, state.kernels.get(run, 0), text))
    if state.current is not None:
        run = state.current
        status = RunStatus.TIMEOUT if end.killed else RunStatus.FAULT
        error = f"no end within {state.limit:.3g} s" if end.killed else f"the process crashed: {end.cause}"
        if state.given_up:
            status, error = RunStatus.LEFT_OUT, state.given_up
        results.setdefault(run, RunResult(run, status, None, state.kernels.get(run, 0), error))


def _last_lines(path: Path, limit: int = 1 << 14) -> list[str]:
    """The last lines of a file, within its last ``limit`` bytes."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - limit))
        return [line for line in stream.read().decode(errors="replace").splitlines() if line.strip()]


def _with_tail(how: str, tail: Sequence[str]) -> str:
    return f"{how}; last output: {tail[-1].strip()}" if tail else how

"""Run a harness process over a pack until every run has an end: done, fault, timeout, or not run and why.

The harness prints one marker a line (``@begin RUN``, ``@launched RUN kernels=N``, ``@done RUN``,
``@error RUN text``, ``@refused RUN name``, ``@fault RUN text``, ``@buffer RUN NAME ADDRESS``). When a process
dies or hangs, the run that it had begun is charged, and a new process goes on with the rest; so one bad case
costs that case only. This module knows nothing of GPUs or tools: a device says which command line starts
process number ``index``.
"""

from __future__ import annotations

import contextlib
import re
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from verify.device.interface import Job, RunResult, RunStatus
from verify.system.guard import guarded
from verify.system.process_group import end_group
from verify.system.progress import Progress

STARTUP_SECONDS = 120.0
"""Added to the limit before the first marker: loading the driver, the tool and the modules."""

LOOK_AGAIN_SECONDS = 1.0
"""How often a silent run is held against what has become known meanwhile."""

AFTER_A_HANG = 6
"""After a run that did not end, the others of a session have this part of the limit: the finding is made."""

TAIL_LINES = 40

_MARKER = re.compile(r"@(begin|launched|done|error|refused|fault|buffer) (\S+)(?: (.*))?$")
_KERNELS = re.compile(r"\bkernels=(\d+)")
_NO_MEMORY = re.compile(r"^no memory: needs (\d+) bytes of device memory, (\d+) are free")


@dataclass(frozen=True)
class Command:
    """One process to start: its argument vector and its whole environment."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class ProcessEnd:
    """How one process of a session ended.

    code: exit status, negative for a signal. killed: it was ended for running past its limit.
    tail: last lines that were no markers, standard error last. settled: runs that got their end in it.
    begun: runs that it began. stderr: the file that holds its standard error.
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
        """One phrase for a person: the signal or exit code, and the last thing the process said."""
        if self.killed:
            how = "ended for running past its time limit"
        elif self.code < 0:
            with contextlib.suppress(ValueError):
                return _with_tail(f"killed by {signal.Signals(-self.code).name}", self.tail)
            how = f"killed by signal {-self.code}"
        else:
            how = f"exit code {self.code}"
        return _with_tail(how, self.tail)


@dataclass(frozen=True)
class Session:
    """The ends of all runs of a job, and of the processes that it took, in order.

    faults: by run, what its ``@fault`` markers said (the launch-fault interposer's sweep). buffers: by run,
    the device address of each buffer, from its ``@buffer`` markers.
    """

    results: Mapping[str, RunResult]
    faults: Mapping[str, tuple[str, ...]]
    buffers: Mapping[str, Mapping[str, int]]
    processes: tuple[ProcessEnd, ...]
    seconds: float


@dataclass
class _Progress:
    """What the markers of one process have said so far.

    since: when the current run began. took: seconds of runs that ended well, to be passed on. limit: seconds
    that the current run has.
    """

    wanted: frozenset[str]
    begun: list[str] = field(default_factory=list)
    current: str | None = None
    kernels: dict[str, int] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    buffers: dict[str, dict[str, int]] = field(default_factory=dict)
    ends: dict[str, tuple[RunStatus, str]] = field(default_factory=dict)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    given_up: str = ""
    since: float = 0.0
    took: list[tuple[str, float]] = field(default_factory=list)
    limit: float = 0.0

    def read(self, line: str) -> bool:
        """Take one line of output; True when it was a marker of a run of this process."""
        marker = _MARKER.search(line)
        if marker is None or marker[2] not in self.wanted:
            if line.strip():
                self.tail.append(line)
            return False
        word, run, text = marker[1], marker[2], marker[3] or ""
        if word == "begin":
            self.begun.append(run)
            self.current, self.since = run, time.monotonic()
        elif word == "launched":
            count = _KERNELS.search(text)
            self.kernels[run] = int(count[1]) if count else 0
        elif word == "buffer":
            name, _, address = text.rpartition(" ")
            if address.isdecimal():
                self.buffers.setdefault(run, {})[name] = int(address)
        elif word == "fault":
            self.faults.setdefault(run, []).append(text)
        elif word == "error":
            if found := _NO_MEMORY.match(text):
                needed, free = (int(number) / 1e9 for number in found.groups())
                missing = f"needs {needed:.1f} GB of device memory, {free:.1f} GB are free"
                self.ends[run] = (RunStatus.REFUSED_MEMORY, missing)
            else:
                self.ends[run] = (RunStatus.FAULT, text)
            self.current = None
        elif word == "refused":
            self.ends[run] = (RunStatus.DONE, text)
        else:
            self.ends.setdefault(run, (RunStatus.DONE, ""))
            self.current = None
            self.took.append((run, time.monotonic() - self.since))
        return True


def harness_command(job: Job, runs: Sequence[str], *, regions: bool = True) -> tuple[str, ...]:
    """The harness's own command line for these runs of the pack.

    regions: tell a memory checker which bytes of each buffer may be touched; no work without one.
    """
    only = [word for run in runs for word in ("--only", run)]
    closed = () if regions else ("--no-regions",)
    return (str(job.binary), "run", "--pack", str(job.pack), "--out", str(job.out), *closed, *only)


def run_session(
    job: Job,
    command_for: Callable[[int, Sequence[str]], Command],
    progress: Progress | None = None,
) -> Session:
    """Every run of ``job.runs`` to its end, in as many processes as that takes.

    command_for: from the process number and the run ids still to do to the command line that does them.
    progress: told the id of each run as it begins. What ``job.skip`` names is left out. A process that
    settles nothing is tried once more; after a second such process the remaining runs are reported as not
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
                results.setdefault(run, RunResult(run, RunStatus.NOT_RUN, error=f"not begun: {end.cause}"))
    ordered = {run: results[run] for run in job.runs}
    return Session(ordered, faults, buffers, tuple(processes), time.monotonic() - started)


def _one_process(
    job: Job, index: int, pending: Sequence[str], command: Command, limit: float, progress: Progress | None
) -> tuple[ProcessEnd, _Progress]:
    """Start one process, read its markers until it ends or its time is up, and end its whole group."""
    state = _Progress(frozenset(pending))
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
    state: _Progress,
    limit: float,
    job: Job,
    progress: Progress | None,
) -> bool:
    """Read standard output until it closes and the process ends. True when it has to be ended first.

    Each marker starts the clock again, so the limit holds for one run, however many the process does; it is
    asked again now and then, for other processes may find out meanwhile how long runs take. A run that turns
    out not to be worth waiting for (``skip``) is given up.
    """
    assert process.stdout is not None
    heard = time.monotonic()
    deadline = heard + limit + STARTUP_SECONDS
    buffered = b""
    descriptor = process.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if state.current is not None:
                state.limit = min(limit, job.limit(state.current))
                deadline = heard + state.limit
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
                    heard = time.monotonic()
                    deadline = heard + limit
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


def _charge(job: Job, end: ProcessEnd, state: _Progress, results: dict[str, RunResult]) -> None:
    """Give every run that this process settled its result, and charge the one that it died or hung in."""
    for run, (status, text) in state.ends.items():
        output: Path | None = job.out / f"{run}.out"
        if status is RunStatus.DONE and output is not None and not output.is_file():
            output = None
            if not text:
                status, text = RunStatus.FAULT, "the harness said done but wrote no output"
        kept = output if status is RunStatus.DONE else None
        results.setdefault(run, RunResult(run, status, kept, state.kernels.get(run, 0), text))
    if state.current is not None:
        run = state.current
        status = RunStatus.TIMEOUT if end.killed else RunStatus.FAULT
        error = f"no end within {state.limit:.3g} s" if end.killed else f"the process died: {end.cause}"
        if state.given_up:
            status, error = RunStatus.LEFT_OUT, state.given_up
        results.setdefault(run, RunResult(run, status, None, state.kernels.get(run, 0), error))


def _last_lines(path: Path, limit: int = 1 << 14) -> list[str]:
    """The last lines of a file, of its last ``limit`` bytes at most."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - limit))
        return [line for line in stream.read().decode(errors="replace").splitlines() if line.strip()]


def _with_tail(how: str, tail: Sequence[str]) -> str:
    return f"{how}; last words: {tail[-1].strip()}" if tail else how

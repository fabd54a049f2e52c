"""A process that tries mutants one after the other, and keeps the original kernel prepared between them.

A worker is this module run as a program: it reads one pickled :class:`Setup`, then pickled :class:`Request`s,
and writes pickled answers: lines of progress (``str``), then a :class:`Result` or the error
(:class:`BlamedError`).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from verify.contract.discovery import find_contracts
from verify.device.select import NoDevice, select_device
from verify.gate.blame import BlamedError, blame
from verify.mutation.bench import Bench
from verify.mutation.mutant import Mutant, Result
from verify.system.exec_watch import adopt_orphans
from verify.system.guard import guarded
from verify.system.process_group import end_descendants, end_group
from verify.system.progress import Progress


class WorkerLostError(Exception):
    """A worker ended before it answered; the message says how."""


@dataclass(frozen=True)
class Setup:
    """The settings shared by all requests. device: its name. architecture: None for the contracts' own."""

    device: str
    architecture: str | None
    every: bool


@dataclass(frozen=True)
class Request:
    """One mutant. kernel: the file of its contract, for its functions do not travel. likely: see
    Bench.run."""

    kernel: str
    mutant: Mutant
    likely: Sequence[str]


class Worker:
    """The client side of one process."""

    def __init__(self, process: subprocess.Popen[bytes], setup: Setup) -> None:
        self._process = process
        self._send(setup)

    def run(self, request: Request, progress: Progress) -> Result:
        """What became of a mutant. Raises WorkerLostError, and BlamedError for the kernel's or suite's
        own."""
        try:
            self._send(request)
            assert self._process.stdout is not None
            while isinstance(answer := pickle.load(self._process.stdout), str):
                progress(answer)
        except (EOFError, OSError, pickle.UnpicklingError):
            end_group(self._process)
            raise WorkerLostError(f"its process ended with code {self._process.returncode}") from None
        if isinstance(answer, BlamedError):
            raise answer
        assert isinstance(answer, Result)
        return answer

    def _send(self, what: Setup | Request) -> None:
        assert self._process.stdin is not None
        pickle.dump(what, self._process.stdin)
        self._process.stdin.flush()


@contextmanager
def start_worker(setup: Setup) -> Iterator[Worker]:
    """A worker, ended with the block, or with this process."""
    command = (sys.executable, "-m", "verify.mutation.worker")
    scratch = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    how = {"start_new_session": True, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with guarded(command, env=scratch, **how) as process:
        try:
            yield Worker(process, setup)
        finally:
            end_group(process)


def _answer() -> None:
    """The worker's main function."""
    adopt_orphans(True)  # so that a launcher's daemons are killed with the worker
    # A contract's output goes to standard error: standard output is for the answers.
    answers, speaking = os.fdopen(os.dup(1), "wb"), threading.Lock()
    os.dup2(2, 1)

    def say(answer: str | Result | BlamedError) -> None:
        with speaking:
            pickle.dump(answer, answers)
            answers.flush()

    setup: Setup = pickle.load(sys.stdin.buffer)
    kernel, bench = "", None
    try:
        while True:
            try:
                request: Request = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            try:
                if bench is None or request.kernel != kernel:
                    kernel, bench = request.kernel, None  # drop the previous kernel's preparation first
                    bench = _bench(kernel, setup, say)
                say(bench.run(request.mutant, setup.every, request.likely))
            except BaseException as error:
                # Tracebacks cannot be pickled, so the error is attributed here.
                say(BlamedError(*blame(error)))
    finally:
        end_descendants()


def _bench(kernel: str, setup: Setup, progress: Progress) -> Bench:
    device = select_device(setup.device)
    if isinstance(device, NoDevice):
        raise ValueError(device.reason)
    (contract,) = find_contracts([kernel])
    return Bench(contract, device, setup.architecture, progress)


if __name__ == "__main__":
    # Imported by name, so that pickled classes are the same on both sides.
    from verify.mutation import worker

    worker._answer()

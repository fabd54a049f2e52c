"""Runs one program to its end, and reports which of its processes the CPU device cannot have checked."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from verify.device.elf import ProgramFile, read_program
from verify.system.exec_watch import ExecWatch, adopt_orphans
from verify.system.guard import guarded, start_guard
from verify.system.process_group import descendants

ORPHAN_SECONDS = 2.0
"""Time for processes that outlive the program to end on their own and write their reports."""

SETTLE_SECONDS = 0.5
"""Within this time, a process that was just forked has become its program."""


class NoProgramError(Exception):
    """The named file is not a program; one line."""


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended.

    code: its exit status, negative for a signal. interrupts: how often it was interrupted. escaped: one line
    about a process that used CUDA without the CPU device, or that never ended; empty if there is none.
    notes: other processes of it that were killed.
    """

    code: int
    interrupts: int = 0
    escaped: str = ""
    notes: tuple[str, ...] = ()


def run_watched(
    command: Sequence[str],
    name: str,
    environment: Mapping[str, str],
    reports: Path,
    stdout: int | None = None,
    stderr: int | None = None,
) -> ProgramEnd:
    """Start ``command`` under ``name`` and wait for it; a second interrupt kills it.

    reports: the folder where each of its processes writes its report. Raises NoProgramError.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    watch = ExecWatch()
    start_guard()
    before = descendants(os.getpid())
    adopt_orphans(True)
    try:
        code, interrupts = _run(command, name, environment, watch, stdout, stderr)
        outlived, notes = _outliving(before, reports)
        if not watch.watching:
            notes = ("processes that the program starts cannot be watched on this system (seccomp)", *notes)
    finally:
        adopt_orphans(False)
    return ProgramEnd(code, interrupts, _escaped(watch.programs, reports) or outlived, notes)


def signal_name(number: int) -> str:
    """``SIGTERM``, or the number of a signal without a name."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _run(
    command: Sequence[str],
    name: str,
    environment: Mapping[str, str],
    watch: ExecWatch,
    stdout: int | None,
    stderr: int | None,
) -> tuple[int, int]:
    """The program's exit status, and how often it was interrupted."""
    starting = guarded(
        [name, *command[1:]],
        executable=command[0],
        env=dict(environment),
        stdout=stdout,
        stderr=stderr,
        preexec_fn=watch.enter,
    )
    with _interrupts_to_the_program() as interrupts, contextlib.ExitStack() as until_its_end:
        try:
            process = until_its_end.enter_context(starting)
        except OSError as error:
            raise NoProgramError(f"{name}: cannot be started: {error.strerror}") from None
        finally:
            watch.started()
        while True:
            try:
                return process.wait(0.2), len(interrupts)
            except subprocess.TimeoutExpired:
                if len(interrupts) > 1:
                    process.kill()  # interrupted twice: it does not react


@contextlib.contextmanager
def _interrupts_to_the_program() -> Iterator[list[int]]:
    """Leave Ctrl-C, which reaches the whole foreground group, to the program; its report is still read.

    Yields a list to which each interrupt is appended.
    """
    interrupts: list[int] = []
    try:
        # A handler, not SIG_IGN, which the program would inherit.
        before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    except ValueError:  # not the main thread
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        if interrupts:
            # The command's signal thread also receives each interrupt, and must find this handler in place.
            time.sleep(0.5)
        signal.signal(signal.SIGINT, before)


def _escaped(programs: Sequence[tuple[int, Path]], reports: Path) -> str:
    """The first program with device code that ran without the CPU device's runtime, as one line."""
    for process, file in dict.fromkeys(programs):
        if not (file.is_file() and os.access(file, os.X_OK)):
            continue  # a path that a shell tried along PATH
        facts = _facts(file)
        if facts is None or not facts.fat_binaries:
            continue
        with contextlib.suppress(OSError):
            if str(file) in (reports / f"{process}.json.loaded").read_text().splitlines():
                continue
        why = "its environment had been changed"
        if facts.runtime is None:
            why = "it carries its own copy of the CUDA runtime (build it with -cudart shared)"
        return f"the program started {file}, which ran outside of the CPU device: {why}"
    return ""


def _outliving(before: Sequence[int], reports: Path) -> tuple[str, tuple[str, ...]]:
    """Kill the program's remaining processes; returns a line about one that can use CUDA, or notes."""
    end = time.monotonic()
    while True:
        others = {*before, *(below for one in before for below in descendants(one))}
        running = [p for p in descendants(os.getpid()) if p not in others and _is_own(p, reports)]
        capable = [one for one in running if _can_use_cuda(one)]
        if not running or time.monotonic() > end + (ORPHAN_SECONDS if capable else SETTLE_SECONDS):
            break
        time.sleep(0.05)
    shown = [f"process {one} ({Path(_link(one, 'exe')).name or '?'})" for one in capable or running]
    for one in running:
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)
    for one in running:
        with contextlib.suppress(OSError):
            os.waitpid(one, 0)
    if capable:
        late = f"was still running {ORPHAN_SECONDS:g} s after its end, and was killed without a report"
        return f"{shown[0]} of the program {late}: have the program wait for it", ()
    return "", tuple(f"{one} outlived the program and was killed" for one in shown)


def _is_own(process: int, reports: Path) -> bool:
    """Whether a process is running, and does not belong to another program started meanwhile."""
    folder = Path(f"/proc/{process}")
    try:
        if folder.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z":
            os.waitpid(process, os.WNOHANG)
            return False
        environment = folder.joinpath("environ").read_bytes()
    except OSError:
        return False
    return b"VERIFY_MACHINE=" not in environment or os.fsencode(reports) in environment


def _can_use_cuda(process: int) -> bool:
    """Whether a process has device code, or has loaded a CUDA runtime or driver."""
    try:
        libraries = Path(f"/proc/{process}/maps").read_text(errors="replace")
    except OSError:
        return False
    if "libcudart" in libraries or "libcuda.so" in libraries:
        return True
    facts = _facts(Path(_link(process, "exe") or "/"))
    return facts is not None and bool(facts.fat_binaries)


def _link(process: int, name: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{process}/{name}")
    return ""


@lru_cache(maxsize=256)
def _facts(file: Path) -> ProgramFile | None:
    with contextlib.suppress(OSError):
        return read_program(file)
    return None

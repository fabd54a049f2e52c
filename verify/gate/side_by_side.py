"""Runs the gates of several kernels concurrently, one process each, on the CPU device.

The gate of one kernel spends most of its time in the oracle, which is Python and uses one core. The processes
share only the build cache. On a GPU, all kernels stay in one process, which leases the GPU.

A worker is this module run as a program: it reads one pickled :class:`Work` and writes pickled answers: lines
of progress (``str``), and finally the kernel's reports (``tuple``) or an error (:class:`BlamedError`).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from verify.check.specs import usual_checks
from verify.contract.discovery import find_contracts
from verify.device.interface import Capability, Device
from verify.device.select import devices
from verify.gate.blame import BlamedError, blame
from verify.gate.gate import notes_of, run_gate
from verify.gate.selection import Selection, keep_folder, narrowed
from verify.report.report import KernelReport, Report
from verify.system.exec_watch import adopt_orphans
from verify.system.exit_code import ExitCode
from verify.system.guard import guarded
from verify.system.process_group import end_descendants, end_group
from verify.system.progress import Progress


@dataclass(frozen=True)
class Work:
    """A worker's task.

    kernel: the contract's file, since its functions cannot be pickled. selection: without contracts. device,
    architecture: the device's name and its architecture.
    """

    kernel: str
    selection: Selection
    device: str
    architecture: str


def run_kernels(selection: Selection, device: Device | None, missing: str, progress: Progress) -> Report:
    """Like :func:`verify.gate.gate.run_gate`, but faster with several kernels and cores.

    Kernels without a selected fixture are skipped. Raises the same errors, SelectionError if no kernel has a
    selected fixture, and BlamedError for any error of a kernel in a process of its own.
    """
    selection = narrowed(selection)
    processes = min(len(selection.contracts), len(os.sched_getaffinity(0)))
    # The top rung is climbed once for all kernels.
    shared = device is not None and Capability.SHARED_BY_PROCESSES in device.capabilities
    if device is None or not shared or processes < 2 or selection.ladder:
        return run_gate(selection, device, missing, progress)
    started = time.monotonic()
    wanted = []
    for contract in selection.contracts:
        given = replace(selection, contracts=(), keep=keep_folder(selection, contract))
        wanted.append(Work(str(contract.file), given, device.name, device.info().architecture))
    with ThreadPoolExecutor(processes) as pool:
        try:
            reports = [r for part in pool.map(lambda work: _ask(work, progress), wanted) for r in part]
        except BaseException:
            end_descendants()  # otherwise the pool would wait for the remaining kernels
            raise
    return Report(
        tuple(reports),
        device.info(),
        tuple(selection.checks or usual_checks(device)),
        notes_of(device, selection.contracts, [o for report in reports for o in report.outcomes]),
        time.monotonic() - started,
        selection.strict,
    )


def _ask(work: Work, progress: Progress) -> Sequence[KernelReport]:
    """Start a worker and read its answers until the last."""
    command = (sys.executable, "-m", "verify.gate.side_by_side")
    # If it is killed, its files are deleted with this process's scratch folder.
    scratch = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    with guarded(
        command, env=scratch, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            with process.stdin as stdin:
                pickle.dump(work, stdin)
            while isinstance(answer := pickle.load(process.stdout), str):
                progress(answer)
        except (EOFError, OSError, pickle.UnpicklingError):
            end_group(process)
            code = process.returncode
            how = f"{work.kernel}: its process ended with code {code} before its report"
            # It exits early by itself only if the contract makes it.
            defect = code is None or code < 0
            raise BlamedError(how, ExitCode.NOT_VERIFIED if defect else ExitCode.USAGE) from None
        finally:
            end_group(process)
    if isinstance(answer, BlamedError):
        raise answer
    return answer


def _answer() -> None:
    """The worker's main function."""
    work: Work = pickle.load(sys.stdin.buffer)
    adopt_orphans(True)  # so that a launcher's daemons are killed with the worker
    # A contract's output goes to standard error: standard output is for the answers.
    answers, writing = os.fdopen(os.dup(1), "wb"), threading.Lock()
    os.dup2(2, 1)

    def send(answer: str | tuple[KernelReport, ...] | BlamedError) -> None:
        with writing:
            pickle.dump(answer, answers)
            answers.flush()

    try:
        whole = replace(work.selection, contracts=find_contracts([work.kernel]))
        (device,) = devices()[work.device].variants((work.architecture,))
        send(run_gate(whole, device, "", send).kernels)
    except BaseException as error:
        # Tracebacks cannot be pickled, so the error is attributed here.
        send(BlamedError(*blame(error)))
    finally:
        end_descendants()


if __name__ == "__main__":
    # Imported by name, so that pickled classes are the same on both sides.
    from verify.gate import side_by_side

    side_by_side._answer()

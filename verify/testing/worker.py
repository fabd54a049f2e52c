"""The process in which pytest's contracts run, so that a contract that exits or breaks it ends no test run.

It is this module run as a program: it reads pickled requests and answers each with a pickled value, or with a
:class:`BlamedError`. One process serves all contracts of a test process, and is restarted if it ends.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from verify.contract.discovery import fixture_file, load_contract
from verify.device.interface import Device
from verify.device.select import NoDevice, select_device
from verify.fixture.schema import load_fixtures
from verify.gate.blame import BlamedError, blame
from verify.gate.gate import run_gate
from verify.gate.selection import Selection
from verify.report.report import outcome_as_json
from verify.system.exec_watch import adopt_orphans
from verify.system.exit_code import ExitCode
from verify.system.guard import guarded
from verify.system.process_group import end_descendants, end_group
from verify.system.scratch import make_scratch, sweep_scratch


@dataclass(frozen=True)
class Listing:
    """Requests a contract's name and the names of its fixtures."""

    file: Path

    def answer(self) -> tuple[str, list[str]]:
        contract = load_contract(self.file)
        return contract.name, [f.name for f in load_fixtures(fixture_file(contract), contract)]


@dataclass(frozen=True)
class Batch:
    """Requests the outcomes of fixtures and checks of a contract on a device."""

    file: Path
    fixtures: Sequence[str]
    checks: Sequence[str]
    device: str
    strict: bool

    def answer(self) -> list[dict[str, Any]]:
        device = device_of(self.device)
        missing = device.reason if isinstance(device, NoDevice) else ""
        selection = Selection(
            (load_contract(self.file),),
            fixtures=tuple(self.fixtures),
            checks=tuple(self.checks),
            strict=self.strict,
        )
        chosen = None if isinstance(device, NoDevice) else device
        report = run_gate(selection, chosen, missing, lambda _: None)
        return [outcome_as_json(outcome) for outcome in report.outcomes]


@cache
def device_of(name: str) -> Device | NoDevice:
    """The device of that name, or why there is none; selected once."""
    return select_device(name)


class Worker:
    """The client side. Starts the process when it is first needed."""

    def __init__(self) -> None:
        self._life = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: Listing | Batch) -> Any:
        """The answer. Raises BlamedError with an error's line and code, also if the process ended instead."""
        if self._process is None:
            command = (sys.executable, "-m", "verify.testing.worker")
            started = guarded(command, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._process = self._life.enter_context(started)
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            answer = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self.close()
            code = process.returncode
            how = f"{request.file}: its process ended with code {code} before it answered"
            defect = code is None or code < 0
            raise BlamedError(how, ExitCode.NOT_VERIFIED if defect else ExitCode.USAGE) from None
        if isinstance(answer, BlamedError):
            raise answer
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            try:
                self._process.stdin.close()
                self._process.wait(5)
            except (OSError, subprocess.TimeoutExpired):
                pass
            end_group(self._process)
            self._life.close()
            self._process = None


def _serve() -> None:
    """The process's main function: serves requests until standard input ends."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a contract's output goes to standard error
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    adopt_orphans(True)
    sweep_scratch()
    scratch = make_scratch()
    tempfile.tempdir = str(scratch)
    try:
        while True:
            try:
                request: Listing | Batch = pickle.load(requests)
            except EOFError:
                return
            answer: object
            try:
                answer = request.answer()
            except BaseException as error:
                answer = BlamedError(*blame(error))
            pickle.dump(answer, answers)
            answers.flush()
    finally:
        end_descendants()
        # Not tempfile.tempdir: a contract may have set it to any of the user's folders.
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    # Imported by name, so that pickled classes are the same on both sides.
    from verify.testing import worker

    worker._serve()

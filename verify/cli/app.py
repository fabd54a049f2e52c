"""The command line: one typer application, one module per command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import typer

from verify.cli import clean, doctor, list_, mutate, run, sanitize, show, tokens
from verify.cli import program as program_command
from verify.cli.console import (
    Finished,
    ReportLostError,
    end_output,
    fail,
    out,
    release_terminal,
    reporting,
    take_output,
)
from verify.gate.blame import USAGE_ERRORS, blame
from verify.system.completion import SIGNALS
from verify.system.exit_code import ExitCode
from verify.system.guard import start_no_more
from verify.system.process_group import end_descendants
from verify.system.scratch import make_scratch, sweep_scratch
from verify.toolchain.compile import BuildError

# Recent versions of typer bundle click; this finds the base of usage errors in all versions.
_ClickException: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(
    name="verify",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Proves that a hand-written CUDA kernel computes the right numbers, touches only the bytes it may "
    "touch, and synchronises properly: on a GPU, or on the CPU device where there is none.",
    epilog="Exit codes: 0 clean, 1 findings, 2 usage, 3 inconclusive or not run.",
)
app.command("run")(reporting(run.run))
app.command("sanitize")(reporting(sanitize.sanitize))
app.command("tokens")(reporting(tokens.tokens))
app.command("mutate")(reporting(mutate.mutate))
app.command("list")(reporting(list_.list_kernels))
app.command("show")(reporting(show.show))
app.command("doctor")(reporting(doctor.doctor))
app.command("clean")(reporting(clean.clean))


_stopping = threading.Event()
"""Set when a signal has asked the command to stop."""
_made: list[Path] = []
"""The scratch folder, while it exists."""


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; an error is one line, never a traceback."""
    _watch_signals()
    try:
        with _scratch(), _no_result_while_stopping():
            try:
                code = _command(arguments)
            except _ClickException as error:
                error.show()
                code = error.exit_code
            except Finished as end:
                code = int(end.code or 0)
            except ReportLostError:
                raise
            except BaseException as error:
                code = _failed(arguments, error)
            end_output()
            return code
    except ReportLostError as error:
        return _report(str(error), ExitCode.NOT_VERIFIED)
    except BaseException as error:
        return _report(*blame(error))


def _command(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["sanitize"] and "--" in arguments:
        # After "--" comes any program with its own options, not a kernel of the suite.
        try:
            return program_command.main(arguments[1:])
        except SystemExit as end:  # from argparse
            return end.code if isinstance(end.code, int) else ExitCode.USAGE
    code = app(list(arguments), prog_name="verify", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _failed(arguments: Sequence[str], error: BaseException) -> int:
    """Report an error on standard error, and with ``--json`` on standard output; returns its exit code."""
    if isinstance(error.__context__, BrokenPipeError):  # typer prints the help, and fails like this
        raise ReportLostError("standard output was closed early")
    if isinstance(error, (typer.Abort, KeyboardInterrupt)):
        return _report("interrupted", 130)
    if os.environ.get("VERIFY_TRACEBACK") and not isinstance(error, (*USAGE_ERRORS, BuildError)):
        traceback.print_exception(error)
    message, code = blame(error)
    if "--json" in arguments:
        take_output()
        out.print_json(json.dumps({"schema": 1, "verdict": "error", "exit_code": code, "error": message}))
    return _report(message, code)


def _report(message: str, code: int) -> int:
    with suppress(Finished):
        fail(message, code)
    return code


@contextmanager
def _no_result_while_stopping() -> Iterator[None]:
    """Once a signal stops the command, wait for that: its killed processes must not become a verdict."""
    try:
        yield
    finally:
        while _stopping.is_set():
            time.sleep(1)


@contextmanager
def _scratch() -> Iterator[None]:
    """A folder for all temporary files, so that nothing is left behind: after a kill, the next command
    deletes it."""
    sweep_scratch()
    _made.append(make_scratch())
    tempfile.tempdir = str(_made[-1])
    try:
        yield
    finally:
        # Not tempfile.tempdir: a contract may have set it to any of the user's folders.
        shutil.rmtree(_made.pop(), ignore_errors=True)
        tempfile.tempdir = None


def _watch_signals() -> None:
    """Start a thread that ends the command on a signal. The main thread may be in a wait that the signal does
    not interrupt, because it arrived just before the wait or on another thread."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _note)

    def listen() -> None:
        while True:
            for number in os.read(reading, 16):
                if signal.getsignal(number) is _note:
                    _end_now(number)

    threading.Thread(target=listen, daemon=True).start()


def _note(number: int, _: object) -> None:
    """The listening thread does the rest. This must not wait: the main thread may be starting a process."""
    _stopping.set()


def _end_now(number: int) -> NoReturn:
    """Kill all descendants and exit: they lead sessions of their own, and threads would go on for minutes."""
    _stopping.set()  # the main thread may not have run the handler yet
    start_no_more()  # otherwise a killed run would be followed by the next one
    end_descendants()
    for _ in range(20):  # a thread may still be writing there, until it would start a process
        left = [folder for folder in _made if folder.exists()]
        if not left:
            break
        for folder in left:
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)
    try:
        if number == signal.SIGINT:
            release_terminal()
            os.write(2, b"verify: interrupted\n")  # sys.stderr may be in use by another thread
        else:
            os.write(2, f"verify: terminated by {signal.Signals(number).name} before a verdict\n".encode())
    finally:  # the reader of standard error may have been killed by the same signal
        os._exit(128 + number)

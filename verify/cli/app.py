"""The command line: one typer application, one module a command."""

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

# Typer brings its own click from some version on; this is the base of its usage errors in all of them.
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


_asked = threading.Event()
_made: list[Path] = []
"""The scratch folder, while there is one."""
"""A signal asked the command to end."""


def main(arguments: Sequence[str]) -> int:
    """The exit code of a command; any error is one line, never a traceback."""
    _watch_signals()
    try:
        with _scratch(), _not_before_asked():
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
        return _told(str(error), ExitCode.NOT_VERIFIED)
    except BaseException as error:
        return _told(*blame(error))


def _command(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["sanitize"] and "--" in arguments:
        # What stands behind "--" is any program with options of its own, not one of our kernels.
        try:
            return program_command.main(arguments[1:])
        except SystemExit as end:  # of argparse
            return end.code if isinstance(end.code, int) else ExitCode.USAGE
    code = app(list(arguments), prog_name="verify", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _failed(arguments: Sequence[str], error: BaseException) -> int:
    """An error on standard error, and as JSON on standard output where JSON was asked for; its exit code."""
    if isinstance(error.__context__, BrokenPipeError):  # help is printed by typer, which gives up so
        raise ReportLostError("standard output was closed early")
    if isinstance(error, (typer.Abort, KeyboardInterrupt)):
        return _told("interrupted", 130)
    if os.environ.get("VERIFY_TRACEBACK") and not isinstance(error, (*USAGE_ERRORS, BuildError)):
        traceback.print_exception(error)
    message, code = blame(error)
    if "--json" in arguments:
        take_output()
        out.print_json(json.dumps({"schema": 1, "verdict": "error", "exit_code": code, "error": message}))
    return _told(message, code)


def _told(message: str, code: int) -> int:
    with suppress(Finished):
        fail(message, code)
    return code


@contextmanager
def _not_before_asked() -> Iterator[None]:
    """Who is asked to end ends by that, not with what it makes of the processes that were killed for it."""
    try:
        yield
    finally:
        while _asked.is_set():
            time.sleep(1)


@contextmanager
def _scratch() -> Iterator[None]:
    """One folder for all that is temporary here, so that an end at any moment leaves nothing: what a kill
    leaves, the next command deletes."""
    sweep_scratch()
    _made.append(make_scratch())
    tempfile.tempdir = str(_made[-1])
    try:
        yield
    finally:
        # Not tempfile.tempdir: a contract can have set that to any folder of the user's.
        shutil.rmtree(_made.pop(), ignore_errors=True)
        tempfile.tempdir = None


def _watch_signals() -> None:
    """Have a thread end the command when it is asked to: the main one may be in a wait that no signal ends,
    for a signal that comes just before the wait, or to another thread, does not interrupt it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _noted)

    def listen() -> None:
        while True:
            for number in os.read(reading, 16):
                if signal.getsignal(number) is _noted:
                    _end_now(number)

    threading.Thread(target=listen, daemon=True).start()


def _noted(number: int, _: object) -> None:
    """The thread that listens does the rest. Not a wait: the main one may be about to start a process."""
    _asked.set()


def _end_now(number: int) -> NoReturn:
    """What was started leads sessions of its own, and threads would go on for minutes."""
    _asked.set()  # the main thread may not have come to note it
    start_no_more()  # a run whose process was killed would be followed by the next one
    end_descendants()
    for _ in range(20):  # a thread may write there until it would start a process
        left = [folder for folder in _made if folder.exists()]
        if not left:
            break
        for folder in left:
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)
    try:
        if number == signal.SIGINT:
            release_terminal()
            os.write(2, b"verify: interrupted\n")  # sys.stderr may be in use just now
        else:
            os.write(2, f"verify: ended by {signal.Signals(number).name} before a verdict\n".encode())
    finally:  # who reads standard error may have been ended by the same signal
        os._exit(128 + number)

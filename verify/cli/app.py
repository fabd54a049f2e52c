"""The command line: one typer application, one module a command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from verify.blame import USAGE_ERRORS, blame, contract_frame
from verify.cli import clean, doctor, list_, run, sanitize, show, tokens
from verify.cli.console import fail, release_terminal
from verify.device import program_command
from verify.device.guard import start_no_more
from verify.device.process_group import end_descendants
from verify.harness.build import BuildError

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
app.command("run")(run.run)
app.command("sanitize")(sanitize.sanitize)
app.command("tokens")(tokens.tokens)
app.command("list")(list_.list_kernels)
app.command("show")(show.show)
app.command("doctor")(doctor.doctor)
app.command("clean")(clean.clean)


_asked = threading.Event()
"""A signal asked the command to end."""


def main() -> None:
    """Run a command; any error is one line and its exit code, never a traceback."""
    arguments = sys.argv[1:]
    _watch_signals()
    try:
        with _scratch(), _not_before_asked():
            _command(arguments)
    except _ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted", 130)
    except SystemExit as error:
        # A contract that ends the process has proved nothing, whatever code it ends with.
        if contract_frame(error) is None:
            raise
        _end(arguments, *blame(error))
    except Exception as error:
        if os.environ.get("VERIFY_TRACEBACK") and not isinstance(error, (*USAGE_ERRORS, BuildError)):
            raise
        _end(arguments, *blame(error))


def _command(arguments: Sequence[str]) -> NoReturn:
    if arguments[:1] == ["sanitize"] and "--" in arguments:
        # What stands behind "--" is any program with options of its own, not one of our kernels.
        raise SystemExit(program_command.main(arguments[1:]))
    code = app(arguments, prog_name="verify", standalone_mode=False)
    raise SystemExit(code if isinstance(code, int) else 0)


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
    """One folder for all that is temporary here, so that an end at any moment leaves nothing."""
    tempfile.tempdir = tempfile.mkdtemp(prefix="verify-")
    try:
        yield
    finally:
        shutil.rmtree(tempfile.tempdir, ignore_errors=True)
        tempfile.tempdir = None


def _watch_signals() -> None:
    """Have a thread end the command when it is asked to: the main one may be in a wait that no signal ends,
    for a signal that comes just before the wait, or to another thread, does not interrupt it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
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
    start_no_more()  # a run whose process was killed would be followed by the next one
    end_descendants()
    scratch = tempfile.tempdir
    for _ in range(20):  # a thread may write there until it would start a process
        if scratch is None or not os.path.exists(scratch):
            break
        shutil.rmtree(scratch, ignore_errors=True)
        time.sleep(0.05)
    if number == signal.SIGINT:
        release_terminal()
        os.write(2, b"verify: interrupted\n")  # sys.stderr may be in use just now
    else:
        os.write(2, f"verify: ended by {signal.Signals(number).name} before a verdict\n".encode())
    os._exit(128 + number)


def _end(arguments: Sequence[str], message: str, code: int) -> NoReturn:
    """The error on standard error, and as JSON on standard output where JSON was asked for."""
    if "--json" in arguments:
        print(json.dumps({"schema": 1, "verdict": "error", "exit_code": code, "error": message}))
    fail(message, code)

"""What the commands share: output, progress, and how a command ends."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, NoReturn

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from verify.gate.blame import BlamedError, blame, contract_frame
from verify.system.completion import CLOSED
from verify.system.exit_code import ExitCode
from verify.system.printable import printable

_PIPED_WIDTH = 150
"""Columns if the output is not a terminal: a table in a CI log must not be squeezed into 80."""


class _Harmless:
    """A renderable with control characters in its text escaped; the console's own control codes stay."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


class _OnlyHarmless(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Harmless(one) for one in renderables]


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise ReportLostError("the report could not be written: Broken pipe")


def _console(stderr: bool, width: int | None) -> Console:
    """A console that prints names and messages literally: no markup, no emoji, no control characters."""
    console = _Console(stderr=stderr, soft_wrap=True, width=width, markup=False, emoji=False)
    console.push_render_hook(_OnlyHarmless())
    return console


class Finished(SystemExit):
    """A command has finished; distinct from other SystemExits, since a contract may also call exit."""


class ReportLostError(Exception):
    """The report could not be written to standard output."""


class _Report(io.TextIOWrapper):
    """Standard output for the report, raising ReportLostError if it cannot be written."""

    def write(self, text: str) -> int:
        return self._checked(lambda: super(_Report, self).write(text))

    def flush(self) -> None:
        self._checked(super().flush)

    def _checked(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as error:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # otherwise the rest is retried
            raise ReportLostError(f"the report could not be written: {error.strerror}") from None


out = _console(False, None if sys.stdout.isatty() else _PIPED_WIDTH)
err = _console(True, None)


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """A command with only its report on standard output, not the output of a contract, for example."""

    @wraps(command)
    def alone(*arguments: Any, **options: Any) -> None:
        take_output()
        try:
            command(*arguments, **options)
        except KeyboardInterrupt as error:  # typer would turn it into an exit code, whoever raised it
            if contract_frame(error) is None:
                raise
            raise BlamedError(*blame(error)) from None

    return alone


def take_output() -> None:
    """Reserve standard output for the report, and redirect everything else to standard error."""
    if isinstance(out.file, _Report):
        return
    if 1 in CLOSED:
        raise ReportLostError("standard output is closed: there is nowhere to report to")
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    out.file = _Report(os.fdopen(kept, "wb"), encoding="utf-8", errors="backslashreplace")


def end_output() -> None:
    """Flush the report. Raises ReportLostError."""
    if isinstance(out.file, _Report):
        out.file.flush()


def finish(code: int) -> NoReturn:
    """End the command after its report."""
    raise Finished(code)


def fail(message: str, code: int = ExitCode.USAGE) -> NoReturn:
    """One line on standard error, then exit."""
    with suppress(OSError, ReportLostError):
        err.print(f"verify: {message}", style="bold red", markup=False, highlight=False)
    raise Finished(code)


def release_terminal() -> None:
    """Clear a live status and show the cursor, for an exit without unwinding."""
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), b"\r\x1b[2K\x1b[?25h")


@contextmanager
def progress_line(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A progress function: a live status on a terminal, one line each when piped, nothing when quiet."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with err.status("starting") as status:
            yield lambda text: status.update(Text(printable(text)))
    else:
        started = time.monotonic()

        def report(text: str) -> None:
            line = f"verify {time.monotonic() - started:6.1f} s  {printable(text)}"
            with suppress(OSError):  # without a reader; the report has everything
                print(line, file=sys.stderr, flush=True)

        yield report

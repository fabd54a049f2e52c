"""What the commands share: where things are printed, how progress is shown, how a command ends."""

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
"""Columns when the output is no terminal: a table in a CI log must not be squeezed into 80."""


class _Harmless:
    """A renderable whose text steers nothing; the console's own control codes stay."""

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
    """Names and messages come from outside: they are neither markup nor emoji, and steer no terminal."""
    console = _Console(stderr=stderr, soft_wrap=True, width=width, markup=False, emoji=False)
    console.push_render_hook(_OnlyHarmless())
    return console


class Finished(SystemExit):
    """A command has come to its end; no other exit is one, for a contract may ask for an exit too."""


class ReportLostError(Exception):
    """Standard output does not take the report."""


class _Report(io.TextIOWrapper):
    """Standard output as the report has it. What is not written is never just an exit code."""

    def write(self, text: str) -> int:
        return self._told(lambda: super(_Report, self).write(text))

    def flush(self) -> None:
        self._told(super().flush)

    def _told(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as error:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # or the rest is tried again
            raise ReportLostError(f"the report could not be written: {error.strerror}") from None


out = _console(False, None if sys.stdout.isatty() else _PIPED_WIDTH)
err = _console(True, None)


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose report alone goes to standard output, not what a contract prints, say."""

    @wraps(command)
    def alone(*arguments: Any, **options: Any) -> None:
        take_output()
        try:
            command(*arguments, **options)
        except KeyboardInterrupt as error:  # which typer would make an exit code of, whoever raised it
            if contract_frame(error) is None:
                raise
            raise BlamedError(*blame(error)) from None

    return alone


def take_output() -> None:
    """Keep standard output for the report, and give everything else standard error in its place."""
    if isinstance(out.file, _Report):
        return
    if 1 in CLOSED:
        raise ReportLostError("standard output is closed: there is nowhere to report to")
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    out.file = _Report(os.fdopen(kept, "wb"), encoding="utf-8", errors="backslashreplace")


def end_output() -> None:
    """Write what is not written yet. Raises ReportLostError."""
    if isinstance(out.file, _Report):
        out.file.flush()


def finish(code: int) -> NoReturn:
    """End the command, its report printed."""
    raise Finished(code)


def fail(message: str, code: int = ExitCode.USAGE) -> NoReturn:
    """One line on standard error, then exit."""
    with suppress(OSError, ReportLostError):
        err.print(f"verify: {message}", style="bold red", markup=False, highlight=False)
    raise Finished(code)


def release_terminal() -> None:
    """Clear a live status and give the cursor back, for an end that unwinds nothing."""
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

        def say(text: str) -> None:
            line = f"verify {time.monotonic() - started:6.1f} s  {printable(text)}"
            with suppress(OSError):  # nobody listens, and the report says it all
                print(line, file=sys.stderr, flush=True)

        yield say

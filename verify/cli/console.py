"""What the commands share: where things are printed, how progress is shown, how an error ends a command."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from verify.finding import EXIT_USAGE
from verify.printable import printable

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


def _console(stderr: bool, width: int | None) -> Console:
    """Names and messages come from outside: they are neither markup nor emoji, and steer no terminal."""
    console = Console(stderr=stderr, soft_wrap=True, width=width, markup=False, emoji=False)
    console.push_render_hook(_OnlyHarmless())
    return console


out = _console(False, None if sys.stdout.isatty() else _PIPED_WIDTH)
err = _console(True, None)


def fail(message: str, code: int = EXIT_USAGE) -> NoReturn:
    """One line on standard error, then exit."""
    err.print(f"verify: {message}", style="bold red", markup=False, highlight=False)
    raise SystemExit(code)


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
            print(line, file=sys.stderr, flush=True)

        yield say

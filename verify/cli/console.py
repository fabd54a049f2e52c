"""What the commands share: where things are printed, how progress is shown, how an error ends a command."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console

from verify.finding import EXIT_USAGE

_PIPED_WIDTH = 150
"""Columns when the output is no terminal: a table in a CI log must not be squeezed into 80."""

out = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True, soft_wrap=True)


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
            yield lambda text: status.update(text)
    else:
        started = time.monotonic()

        def say(text: str) -> None:
            print(f"verify {time.monotonic() - started:6.1f} s  {text}", file=sys.stderr, flush=True)

        yield say

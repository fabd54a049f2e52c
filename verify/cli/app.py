"""The command line: one typer application, one module a command."""

from __future__ import annotations

import sys

import typer

from verify.cli import clean, doctor, list_, run, sanitize, show, tokens
from verify.cli.console import USAGE_ERRORS, fail
from verify.device import program_command
from verify.harness.build import BuildError

app = typer.Typer(
    name="verify",
    no_args_is_help=True,
    rich_markup_mode="rich",
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


def main() -> None:
    """Run a command; a known error is one line and its exit code, never a traceback."""
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["sanitize"] and "--" in arguments:
            # What stands behind "--" is any program with options of its own, not one of our kernels.
            raise SystemExit(program_command.main(arguments[1:]))
        app(arguments, prog_name="verify")
    except USAGE_ERRORS as error:
        fail(str(error))
    except BuildError as error:
        fail(str(error), 3)
    except KeyboardInterrupt:
        fail("interrupted; nothing was verified", 130)

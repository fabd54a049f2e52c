"""Attributes an exception to its cause: a one-line message and the exit code."""

from __future__ import annotations

import traceback

from verify.contract.discovery import ContractError
from verify.contract.expression import ExpressionError
from verify.contract.module import disturbed, is_contract_code
from verify.fixture.cases import ProfileError
from verify.fixture.schema import FixtureError
from verify.gate.selection import SelectionError
from verify.system.exit_code import ExitCode
from verify.system.shadowed import shadowed
from verify.toolchain.compile import BuildError

USAGE_ERRORS = (ContractError, FixtureError, SelectionError, ExpressionError, ProfileError)
"""Errors whose message alone is sufficient."""


class BlamedError(Exception):
    """An error of another process: args are the line and the exit code that :func:`blame` returned there."""


def contract_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost frame of a contract's own code that an exception passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f for f in reversed(frames) if is_contract_code(f.filename)), None)


def blame(error: BaseException) -> tuple[str, int]:
    """One line with file, line and error, and an exit code.

    An exception that passed through a contract's code is the contract's fault: a usage error, with its line.
    So is an error after a contract has changed the interpreter. A ValueError is bad input. Anything else is a
    defect of the suite, and verifies nothing.
    """
    changed = disturbed()
    if isinstance(error, BlamedError):
        message, code = error.args
        return message, code
    if isinstance(error, USAGE_ERRORS):
        return str(error), ExitCode.USAGE
    what = f"{type(error).__name__}: {_text(error)}"
    own = contract_frame(error)
    if own is not None:
        return f"{own.filename}:{own.lineno}: in {own.name}: {what}", ExitCode.USAGE
    if changed:
        whose = f"a contract's code has changed {', '.join(changed)}, which verify needs"
        return f"{whose}: {what}", ExitCode.USAGE
    if isinstance(error, BuildError):
        return str(error), ExitCode.NOT_VERIFIED
    if isinstance(error, ValueError):
        return _text(error), ExitCode.USAGE
    if isinstance(error, (OSError, MemoryError)):
        return what, ExitCode.NOT_VERIFIED
    if why := shadowed():
        return f"{what}: {why}", ExitCode.NOT_VERIFIED
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    where = f" ({last.filename}:{last.lineno})" if last is not None else ""
    return f"this is a defect of verify, not of the kernel: {what}{where}", ExitCode.NOT_VERIFIED


def _text(error: BaseException) -> str:
    """The message; for a KeyError its argument, not the argument's repr."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return " ".join(str(error).split())

"""``python -m verify``."""

import os
import sys

from verify.system.completion import open_streams, run_to_completion
from verify.system.exit_code import ExitCode


def main() -> None:
    """Run the command to its end in a process of its own, or, for a program's sake, in this one.

    What stands behind ``--`` is a program that belongs to the terminal, and no contract is loaded for it.
    """
    open_streams()
    if sys.argv[1:2] == ["sanitize"] and "--" in sys.argv:
        sys.exit(command())
    run_to_completion(command)


def command() -> int:
    """The exit code of what ``sys.argv`` asks for; nothing is raised."""
    try:
        from verify.cli.app import main as run
    except KeyboardInterrupt:  # the imports take most of a second, in which Ctrl-C is as likely as later
        return _failed("interrupted", 130)
    except ImportError as error:
        return _failed(f"{error}: install kernel-verify with all that it depends on", ExitCode.NOT_VERIFIED)
    return run(sys.argv[1:])


def _failed(message: str, code: int) -> int:
    os.write(2, f"verify: {message}\n".encode(errors="replace"))
    return code


if __name__ == "__main__":
    main()

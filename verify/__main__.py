"""``python -m verify``."""

import os
import sys


def main() -> None:
    """Run the command in a supervised child process, or in this one if it runs a program.

    A program given after ``--`` keeps the terminal, and no contract is loaded for it.
    """
    try:
        from verify.system.completion import open_streams, run_to_completion
    except Exception as error:  # a file on the path shadows a standard module
        sys.exit(_not_imported(error))
    open_streams()
    if sys.argv[1:2] == ["sanitize"] and "--" in sys.argv:
        sys.exit(command())
    run_to_completion(command)


def command() -> int:
    """Run what ``sys.argv`` asks for and return the exit code; raises nothing."""
    try:
        from verify.cli.app import main as run
    except KeyboardInterrupt:  # the imports take most of a second
        return _failed("interrupted", 130)
    except Exception as error:
        return _not_imported(error)
    return run(sys.argv[1:])


def _not_imported(error: Exception) -> int:
    """Report a failed import. The exit code is a literal, since its enum may be what cannot be imported."""
    from verify.system.shadowed import shadowed

    place, last = "", error.__traceback__
    while last is not None:
        place, last = f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}", last.tb_next
    why = shadowed() or "install kernel-verify with all that it depends on"
    return _failed(f"{' '.join(str(error).split()) or type(error).__name__} ({place}): {why}", 3)


def _failed(message: str, code: int) -> int:
    os.write(2, f"verify: {message}\n".encode(errors="replace"))
    return code


if __name__ == "__main__":
    main()
